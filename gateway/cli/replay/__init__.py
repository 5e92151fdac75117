"""``quantgate replay``: the same requests to several pools, and how far their answers agree.

Owns options and printing. `given` reads what is sent, `kept` finds stored samples and their key, `targets` where to,
`sending` sends, `comparing` compares.
Nothing is ever sent without a target named on the command line. Exit status: 0 = replayed (whatever the result),
2 = wrong options, or nothing to replay.
"""

import asyncio
import json
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any, TextIO

import msgspec
import typer
from rich import box
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text
from sqlalchemy.exc import SQLAlchemyError

from gateway.cli.replay.comparing import Results, Totals
from gateway.cli.replay.given import Item, from_file, sendable
from gateway.cli.replay.kept import DEFAULT_KEY, Kept
from gateway.cli.replay.sending import Reply, Sender, Target, bounded
from gateway.cli.replay.targets import TargetError, named, of_policy
from gateway.cli.stored import StoredError, said
from gateway.cli.telling import give_up
from gateway.core.report import Verdict
from gateway.core.report.layout import duration
from gateway.errors import PolicyRejectedError
from gateway.policy.secret import SecretError
from gateway.store.engine import StoreError

PLAIN_WIDTH = 140
WHYS_MOST, SKIPPED_MOST = 5, 10
AGAIN = " (again)"
_STYLES = {Verdict.WORSE: "bold red", Verdict.BETTER: "bold green", Verdict.NOT_ENOUGH: "dim"}


def replay(
    file: Annotated[Path | None, typer.Argument(help="JSONL of request bodies, or OpenAI's batch format.")] = None,
    *,
    samples: Annotated[bool, typer.Option("--samples", help="Replay stored samples instead of a file.")] = False,
    requests: Annotated[str, typer.Option(help="The samples of these requests: ids, with commas.")] = "",
    database: Annotated[str | None, typer.Option(help="Where samples are: a URL, or env:NAME.")] = None,
    state_dir: Annotated[
        Path | None, typer.Option(help="Or the gateway's state directory. Default: as --config says; var/quantgate.")
    ] = None,
    samples_key: Annotated[
        str | None,
        typer.Option(help=f"Key that opens samples: env:NAME or file:PATH. Default: as --config says; {DEFAULT_KEY}."),
    ] = None,
    bucket: Annotated[str, typer.Option(help="Samples of this bucket.")] = "",
    from_pool: Annotated[str, typer.Option(help="Samples that this pool answered.")] = "",
    tenant: Annotated[str, typer.Option(help="Samples of this tenant.")] = "",
    most: Annotated[int, typer.Option(min=1, help="At most so many requests.")] = 1000,
    pool: Annotated[list[str] | None, typer.Option(help="Target NAME=URL; repeat. The first is the baseline.")] = None,
    config: Annotated[Path | None, typer.Option(help="Policy whose pools --to names.")] = None,
    to: Annotated[str, typer.Option(help="Pools of --config, with commas; the first is the baseline.")] = "",
    model: Annotated[str | None, typer.Option(help="Model name to send instead of the request's.")] = None,
    key: Annotated[str | None, typer.Option(help="Bearer token for --pool targets: env:NAME or file:PATH.")] = None,
    noise: Annotated[bool, typer.Option("--noise", help="Run the baseline twice: its difference to itself.")] = False,
    at_once: Annotated[int, typer.Option(min=1, max=256, help="Requests under way at a time.")] = 4,
    timeout_s: Annotated[float, typer.Option(min=1.0, help="Seconds for a whole answer.")] = 300.0,
    task: Annotated[str, typer.Option(help="Task where it is unknown: chat, code, rag, extraction, tools.")] = "chat",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="JSONL, a line for each request.")] = None,
    answers: Annotated[bool, typer.Option("--answers", help="Put the answers' texts into --output.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The totals as JSON.")] = False,
) -> None:
    """Send stored or given requests to chosen pools and compare the answers with the first pool's."""
    try:
        targets = _targets(pool or [], config, to, model, key)
        ids = [name.strip() for name in requests.split(",") if name.strip()]
        if (samples or bool(ids)) == (file is not None):
            raise TargetError("say what is replayed: a FILE, --samples, or --requests")
        if file is not None:
            items = _checked(from_file(file)[:most])
        else:
            kept = Kept(config, database, state_dir, samples_key)
            items = _checked(kept.requests(ids) if ids else kept.matching(bucket, from_pool, tenant, most))
        items = [msgspec.structs.replace(item, task=item.task or task) for item in items]
        results = _run(
            items, targets, noise=noise, at_once=at_once, timeout_s=timeout_s, output=output, answers=answers
        )
    except (TargetError, StoredError, StoreError, SecretError, PolicyRejectedError, OSError) as error:
        give_up("replay", error)
    except SQLAlchemyError as error:
        give_up("replay", f"the database cannot be read: {said(error)}")
    skipped = [item for item in items if item.problem]
    if as_json:
        sys.stdout.write(json.dumps(_values(results, skipped), indent=2) + "\n")
    else:
        show(results, skipped, sys.stdout)


def _targets(pools: Sequence[str], config: Path | None, to: str, model: str | None, key: str | None) -> list[Target]:
    names = [name.strip() for name in to.split(",") if name.strip()]
    if bool(names) != (config is not None):
        raise TargetError("--config and --to belong together: --config POLICY --to POOL,POOL")
    targets = named(pools, model, key)
    if config is not None:
        targets += of_policy(config, names, model)
    if not targets:
        raise TargetError("nothing is sent without a target: --pool NAME=URL, or --config POLICY --to POOL,…")
    doubles = {target.name for target in targets if [other.name for other in targets].count(target.name) > 1}
    if doubles:
        raise TargetError(f"two targets are called {sorted(doubles)[0]}: name them apart")
    return targets


def _checked(items: list[Item]) -> list[Item]:
    """The items, if any of them can be sent."""
    if not any(True for _ in sendable(items)):
        why = f": {items[0].id}: {items[0].problem}" if items else ""
        raise TargetError(f"there is nothing to replay{why}")
    return items


def _run(
    items: list[Item],
    targets: list[Target],
    *,
    noise: bool,
    at_once: int,
    timeout_s: float,
    output: Path | None,
    answers: bool,
) -> Results:
    """Send everything; results are counted and written as they come."""
    legs = [*targets, msgspec.structs.replace(targets[0], name=targets[0].name + AGAIN)] if noise else targets
    results = Results([leg.name for leg in legs], noise=noise, with_answers=answers)
    with ExitStack() as stack:
        out = stack.enter_context(output.open("w", encoding="utf-8")) if output is not None else None

        def done(item: Item, replies: list[Reply]) -> None:
            line = results.add(item, replies)
            if out is not None:
                out.write(json.dumps(line, ensure_ascii=False) + "\n")

        async def run() -> None:
            async with Sender(timeout_s, connections=at_once * 2) as sender:
                await bounded(sender, list(sendable(items)), legs, at_once, done)

        began = time.monotonic()
        asyncio.run(run())
        results.took_s = time.monotonic() - began
    return results


def show(results: Results, skipped: Sequence[Item], out: TextIO) -> None:
    """A table with one row a pool, and below it why requests failed, what the noise is, and what was not sent."""
    console = Console(file=out, highlight=False, width=None if out.isatty() else PLAIN_WIDTH)
    console.print(_grid(results))
    for totals in results.pools:
        for why, count in sorted(totals.why_failed.items(), key=lambda found: -found[1])[:WHYS_MOST]:
            console.print(Text(f"{totals.pool}: {count} failed: {why}", "yellow"))
    console.print(_on_noise(results))
    for item in skipped[:SKIPPED_MOST]:
        console.print(Text(f"not sent: {item.id}: {item.problem}", "yellow"))
    if len(skipped) > SKIPPED_MOST:
        console.print(Text(f"not sent: {len(skipped) - SKIPPED_MOST} more", "yellow"))


def _grid(results: Results) -> Grid:
    grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False)
    grid.add_column("pool", no_wrap=True)
    for column in ("failed", "TTFT P50", "TPOT P50", "P95", "total P50", "P95"):
        grid.add_column(column, justify="right", no_wrap=True)
    for column in ("checks failed", "agreement", "exact", "excess"):
        grid.add_column(column, justify="right", overflow="fold")
    for index, totals in enumerate(results.pools):
        values = totals.values()
        against = index > 0 and not totals.pool.endswith(AGAIN)
        grid.add_row(
            totals.pool + ("" if index else ", baseline"),
            f"{totals.failed} of {totals.sent}",
            _time(values["ttft_s"]["p50"]),
            _time(values["tpot_s"]["p50"]),
            _time(values["tpot_s"]["p95"]),
            _time(values["total_s"]["p50"]),
            _time(values["total_s"]["p95"]),
            ", ".join(f"{count} {name}" for name, count in sorted(totals.failures.items())) or "0",
            _span(values["agreement"]) if against else "",
            _share(values["exact"]) if against else "",
            _excess(totals, values) if against else "",
        )
    return grid


def _on_noise(results: Results) -> Text:
    """How far the baseline agrees with itself; of a single pool, which is compared with nothing, how fast it was."""
    known = max(results.pools, key=lambda totals: totals.noise.state.number)
    if known.noise.state.number:
        return Text(f"The baseline agrees with itself: {_span(known.values()['noise'])}.", "dim")
    if len(results.pools) == 1:
        return Text(_throughput(results.pools[0], results.took_s))
    return Text("Without --noise nobody knows how far the baseline agrees with itself.", "dim")


def _throughput(totals: Totals, took_s: float) -> str:
    """Of a pool that had all the requests under way to itself: with several they take turns."""
    answered = totals.sent - totals.failed
    rates = f"{answered / took_s:.3g} answers/s, {totals.tokens / took_s:.3g} output tokens/s"
    return f"{totals.pool}: {answered} answers in {duration(took_s)}: {rates}."


def _excess(totals: Totals, values: dict[str, Any]) -> Text:
    verdict = totals.verdict
    if verdict is None:
        return Text("–", "dim")
    found = values["excess"]
    text = f"{found['value']:+.3f} [{found['lower']:+.3f}, {found['upper']:+.3f}] {verdict}"
    return Text(text, _STYLES[verdict])


def _share(found: dict[str, Any]) -> str:
    if found["value"] is None:
        return "–"
    return f"{100 * found['value']:.1f} % [{100 * found['lower']:.1f}–{100 * found['upper']:.1f}]"


def _span(found: dict[str, Any]) -> str:
    return "–" if found["value"] is None else f"{found['value']:.3f} [{found['lower']:.3f}–{found['upper']:.3f}]"


def _time(seconds: float | None) -> str:
    return "–" if seconds is None else duration(seconds)


def _values(results: Results, skipped: Sequence[Item]) -> dict[str, Any]:
    return {
        "pools": [totals.values() for totals in results.pools],
        "took_s": round(results.took_s, 3),
        "not_sent": [{"id": item.id, "problem": item.problem} for item in skipped],
    }
