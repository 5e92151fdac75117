"""Rows into Parquet, for DuckDB, pandas and whatever else reads it.

Owns the columns' types and writing in bounded memory. Needs pyarrow, which is an extra; imported only when asked for.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import BigInteger, Boolean, Float, Integer, Table

from gateway.core.report.flat import FlatRow

if TYPE_CHECKING:
    import pyarrow

BATCH = 10_000


class ParquetError(Exception):
    """Parquet cannot be written; the message says why and what to do."""


def write_report(rows: Iterable[FlatRow], path: Path) -> int:
    """A report's rows. Returns how many."""
    arrow = _arrow()
    types = {bool: arrow.bool_(), int: arrow.int64(), float: arrow.float64(), str: arrow.string()}
    fields = []
    for name, kind in FlatRow.__annotations__.items():
        plain = next(found for found in types if found is kind or found in getattr(kind, "__args__", ()))
        fields.append(arrow.field(name, types[plain]))
    return _write(arrow, arrow.schema(fields), rows, path)


def write_records(table: Table, rows: Iterable[Sequence[Any]], path: Path) -> int:
    """Stored rows with all columns of ``table`` in its order; unknown numbers (-1) become null, ``at`` a timestamp."""
    arrow = _arrow()
    fields = [arrow.field(column.name, _type(arrow, column)) for column in table.columns]
    cleaners = [_cleaner(column) for column in table.columns]
    cleaned = ([clean(value) for clean, value in zip(cleaners, row, strict=True)] for row in rows)
    return _write(arrow, arrow.schema(fields), cleaned, path)


def _arrow() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ParquetError("pyarrow is missing. Install it with: pip install 'quantgate[parquet]'") from None
    return pyarrow


def _type(arrow: Any, column: Any) -> "pyarrow.DataType":
    if column.name == "at":
        return arrow.timestamp("us", tz="UTC")
    if isinstance(column.type, Boolean):
        return arrow.bool_()
    if isinstance(column.type, Integer | BigInteger):
        return arrow.int64()
    return arrow.float64() if isinstance(column.type, Float) else arrow.string()


def _cleaner(column: Any) -> Any:
    if column.name == "at":
        return lambda value: datetime.fromtimestamp(value, UTC)
    if isinstance(column.type, Boolean):
        return bool
    if isinstance(column.type, Integer | BigInteger | Float):
        return lambda value: None if value is not None and value < 0 else value
    return lambda value: value


def _write(arrow: Any, schema: Any, rows: Iterable[Sequence[Any]], path: Path) -> int:
    total = 0
    try:
        with arrow.parquet.ParquetWriter(path, schema, compression="zstd") as writer:
            for batch in _batches(rows):
                columns = list(zip(*batch, strict=True))
                arrays = [arrow.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
                writer.write_table(arrow.Table.from_arrays(arrays, schema=schema))
                total += len(batch)
    except OSError as error:
        raise ParquetError(f"{path} cannot be written: {error.strerror or error}") from None
    return total


def _batches(rows: Iterable[Sequence[Any]]) -> Iterable[list[Sequence[Any]]]:
    batch: list[Sequence[Any]] = []
    for row in rows:
        batch.append(row)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch
