"""``quantgate report``: the experiment matrix out of what the gateway recorded.

Owns options, where the report goes and how it looks on a terminal; the numbers are ``core.report``'s. Exit status: 0 =
made (whatever it says), 2 = no evidence to be had, or wrong options.
"""

import csv
import sys
import time
from collections.abc import Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, TextIO

import msgspec
import typer
from rich import box
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text
from sqlalchemy.exc import SQLAlchemyError

from gateway.cli.parquet import ParquetError, write_records, write_report
from gateway.cli.stored import StoredError, ask_admin, open_database, said
from gateway.cli.telling import give_up
from gateway.core.report import Report, Section, Tally, UnknownBaselineError, Verdict, build, layout
from gateway.core.report.flat import flatten, to_csv
from gateway.core.report.html import to_html
from gateway.core.report.markdown import to_markdown
from gateway.core.span import read_moment
from gateway.store.gathering import gather, table_rows
from gateway.store.records import Filter
from gateway.store.tables import requests

PLAIN_WIDTH = 160

_STYLES = {Verdict.WORSE: "bold red", Verdict.BETTER: "bold green", Verdict.NOT_ENOUGH: "dim"}


class Format(StrEnum):
    """How a report is written."""

    TEXT = "text"
    MARKDOWN = "markdown"
    HTML = "html"
    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"


def report(
    *,
    database: Annotated[
        str | None, typer.Option(help="sqlite:///… or postgresql://…, or env:NAME holding it. Default: --state-dir's.")
    ] = None,
    state_dir: Annotated[Path, typer.Option(help="The gateway's state directory.")] = Path("var/quantgate"),
    admin: Annotated[str | None, typer.Option(help="Ask a running gateway's admin port instead: HOST:PORT.")] = None,
    since: Annotated[str, typer.Option(help="90m, 24h, 7d ago, or a moment such as 2026-01-31T08:00.")] = "24h",
    until: Annotated[str | None, typer.Option(help="Same; default: now.")] = None,
    bucket: Annotated[str, typer.Option(help="This bucket alone.")] = "",
    tenant: Annotated[str, typer.Option(help="This tenant's requests alone.")] = "",
    baseline: Annotated[
        list[str] | None, typer.Option(help="Pool to compare with, one a model; default: the widest precision.")
    ] = None,
    form: Annotated[Format, typer.Option("--format", "-f", help="How to write it.")] = Format.TEXT,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="File; default: standard output.")] = None,
    rows: Annotated[bool, typer.Option("--rows", help="The records themselves (csv or parquet), not the report.")] = (
        False
    ),
) -> None:
    """Per bucket, one column a pool, baseline first: latency, errors, quality with intervals, and verdicts."""
    try:
        wanted = _filter(since, until, bucket, tenant)
        if rows:
            _export(database, state_dir, admin, wanted, form=form, output=output)
            return
        if form is Format.PARQUET and output is None:
            raise StoredError("Parquet is binary: name a file with --output.")
        made = (
            _from_admin(admin, wanted, baseline or [])
            if admin is not None
            else _from_database(database, state_dir, wanted, baseline or [])
        )
        write(made, form, output)
    except (StoredError, UnknownBaselineError, ParquetError, ValueError) as error:
        give_up("report", error)
    except OSError as error:
        if output is None:
            raise  # standard output was closed
        give_up("report", f"--output {output} cannot be written: {error.strerror or error}")
    except SQLAlchemyError as error:
        give_up("report", f"the database cannot be read: {said(error)}")


def write(made: Report, form: Format, output: Path | None) -> None:
    """The report in a form, to a file or standard output."""
    if form is Format.PARQUET and output is not None:
        write_report(flatten(made), output)
        return
    if form is Format.TEXT:
        if output is None:
            show(made, sys.stdout)
        else:
            with output.open("w", encoding="utf-8") as file:
                show(made, file)
        return
    text = {
        Format.MARKDOWN: to_markdown,
        Format.HTML: to_html,
        Format.CSV: to_csv,
        Format.JSON: _to_json,
    }[form](made)
    if output is None:
        sys.stdout.write(text)
    else:
        output.write_text(text, encoding="utf-8")


def show(made: Report, out: TextIO) -> None:
    """For a terminal or a log."""
    console = Console(file=out, highlight=False, width=None if out.isatty() else PLAIN_WIDTH)
    for line in layout.summary(made):
        console.print(Text(line))
    if made.findings:
        console.print()
    for line in layout.finding_lines(made):
        verdict = Verdict(line.partition(":")[0])
        console.print(Text(line, _STYLES[verdict]), soft_wrap=False)
    for section in made.sections:
        console.print()
        _show_section(console, section)
    console.print()
    if made.sections:
        console.print(Text(layout.LEGEND, "dim"))
    for note in made.notes:
        console.print(Text(note, "dim"))


def _show_section(console: Console, section: Section) -> None:
    if section.columns:
        grid = Grid(
            title=Text(layout.named(section.bucket), "bold"), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False
        )
        grid.add_column("")
        for column in section.columns:
            grid.add_column(Text(layout.heading(column)), justify="right")
        for line in layout.lines(section):
            grid.add_row(line.label, *(_styled(cell) for cell in line.cells))
        console.print(grid)
    else:
        console.print(Text(layout.named(section.bucket), "bold"))
    if section.unserved:
        console.print(Text(f"Reached no pool: {layout.results(section.unserved.items())}."))


def _styled(cell: layout.Cell) -> Text:
    text = Text(cell.value)
    if cell.interval:
        text.append(f" {cell.interval}", "dim")
    if cell.delta:
        text.append(f" {cell.delta}")
    if cell.verdict is not None:
        text.append(f" {layout.MARKS[cell.verdict]}", _STYLES[cell.verdict])
    return text


def _filter(since: str, until: str | None, bucket: str, tenant: str) -> Filter:
    now = time.time()  # noqa: TID251 - a command is its own composition root
    return Filter(
        since=read_moment(since, now),
        until=read_moment(until, now) if until is not None else None,
        bucket=bucket,
        tenant=tenant,
    )


def _from_database(database: str | None, state_dir: Path, wanted: Filter, baselines: Sequence[str]) -> Report:
    engine = open_database(database, state_dir)
    tally = Tally()
    gather(engine, wanted, tally)
    now = time.time()  # noqa: TID251 - a command is its own composition root
    return build(tally, now, baselines=baselines, since=wanted.since, until=wanted.until)


def _from_admin(admin: str, wanted: Filter, baselines: Sequence[str]) -> Report:
    given = {"since": wanted.since, "until": wanted.until, "bucket": wanted.bucket, "tenant": wanted.tenant}
    query = {name: str(value) for name, value in given.items() if value}
    if baselines:
        query["baseline"] = ",".join(baselines)
    try:
        return msgspec.json.decode(ask_admin(admin, "/api/v1/report", query), type=Report)
    except msgspec.MsgspecError as error:
        raise StoredError(f"The gateway at {admin} sent no report that this version reads: {error}.") from None


def _to_json(made: Report) -> str:
    return msgspec.json.format(msgspec.json.encode(made), indent=2).decode() + "\n"


def _export(
    database: str | None, state_dir: Path, admin: str | None, wanted: Filter, *, form: Format, output: Path | None
) -> None:
    """The records' own rows; without limit, so never through the admin port."""
    if admin is not None:
        raise StoredError("--rows reads a database: name it with --database or --state-dir.")
    if form not in (Format.CSV, Format.PARQUET):
        raise StoredError("--rows are written as csv or parquet: add --format.")
    found = table_rows(open_database(database, state_dir), wanted)
    if form is Format.PARQUET:
        if output is None:
            raise StoredError("Parquet is binary: name a file with --output.")
        write_records(requests, found, output)
    elif output is None:
        _write_csv(found, sys.stdout)
    else:
        with output.open("w", encoding="utf-8", newline="") as file:
            _write_csv(found, file)


def _write_csv(rows: Iterable[Sequence[Any]], out: TextIO) -> None:
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([column.name for column in requests.columns])
    writer.writerows(rows)
