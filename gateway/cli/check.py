"""``quantgate check``: a policy's faults with their places, or its decision table.

Resolves no secret and opens no socket, so it runs in a pull request. Exit status: 0 good, 1 rejected (2 is wrong
usage).
"""

import sys
from pathlib import Path
from typing import Annotated, Any, TextIO

import msgspec
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table as Grid

from gateway.cli.telling import print_json
from gateway.core.decide import ADAPTER, CONTEXT_WINDOW
from gateway.errors import PolicyError, PolicyRejectedError
from gateway.policy.analysis import Report, Row, analyse
from gateway.policy.compile import compile_table
from gateway.policy.load import Loaded, load
from gateway.policy.secret import unresolved
from gateway.policy.space import TooFineError

GOOD, REJECTED = 0, 1
_FAILOVER = {
    "pools": "other pools",
    "endpoints": "[yellow]its endpoints only[/]",
    "none": "[red]none[/]",
    "refused": "[red]refused[/]",
}


def check(
    path: Annotated[Path, typer.Argument(help="A policy: one YAML file or a folder of them.")],
    as_json: Annotated[bool, typer.Option("--json", help="The same as JSON.")] = False,
) -> None:
    """Check a policy and show what it does to every kind of request."""
    raise typer.Exit(run(path, as_json))


def run(path: Path, as_json: bool = False, out: TextIO | None = None) -> int:
    """Check the policy at ``path`` and print the result to ``out``. 0 = good, 1 = rejected."""
    stream = out if out is not None else sys.stdout
    try:
        loaded = load(path)
        report = _report(loaded)
    except PolicyRejectedError as error:
        if as_json:
            errors, warnings = _plain(error.findings, "error"), _plain(error.findings, "warning")
            print_json({"ok": False, "errors": errors, "warnings": warnings}, stream)
        else:
            _print_findings(Console(file=stream, highlight=False, soft_wrap=True), error.findings)
        return REJECTED
    if as_json:
        body = {
            "ok": True,
            "digest": loaded.digest,
            "files": loaded.files,
            "warnings": _plain(loaded.warnings, "warning"),
        }
        print_json({**body, "report": msgspec.to_builtins(report)}, stream)
    else:
        _print_report(Console(file=stream, highlight=False, width=None if stream.isatty() else 160), loaded, report)
    return GOOD


def _report(loaded: Loaded) -> Report | None:
    try:
        return analyse(compile_table(loaded.document, 0, {}, unresolved))
    except TooFineError:
        return None


def _plain(findings: tuple[PolicyError, ...], severity: str) -> list[dict[str, Any]]:
    return [msgspec.to_builtins(finding) for finding in findings if finding.severity == severity]


def _print_findings(console: Console, findings: tuple[PolicyError, ...]) -> None:
    for finding in findings:
        colour = "red" if finding.severity == "error" else "yellow"
        place = f"{finding.file}:{finding.line}:{finding.column}"
        console.print(f"[bold]{escape(place)}[/]: [{colour}]{finding.severity}[/]: {escape(finding.message)}")
        if finding.mend:
            console.print(f"    {escape(finding.mend)}")
    errors = sum(finding.severity == "error" for finding in findings)
    if errors:
        console.print(f"\n[red]rejected[/]: {errors} error{'s' if errors > 1 else ''}")


def _print_report(console: Console, loaded: Loaded, report: Report | None) -> None:
    _print_findings(console, loaded.warnings)
    if loaded.warnings:
        console.print()
    if report is None:
        console.print("The rules cut requests too finely for a decision table.")
    else:
        console.print(_decisions(report))
        _print_notes(console, report)
    console.print(f"\n[green]good[/]: {len(loaded.files)} file(s), digest {loaded.digest[:12]}")


def _decisions(report: Report) -> Grid:
    several = len({(row.model, row.adapter) for row in report.rows}) > 1
    grid = Grid(title="Which pools serve which requests", title_justify="left", show_lines=True)
    for column in (
        "route",
        *(["model"] if several else []),
        "requests",
        "pools, in order",
        "narrowed by",
        "buckets",
        "failover",
    ):
        grid.add_column(column, overflow="fold", justify="right" if column == "buckets" else "left")
    for row in report.rows:
        model = row.model if row.adapter is None else f"{row.model}:{row.adapter}"
        grid.add_row(
            escape(row.rule),
            *([escape(model)] if several else []),
            escape(row.requests),
            escape(" → ".join(row.pools)) or ("[red]refused[/] *" if _only_too_long(row) else "[red]refused[/]"),
            escape("\n".join(row.by)),
            str(row.buckets),
            _FAILOVER[row.failover],
        )
    return grid


def _only_too_long(row: Row) -> bool:
    """Whether nothing but the context window stands against these requests at the pools that serve their adapter."""
    return CONTEXT_WINDOW in row.by and set(row.by) <= {ADAPTER, CONTEXT_WINDOW}


def _print_notes(console: Console, report: Report) -> None:
    if any(not row.pools and _only_too_long(row) for row in report.rows):
        console.print(
            "* Only if the prompt itself is too long, with 400: else the pools with the largest context window get the "
            "request. Counting tokens has no window.\n"
        )
    over = report.bucket_count > report.bucket_most
    console.print(
        f"{report.bucket_count} buckets are possible, {report.bucket_most} are kept apart"
        + ("; [yellow]those that come later share the bucket 'other'[/]" if over else "")
    )
    alone = {pool: sentences for pool, sentences in report.without.items() if sentences}
    if alone:
        console.print("\nIf one pool goes, these requests are refused:")
        for pool, sentences in alone.items():
            for sentence in sentences:
                console.print(f"  without [bold]{escape(pool)}[/]  {escape(sentence)}")
    if report.never:
        console.print("\nRules that change nothing:")
        for sentence in report.never:
            console.print(f"  {escape(sentence)}")
