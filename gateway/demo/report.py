"""The demo's report: tables and checks, for a terminal and for a log.

Owns the words. Computes nothing but sums: what is true is ``access``'s, ``proof``'s and ``edit``'s to say. Called by
``gateway.demo.run``.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from gateway.demo.access import rows_of
from gateway.demo.edit import Edits, in_flight
from gateway.demo.fleet import RunningServer
from gateway.demo.policy import EDITED_ROUTE
from gateway.demo.proof import Check, Evidence
from gateway.demo.screen import LABEL_CHARS, Screen
from gateway.demo.witness import WATERMARK
from gateway.demo.workload import TENANTS, Item

_COUNTED = re.compile(r"^quantgate_requests_total\{[^}]*\} ([0-9.e+]+)$", re.MULTILINE)
_NO_FAILURE = ("ok", "client_error", "unauthorized", "not_found", "rate_limited")
_MARKS = {True: "[green]holds[/]", False: "[bold red]FAILS[/]"}


class Result(msgspec.Struct, frozen=True):
    """What the demo came to. ``took_s``: the workload alone."""

    evidence: Evidence
    edits: Edits
    checks: tuple[Check, ...]
    took_s: float

    @property
    def good(self) -> bool:
        """Every check holds."""
        return all(check.holds for check in self.checks)


def requests_counted(metrics: str) -> int:
    """The sum of the gateway's request counter in its ``/metrics``."""
    return int(sum(float(value) for value in _COUNTED.findall(metrics)))


# before and during the workload


def show_head(console: Console) -> None:
    """What this is."""
    console.print("[bold]Quantgate demo[/]: one model, three precisions, real llama.cpp servers, one gateway.\n")


def show_pools(screen: Screen, servers: Sequence[RunningServer], endpoints: Sequence[Mapping[str, Any]]) -> None:
    """What was started, and what each server told the gateway about itself."""
    found = {endpoint["pool"]: endpoint for endpoint in endpoints}
    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    grid.add_column(min_width=LABEL_CHARS - 1)
    for column in ("pool", "weights", "KV cache", "llama.cpp at", "what it told the gateway"):
        grid.add_column(column, no_wrap=True)
    for server in servers:
        told = found.get(server.spec.name, {})
        precision = server.spec.model.name.split(".")[1], server.spec.kv
        grid.add_row("", server.spec.name, *precision, server.url.removeprefix("http://"), attested(told))
    screen.console.print(grid)
    screen.labelled("", "[dim]KV cache: as started. llama.cpp does not report it, so no one can attest it.[/]")
    screen.console.print()


def attested(endpoint: Mapping[str, Any]) -> str:
    """What a server says of its weights, and whether that is what the policy declares."""
    attestation = endpoint.get("attestation") or {}
    weights = (attestation.get("weights") or {}).get("value")
    if not weights:
        return "nothing"
    bits = attestation.get("weight_bits")
    measured = f", {bits:.1f} bits per weight" if bits else ""
    return f"{weights}{measured}: " + ("not as declared" if endpoint.get("mismatches") else "as declared")


def show_workload(screen: Screen, items: Sequence[Item], version: str, at_once: int, seed: int) -> None:
    """What is about to be sent."""
    kinds = Counter(item.kind for item in items)
    streams = sum(item.stream for item in items)
    screen.labelled(
        "workload",
        f"{len(items)} requests of {len(TENANTS)} tenants and a stranger through the OpenAI client {version}, "
        f"{at_once} at a time, {streams} streamed [dim](seed {seed})[/]",
    )
    screen.labelled("", f"[dim]{' · '.join(f'{count} {kind}' for kind, count in kinds.most_common())}[/]")


def edit_refused(misspelt: Sequence[str], refusal: str, generation: int) -> str:
    """The wrong edit, as it happens."""
    if not refusal:
        return "[red]The policy was edited with a typing error, and the gateway did not refuse it.[/]"
    return (
        f"[bold]Edited the policy[/], with a typing error: route {EDITED_ROUTE} → {', '.join(misspelt)}\n"
        f"  refused: {escape(refusal)}\n"
        f"  generation {generation} goes on"
    )


def edit_applied(before: Sequence[str], after: Sequence[str], old: int, new: int, took_s: float) -> str:
    """The right edit, as it happens."""
    if not new:
        return "[red]The policy was edited, and the gateway did not take it up.[/]"
    return (
        f"[bold]Edited the policy[/]: route {EDITED_ROUTE} from {', '.join(before)} to {', '.join(after)}\n"
        f"  generation {old} → {new}, in force after {took_s:.1f} s"
    )


# after it


def show(console: Console, result: Result) -> None:
    """The whole report."""
    console.print()
    console.print(_routing(result))
    console.print()
    console.print(_refusals(result))
    console.print(_edits(result))
    running = in_flight(result.edits, result.evidence.entries)
    console.print(f"{running} requests were running at the change; they ended on the generation they began with.\n")
    console.print(
        "[bold]The proof[/]: three accounts of the same requests, each kept by another program. The client knows what "
        "it sent and was told. The gateway wrote an access log. Each llama.cpp server logged and counted what it "
        f"computed; requests carry their number in {WATERMARK}, a parameter that changes nothing and that "
        "llama.cpp logs.",
    )
    show_checks(console, result.checks, len(result.evidence.items), result.took_s)


def _table(title: str) -> Table:
    return Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)


def _routing(result: Result) -> Table:
    table = _table("Where requests went")
    for column in ("bucket", "pool", "by route"):
        table.add_column(column, no_wrap=True)
    for column in ("requests", "TTFT p50", "longest", "TPOT p50", "tokens in", "out"):
        table.add_column(column, justify="right", no_wrap=True)
    notes: dict[tuple[str, ...], int] = {}
    for row in rows_of(result.evidence.entries):
        note = f" ({notes.setdefault(row.narrowed_by, len(notes) + 1)})" if row.narrowed_by else ""
        table.add_row(
            row.bucket,
            row.pool,
            row.rule + note,
            str(row.requests),
            _seconds(row.ttft_ms),
            _seconds(row.ttft_most_ms),
            f"{row.tpot_ms:.0f} ms" if row.tpot_ms >= 0 else "–",
            f"{row.prompt_tokens:,}",
            f"{row.completion_tokens:,}",
        )
    table.caption = "\n".join(f"({number}) narrowed by {', '.join(names)}" for names, number in notes.items())
    table.caption_justify = "left"
    return table


def _seconds(milliseconds: float) -> str:
    return f"{milliseconds / 1000:.2f} s" if milliseconds >= 0 else "–"


def _refusals(result: Result) -> Table:
    table = _table("Refused, as they should be")
    for column in ("what", "requests", "answer"):
        table.add_column(column, overflow="fold")
    groups: dict[tuple[str, int], list[str]] = {}
    for item in result.evidence.items:
        answer = result.evidence.answers[item.number]
        if answer.status != 200:
            wait = f" (Retry-After: {answer.retry_after})" if answer.retry_after else ""
            groups.setdefault((item.kind, answer.status), []).append(answer.error + wait)
    for (kind, status), errors in groups.items():
        table.add_row(kind, str(len(errors)), escape(f"{status} {errors[0]}"))
    return table


def _edits(result: Result) -> Table:
    edits, entries = result.edits, result.evidence.entries
    by_generation = Counter(entry.generation for entry in entries)
    table = _table("The policy, edited while requests ran")
    for column in ("generation", f"route {EDITED_ROUTE}", "requests", "failed"):
        table.add_column(column)
    both = ((edits.generation_before, edits.order_before), (edits.generation_after, edits.order_after))
    for generation, order in both:
        bad = sum(entry.generation == generation and entry.result not in _NO_FAILURE for entry in entries)
        table.add_row(str(generation), " → ".join(order), str(by_generation[generation]), str(bad))
    return table


def show_checks(console: Console, checks: Sequence[Check], requests: int, took_s: float) -> None:
    """Each claim with its accounts, and how many hold."""
    for check in checks:
        console.print()
        console.print(f"{_MARKS[check.holds]}  [bold]{escape(check.claim)}[/]")
        grid = Table.grid(padding=(0, 2))
        grid.add_column(width=5)
        grid.add_column(width=9, style="dim")
        grid.add_column(overflow="fold")
        for who, says in check.accounts:
            grid.add_row("", who, escape(says))
        console.print(grid)
    held = sum(check.holds for check in checks)
    colour = "green" if held == len(checks) else "red"
    console.print(f"\n[bold {colour}]{held} of {len(checks)} checks hold[/]: {requests} requests in {took_s:.0f} s.")
