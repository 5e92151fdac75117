"""``quantgate report``: from a database to every format, and clear words where there is nothing."""

import csv
import io
import json
import os
from pathlib import Path

import duckdb
import msgspec
import pytest
from typer.testing import CliRunner

from gateway.cli import app
from gateway.core.report import Report
from tests.unit.cli.databases import fill

SINCE = ["--since", "2020-01-01"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state directory with records."""
    made = tmp_path_factory.mktemp("state")
    fill(made)
    return made


def run(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["report", *arguments])
    assert result.exit_code == code, result.output
    return result.output


def test_text_tells_where_the_candidate_is_worse(folder: Path) -> None:
    """Headline, verdicts, one table with the baseline first, legend."""
    said = run("--state-dir", str(folder), *SINCE)
    assert "600 requests" in said and "baseline: bf16 for m" in said
    assert "worse: int4 against bf16 in m/short: quality score" in said
    head = next(line for line in said.splitlines() if "bf16, baseline" in line)
    assert head.split() == ["bf16,", "baseline", "int4"]
    assert "never a pass" in said


def test_every_format_is_written(folder: Path, tmp_path: Path) -> None:
    """To a file or standard output, with the same numbers."""
    where = ["--state-dir", str(folder), *SINCE]
    made = msgspec.json.decode(run(*where, "-f", "json"), type=Report)
    rows = list(csv.DictReader(io.StringIO(run(*where, "-f", "csv"))))
    worse = next(row for row in rows if (row["pool"], row["metric"]) == ("int4", "format_error"))
    figure = made.sections[0].columns[1].figures["format_error"]
    assert float(worse["value"]) == figure.estimate.value == 0.25
    assert run(*where, "-f", "markdown").startswith("# Pools by bucket")
    page = tmp_path / "report.html"
    run(*where, "-f", "html", "-o", str(page))
    assert page.read_text().startswith("<!doctype html>")
    run(*where, "-o", str(tmp_path / "report.txt"))
    assert "m/short" in (tmp_path / "report.txt").read_text()


def test_parquet_opens_in_duckdb(folder: Path, tmp_path: Path) -> None:
    """The report's rows, and the records themselves, with types that need no casting."""
    where = ["--state-dir", str(folder), *SINCE, "-f", "parquet"]
    report, records = tmp_path / "report.parquet", tmp_path / "records.parquet"
    run(*where, "-o", str(report))
    run(*where, "--rows", "-o", str(records))
    ((verdict,),) = duckdb.sql(
        f"select verdict from '{report}' where pool = 'int4' and metric = 'format_error'"  # noqa: S608
    ).fetchall()
    assert verdict == "worse"
    found = duckdb.sql(
        f"select pool, count(*), median(ttft_s), min(\"at\") from '{records}' group by pool order by pool"  # noqa: S608
    ).fetchall()
    assert [(pool, count, ttft) for pool, count, ttft, _ in found] == [("bf16", 300, 0.08), ("int4", 300, 0.04)]
    assert found[0][3].year == 2023


def test_rows_as_csv(folder: Path, tmp_path: Path) -> None:
    """Every column of the table."""
    file = tmp_path / "rows.csv"
    run("--state-dir", str(folder), *SINCE, "--rows", "-f", "csv", "-o", str(file))
    rows = list(csv.DictReader(file.open()))
    assert len(rows) == 600
    assert rows[0]["request_id"] == "bf16-0"


def test_the_span_and_the_bucket_narrow(folder: Path) -> None:
    """And an empty span says that nothing can be said, with exit 0."""
    assert "20 requests" in run("--state-dir", str(folder), "--since", "1700000000", "--until", "1700000010")
    assert "nothing can be said" in run("--state-dir", str(folder), *SINCE, "--bucket", "none")
    assert "nothing can be said" in run("--state-dir", str(folder), "--since", "1h")


def test_the_database_by_reference(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A URL with a password stays out of the command line."""
    monkeypatch.setenv("RECORDS_URL", f"sqlite:///{folder}/records.sqlite")
    assert "600 requests" in run("--database", "env:RECORDS_URL", *SINCE)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--state-dir", "/nowhere"], "There is no database /nowhere/records.sqlite"),
        (["--database", "env:NOT_SET_ANYWHERE"], "NOT_SET_ANYWHERE"),
        (["--database", "mysql://h/d"], "Use SQLite or PostgreSQL"),
        (["--since", "yesterday"], "is no time"),
        (["--admin", "127.0.0.1:1"], "Nothing answers"),
        (["--admin", "ftp://x"], "is no address"),
        (["--admin", "127.0.0.1:99999"], "is no address"),
        (["-f", "parquet"], "name a file"),
        (["--rows"], "csv or parquet"),
        (["--rows", "-f", "csv", "--admin", "127.0.0.1:1"], "reads a database"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line(arguments: list[str], words: str) -> None:
    """Exit 2, and never a traceback."""
    said = run(*arguments, code=2)
    assert words in said
    assert "Traceback" not in said


@pytest.mark.parametrize("more", [(), ("-f", "json"), ("--rows", "-f", "csv")])
def test_a_file_that_cannot_be_written_is_said(folder: Path, more: tuple[str, ...]) -> None:
    """A folder, a path that leads nowhere; in one line."""
    for where, words in ((folder, "Is a directory"), (folder / "no" / "x", "No such file")):
        said = run("--state-dir", str(folder), *SINCE, *more, "-o", str(where), code=2)
        assert f"--output {where} cannot be written: {words}" in said


def test_an_unknown_baseline_is_refused(folder: Path) -> None:
    """It names the pools that there are."""
    assert "bf16, int4" in run("--state-dir", str(folder), *SINCE, "--baseline", "fp8", code=2)


def test_another_schema_is_refused(tmp_path: Path) -> None:
    """A file that is no database of ours is told apart from one of another version."""
    (tmp_path / "records.sqlite").touch()
    assert "holds no records" in run("--state-dir", str(tmp_path), code=2)
    (tmp_path / "records.sqlite").write_bytes(os.urandom(4096))
    assert "cannot be read" in run("--state-dir", str(tmp_path), code=2)


def test_json_is_whole(folder: Path) -> None:
    """For other programs: valid JSON with a version."""
    assert json.loads(run("--state-dir", str(folder), *SINCE, "-f", "json"))["version"] == 1
