"""The words around the rollout: what is about to happen, and afterwards what was decided on how many requests.

Owns the words. Computes nothing but sums. Called by ``chapter``.
"""

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from gateway.demo import report
from gateway.demo.proof import Check
from gateway.demo.rollout.findings import Found, phases, requests_until
from gateway.demo.rollout.notes import TITLES, Note, Way
from gateway.demo.rollout.screen import number
from gateway.demo.rollout.standing import PROMOTED, ROLLED_BACK, Event, percent
from gateway.demo.screen import Screen
from gateway.model.proving import Rollout
from gateway.model.table import Table as Policy

_EXAMPLE = Note("Ella", 46, "Porto")
QUICK_ANSWERS, STRICT_ANSWERS = 32, 515
"""Answers without a fault that pass a stage at the demo's limit and at 1 %."""


def show_head(screen: Screen, policy: Policy, plan: Rollout, generations: tuple[int, int], at_once: int) -> None:
    """What is about to happen."""
    candidate, baseline = plan.candidate, plan.baseline
    shares = ", ".join(percent(stage.share_bp) for stage in plan.stages)
    guards = [policy.guards[name] for name in plan.guards]
    by_limit: dict[float, list[str]] = {}
    for guard in guards:
        if guard.limit is not None:
            by_limit.setdefault(guard.limit, []).append(guard.name)
    limits = "; ".join(f"{', '.join(names)} ≤ {limit * 100:g} %" for limit, names in by_limit.items())
    screen.line(
        f"\n[bold]The second part: a rollout.[/] {candidate} is to take over two kinds of requests from {baseline}. "
        "The gateway judges each kind by itself, while requests run.\n"
    )
    for label, text in (
        (
            "requests",
            f"notes to be turned into JSON, {at_once} at a time: “{escape(_EXAMPLE.text)}” Some come with a schema "
            "that lists the cities, some in free form. The application knows what is right, and says so by "
            "/v1/feedback.",
        ),
        ("policy", f"generation {generations[0]} → {generations[1]}: routing_policies/demo-rollout.yaml"),
        ("", f"{candidate} gets {shares} while its guards allow: {escape(limits)}"),
        ("", "[dim]errors: the pool fails · cut-off: the token limit ends it · wrong: by the application's word[/]"),
        (
            "judge",
            "[bold]suspicion[/] grows with faults beyond a limit. It is a logarithm, a stage begins with -5, and at 0 "
            "the pool is out.",
        ),
        (
            "",
            "[bold]evidence[/] grows with answers better than a limit. When every guard has enough the next stage "
            "comes. Neither is misled by looking often.",
        ),
        (
            "",
            f"[dim]Limits are wide so that it is short: here some {QUICK_ANSWERS} answers without a fault pass a "
            f"stage, at 1 % it takes {STRICT_ANSWERS}.[/]",
        ),
    ):
        screen.labelled(label, text)
    screen.console.print()


def show(console: Console, found: Found, checks: Sequence[Check]) -> None:
    """What was decided, and the proof."""
    console.print()
    console.print(_phases(found))
    for way in Way:
        console.print(_verdict(found, way))
    console.print()
    console.print("[bold]The proof[/], by the same three accounts:")
    report.show_checks(console, checks, len(found.sent), found.took_s)


def _phases(found: Found) -> Table:
    candidate, baseline = found.candidate, found.baseline
    table = Table(
        title="What the gateway decided, and on what",
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    table.add_column("requests of", no_wrap=True)
    table.add_column(f"{candidate} gets", no_wrap=True)
    for column in ("sent", f"by {candidate}", f"wrong: {candidate}", baseline):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("then", no_wrap=True)
    before: Way | None = None
    for phase in phases(found):
        by_baseline = phase.requests - phase.by_candidate
        table.add_row(
            TITLES[phase.way] if phase.way is not before else "",
            _share(phase.began),
            str(phase.requests),
            str(phase.by_candidate),
            _of(phase.wrong_candidate, phase.by_candidate),
            _of(phase.wrong_baseline, by_baseline),
            _then(phase.ended),
        )
        before = phase.way
    return table


def _share(began: Event | None) -> str:
    """What the candidate gets in a phase."""
    if began is None:
        return "not yet"
    return percent(began.share_bp) if began.share_bp > 0 else "nothing"


def _then(ended: Event | None) -> str:
    """What ended a phase: another share, or a decision."""
    if ended is None:
        return "[dim]the end[/]"
    return percent(ended.share_bp) if ended.after == "stepping" else escape(ended.title)


def _of(part: int, whole: int) -> str:
    return f"{part} of {whole}" if whole else "–"


def _verdict(found: Found, way: Way) -> str:
    """A way's verdict in words."""
    events, bucket = found.events.get(way, ()), found.buckets.get(way)
    if bucket is None or not events:
        return f"[bold]{TITLES[way]}[/]: no request of it was seen"
    if bucket.state in (PROMOTED, ROLLED_BACK):
        last = next(event for event in reversed(events) if event.after == bucket.state)
        colour, word = ("green", "promoted") if bucket.state == PROMOTED else ("red", "rolled back")
        return f"[bold {colour}]{TITLES[way]}: {found.candidate} is {word}[/] {_after(found, way, events[0], last)}"
    missing = [
        f"{guard.series} {number(guard.e_value)} of {guard.enough:.0f}"
        for guard in bucket.guards
        if guard.log_evidence < guard.needed_log_evidence
    ]
    evidence = f" Evidence until now: {escape('; '.join(missing))}." if missing else ""
    return (
        f"[bold yellow]{TITLES[way]}: not enough evidence yet[/] after {found.took_s:.0f} s; {found.candidate} stays "
        f"at {bucket.share}.{evidence}"
    )


def _after(found: Found, way: Way, first: Event, last: Event) -> str:
    requests, mine = requests_until(found, last, way)
    said = f"after {requests} requests, {mine} of them by {found.candidate}, in {last.at - first.at:.0f} s"
    return f"{said}: {escape(last.reason)}" if last.after == ROLLED_BACK else f"{said}: every guard had enough"
