"""Parquet: types that readers understand, unknown as null, any number of rows in bounded batches."""

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from gateway.cli import parquet
from gateway.cli.parquet import ParquetError, write_records, write_report
from gateway.core.report.flat import FlatRow, flatten
from gateway.store.tables import requests
from tests.unit.core.report.report_rows import report

COLUMNS = [column.name for column in requests.columns]


def row(**fields: Any) -> list[Any]:
    base: dict[str, Any] = dict.fromkeys(COLUMNS, "")
    for column in requests.columns:
        if column.type.python_type in (int, float, bool):
            base[column.name] = column.type.python_type(1)
    return [(base | fields)[name] for name in COLUMNS]


def test_unknown_is_null_and_time_is_time(tmp_path: Path) -> None:
    """-1 in the database is nobody's duration; ``at`` is a timestamp in UTC."""
    file = tmp_path / "r.parquet"
    assert write_records(requests, [row(at=0.5, ttft_s=-1.0, cached_tokens=-1, score=None, stream=1)], file) == 1
    (found,) = pyarrow.parquet.read_table(file).to_pylist()
    assert (found["ttft_s"], found["cached_tokens"], found["score"], found["stream"]) == (None, None, None, True)
    assert found["at"] == datetime(1970, 1, 1, 0, 0, 0, 500_000, tzinfo=UTC)


def test_many_rows_are_written_in_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each batch a row group, so memory does not grow with the file; no rows make a file with columns."""
    monkeypatch.setattr(parquet, "BATCH", 10)
    file = tmp_path / "r.parquet"
    assert write_records(requests, (row(id=index) for index in range(25)), file) == 25
    assert pyarrow.parquet.ParquetFile(file).metadata.num_row_groups == 3
    assert pyarrow.parquet.read_table(file)["id"].to_pylist() == list(range(25))
    assert write_records(requests, [], file) == 0
    assert pyarrow.parquet.read_table(file).column_names == COLUMNS


def test_a_report_keeps_its_types(tmp_path: Path) -> None:
    """Numbers are numbers, and what is not known is null."""
    file = tmp_path / "report.parquet"
    rows = flatten(report())
    assert write_report(rows, file) == len(rows)
    table = pyarrow.parquet.read_table(file)
    assert table.column_names == list(FlatRow._fields)
    assert [str(table.schema.field(name).type) for name in ("is_baseline", "number", "value", "verdict")] == [
        "bool",
        "int64",
        "double",
        "string",
    ]
    assert table.to_pylist() == [found._asdict() for found in rows]


def test_a_missing_library_is_said_with_the_mend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is an extra."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ParquetError, match=r"quantgate\[parquet\]"):
        write_report([], tmp_path / "x")


def test_a_file_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    """With its path."""
    with pytest.raises(ParquetError, match="cannot be written"):
        write_report([], tmp_path / "none" / "x")
