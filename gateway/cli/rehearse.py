"""``quantgate rehearse``: a policy's rollouts over simulated traffic, through the production engine.

Owns options and how the result looks on a terminal. Exit status: 0 = every fault was answered as it should be, 1 = one
was not, or a healthy pool was rolled back, 2 = the policy or an option cannot be used.
"""

import statistics
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec
import typer
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table as Grid
from sqlalchemy import Engine as Database
from sqlalchemy.engine import RowMapping

from gateway.cli.stored import StoredError, open_database
from gateway.cli.telling import UNUSABLE, give_up, print_json
from gateway.control.rehearsal import (
    Fault,
    MonthsReport,
    ScenarioReport,
    default_faults,
    read_fault,
    recorded_levels,
    run_months,
    run_scenario,
    warnings_of,
)
from gateway.control.rehearsal.levels import COLUMNS, healthy_levels
from gateway.core.evidence import Budget
from gateway.errors import PolicyRejectedError
from gateway.model.proving import Rollout
from gateway.model.table import Table
from gateway.policy.compile import compile_table, parse_document
from gateway.policy.load import load
from gateway.store.records import Filter, stream

DONE, MISSED = 0, 1
WEEK_S = 7 * 86_400.0


class Rehearsed(NamedTuple):
    """One rollout, what struck it, and what came of it; ``wolf`` None = no months were simulated."""

    plan: Rollout
    faults: list[Fault]
    reports: list[ScenarioReport]
    wolf: MonthsReport | None

    @property
    def missed(self) -> bool:
        """A fault was not answered as it should be, or health was taken for one."""
        unanswered = any(not _as_it_should(one, self.reports) for one in self.faults)
        return unanswered or (self.wolf is not None and bool(self.wolf.false_rollbacks))


def rehearse(
    policy: Annotated[Path, typer.Argument(help="Policy: one YAML file or a folder of them.")],
    *,
    fault: Annotated[
        list[str] | None,
        typer.Option(help="GUARD=SHARE%, such as json=100%; platform:errors=30% strikes every pool. Default: a set."),
    ] = None,
    healthy: Annotated[
        list[str] | None, typer.Option(help="GUARD=SHARE% of bad outcomes in a healthy pool; default: a third of it.")
    ] = None,
    rollout: Annotated[str, typer.Option(help="This rollout alone.")] = "",
    stage: Annotated[int, typer.Option(min=0, help="Stage the fault strikes in, from 1; 0 = the first live one.")] = 0,
    rate: Annotated[float, typer.Option(min=0.01, max=500, help="Requests a second and bucket.")] = 5.0,
    pairs: Annotated[float, typer.Option(min=0.0, max=100, help="Shadow pairs a second and bucket.")] = 1.0,
    runs: Annotated[int, typer.Option(min=1, max=1000, help="Repetitions of each fault.")] = 5,
    months: Annotated[float, typer.Option(min=0.0, max=1200, help="Months of health to simulate; 0 = none.")] = 1.0,
    most: Annotated[int, typer.Option("--most-s", min=60, help="Seconds that a fault may stay unnoticed.")] = 3600,
    seed: Annotated[int, typer.Option(help="Same seed, same rehearsal.")] = 1,
    state_dir: Annotated[
        Path | None, typer.Option(help="A gateway's state directory: healthy levels as its baseline showed last week.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Everything as JSON.")] = False,
) -> None:
    """When would it trip, how many requests would be hurt, how often does it cry wolf."""
    table, budget = _load(policy)
    plans = _plans(table, rollout)
    faults = _read_faults(fault or (), table)
    given = {found.guard: found.level for found in _read_faults(healthy or (), table)}
    if state_dir is not None:
        given = {**_recorded(table, plans, state_dir), **given}
    levels = healthy_levels(table, given)
    console = Console(stderr=True) if as_json else Console()
    for warning in warnings_of(table, levels):
        console.print(f"[yellow]warning:[/] {escape(warning)}")
    found: list[Rehearsed] = []
    for plan in plans:
        wanted = [one for one in faults or default_faults(table) if one.guard in plan.guards]
        index = _stage_index(plan, stage)
        reports = [
            run_scenario(
                table, budget, plan, one, levels, stage=index, seed=seed + run, rate=rate, pairs=pairs, most_s=most
            )
            for one in wanted
            for run in range(runs)
        ]
        wolf = (
            run_months(table, budget, plan, levels, months=months, seed=seed, rate=rate, pairs=pairs)
            if months
            else None
        )
        found.append(Rehearsed(plan, wanted, reports, wolf))
        if not as_json:
            _show(found[-1], index)
    if as_json:
        print_json(_values(levels, found))
    if any(one.missed for one in found):
        raise typer.Exit(MISSED)


def _plans(table: Table, rollout: str) -> list[Rollout]:
    plans = [plan for plan in table.rollouts if rollout in ("", plan.name)]
    if not plans:
        none = "The policy has no rollouts: there is nothing to rehearse."
        give_up("rehearse", "The policy has no such rollout." if rollout else none)
    return plans


def _read_faults(texts: Iterable[str], table: Table) -> list[Fault]:
    try:
        return [read_fault(text, table) for text in texts]
    except ValueError as error:
        give_up("rehearse", error)


def _stage_index(plan: Rollout, stage: int) -> int:
    """Of the stage that is asked for, counted from 1; of the first one with live traffic where none is."""
    if not stage:
        return next(index for index, one in enumerate(plan.stages) if one.kind == "weight")
    if stage > len(plan.stages):
        give_up("rehearse", f"{plan.name} has {len(plan.stages)} stages; --stage {stage} is none of them.")
    return stage - 1


def _load(policy: Path) -> tuple[Table, Budget]:
    try:
        loaded = load(policy)
        written = parse_document(loaded.document).guards.false_rollbacks
        # Secrets play no part in a rehearsal: any word will do.
        table = compile_table(loaded.document, 1, {}, lambda reference: f"rehearsal-{reference}")
    except PolicyRejectedError as error:
        for finding in error.findings:
            typer.echo(str(finding), err=True)
        raise typer.Exit(UNUSABLE) from None
    return table, Budget(written.at_most, written.series)


def _recorded(table: Table, plans: list[Rollout], state_dir: Path) -> dict[str, float]:
    try:
        database = open_database(None, state_dir)
    except StoredError as error:
        give_up("rehearse", error)
    since = time.time() - WEEK_S  # noqa: TID251 - a command's own clock
    found: dict[str, float] = {}
    for baseline in sorted({plan.baseline for plan in plans}):
        found.update(recorded_levels(table, (dict(row) for row in _rows(database, since, baseline))))
    return found


def _rows(database: Database, since: float, pool: str) -> Iterator[RowMapping]:
    return stream(database, Filter(since=since, pool=pool), COLUMNS)


def _as_it_should(fault: Fault, reports: list[ScenarioReport]) -> bool:
    """A bad pool leaves, a bad platform holds, and nothing else is rolled back."""
    mine = [report for report in reports if report.fault == fault.name]
    wanted = ("holding", "frozen") if fault.everywhere else ("rolled_back",)
    return all(report.state in wanted and not report.elsewhere for report in mine)


def _show(rehearsed: Rehearsed, stage: int) -> None:
    console = Console(width=None if sys.stdout.isatty() else 150)
    plan, faults, reports, wolf = rehearsed
    share = plan.stages[stage].share_bp / 100
    console.print(
        f"\n[bold]{escape(plan.name)}[/]: {plan.candidate} against {plan.baseline}, stage {stage + 1} ({share:g} %)"
    )
    grid = Grid(box=box.SIMPLE)
    for column in ("fault", "runs", "answer", "median", "slowest", "hurt (median)", "other buckets out", "by"):
        grid.add_column(column, overflow="fold")
    for fault in faults:
        mine = [report for report in reports if report.fault == fault.name]
        answered = [report.after_s for report in mine if report.after_s is not None]
        states = ", ".join(sorted({report.state for report in mine}))
        good = _as_it_should(fault, mine)
        grid.add_row(
            fault.name,
            str(len(mine)),
            f"[{'green' if good else 'red'}]{states}[/]",
            _seconds(statistics.median(answered)) if answered else "-",
            _seconds(max(answered)) if len(answered) == len(mine) else f"{len(mine) - len(answered)} not noticed",
            f"{statistics.median(report.hurt for report in mine):g}",
            str(sum(report.elsewhere for report in mine)),
            escape(mine[0].reason.split(" tripped")[0][:60]),
        )
    console.print(grid)
    if wolf is not None:
        _show_months(console, wolf)


def _show_months(console: Console, wolf: MonthsReport) -> None:
    console.print(
        f"{wolf.months:g} months of health: {wolf.false_rollbacks} false rollbacks "
        f"(at most {wolf.promised:.2g} expected), {wolf.incidents} incidents, {wolf.holds} stages out of time"
    )
    if wolf.promoted_after_s:
        console.print(f"a healthy candidate is promoted after {_seconds(min(wolf.promoted_after_s))}")
    else:
        console.print(
            "[yellow]a healthy candidate was not promoted in that time[/]: too little traffic, or limits too near"
        )
    for reason in wolf.reasons:
        console.print(f"  {escape(reason)}")


def _seconds(value: float) -> str:
    if value < 120.0:
        return f"{value:.0f} s"
    if value < 7_200.0:
        return f"{value / 60.0:.0f} min"
    return f"{value / 3_600.0:.1f} h" if value < 172_800.0 else f"{value / 86_400.0:.1f} d"


def _values(levels: dict[str, float], found: list[Rehearsed]) -> dict[str, object]:
    return {
        "healthy": levels,
        "rollouts": [
            {
                "rollout": plan.name,
                "scenarios": msgspec.to_builtins(reports),
                "months": msgspec.to_builtins(wolf) if wolf is not None else None,
            }
            for plan, _, reports, wolf in found
        ],
    }
