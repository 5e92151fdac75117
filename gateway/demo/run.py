"""The demo from its first line to its last: weights, servers, gateway, workload with two edits, report.

Owns the order of things and that all of them end. Everything that is started is on one ``ExitStack``, and signals are
held before it unwinds. Called by ``gateway.cli.demo``, which makes the screen and says how to keep processes from
outliving this one.
"""

import asyncio
import contextlib
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Coroutine, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec

from gateway.demo import keep, report
from gateway.demo.client import Answer, Clients, require_openai, right
from gateway.demo.edit import Editor, Edits, check_edits
from gateway.demo.fleet import Fleet, RunningServer, demo_specs
from gateway.demo.gateway_process import GatewayOptions, GatewayProcess, PreExec
from gateway.demo.gathering import Witnesses
from gateway.demo.interrupt import Interrupted, Interrupts
from gateway.demo.policy import EDITED_ROUTE, bans, compiled, find_policy, key_variable, place, with_addresses
from gateway.demo.proof import Check, Evidence, checks
from gateway.demo.rollout import chapter
from gateway.demo.screen import Screen
from gateway.demo.traffic import AT_ONCE, Runner, edit
from gateway.demo.weights import cache_dir, obtain
from gateway.demo.workload import STRANGER, TENANTS, Step, items_of, workload

GONE_S = 5.0
_POLL_S = 0.1


class Options(msgspec.Struct, frozen=True):
    """What ``quantgate demo`` was asked for. ``folder`` None = a temporary one, removed at the end. ``rollout``: with
    the second part, which sends requests for ``rollout_s`` at most.
    """

    requests: int = 72
    seed: int = 7
    listen: str = "127.0.0.1:0"
    admin: str = "127.0.0.1:0"
    workers: int = 2
    keep: bool = False
    folder: Path | None = None
    rollout: bool = True
    rollout_s: float = 240.0


class Stage(msgspec.Struct):
    """What stands when the workload begins."""

    options: Options
    folder: Path
    servers: tuple[RunningServer, ...]
    gateway: GatewayProcess
    keys: dict[str, str]


def demo(options: Options, screen: Screen, interrupts: Interrupts, before_exec: PreExec = None) -> bool:
    """Run it; True = every check holds. Raises the parts' own errors, which say what to do, and ``Interrupted``."""
    with ExitStack() as stack:
        try:
            stage = _set_up(options, screen, stack, before_exec)
            good = _play(stage, screen, interrupts)
        finally:
            interrupts.hold()
        screen.line("\nStopping the gateway and the servers.")
    return good


def _play(stage: Stage, screen: Screen, interrupts: Interrupts) -> bool:
    """Both parts, and what follows with ``--keep``."""
    options = stage.options
    steps = workload(options.requests, options.seed)
    witnesses = Witnesses(stage.gateway, stage.servers, stage.folder / "servers")
    before = witnesses.mark()
    began = time.monotonic()
    answers, edits = interrupts.run(_run_workload(stage, screen, steps))
    took_s = time.monotonic() - began
    evidence = witnesses.gather(items_of(steps), answers, before)
    result = _judge(stage, evidence, edits, took_s)
    report.show(screen.console, result)
    ended: chapter.Ended | None = None
    if options.rollout:
        ended = chapter.run(_setting(stage, witnesses), screen, interrupts)
    if options.keep:
        with contextlib.suppress(Interrupted):  # that is how it ends
            keep.show(screen.console, stage.gateway, stage.servers, stage.keys, ended)
            interrupts.wait(stage.gateway.check, keep.LOOK_S)
    return result.good and (ended is None or ended.good)


def _setting(stage: Stage, witnesses: Witnesses) -> chapter.Setting:
    """What the second part finds."""
    options = stage.options
    return chapter.Setting(
        stage.gateway,
        stage.servers,
        stage.keys,
        witnesses,
        options.workers,
        options.requests + 1,
        options.seed,
        options.rollout_s,
    )


def _set_up(options: Options, screen: Screen, stack: ExitStack, before_exec: PreExec) -> Stage:
    """Weights, servers, gateway; each is stopped by the stack."""
    policy_text = find_policy().read_text()
    if options.rollout:
        find_policy(chapter.POLICY)  # told now, and not after the first part
    require_openai()
    report.show_head(screen.console)
    with screen.step("weights", "SmolLM2-135M-Instruct in three precisions") as said:
        files = obtain(cache_dir(os.environ), lambda text: screen.labelled("", f"[dim]{text}[/]"))
        said.append("SmolLM2-135M-Instruct (Apache-2.0), one model in three precisions")
    folder = _folder(options, stack)
    fleet = Fleet(demo_specs(files), log_dir=folder / "servers")
    stack.callback(fleet.stop)
    with screen.step("pools", "starting three llama.cpp servers") as said:
        servers = fleet.start()
        said.append("three llama.cpp servers, one thread and two slots each")
    keys = {tenant: f"demo-{tenant}-{secrets.token_hex(6)}" for tenant in TENANTS}
    policy = folder / "policy" / "demo.yaml"
    policy.parent.mkdir(parents=True, exist_ok=True)
    place(policy, with_addresses(policy_text, {server.spec.name: server.url for server in servers}))
    compiled(policy)
    environment = {key_variable(tenant): key for tenant, key in keys.items()}
    gateway = GatewayProcess(
        GatewayOptions(policy, folder, options.listen, options.admin, options.workers, environment), before_exec
    )
    stack.callback(gateway.stop)
    gateway.launch()
    with screen.step("gateway", "starting quantgate serve") as said:
        gateway.wait_ready()
        said.append(f"quantgate serve on {gateway.url}: supervisor, control, {options.workers} workers")
    report.show_pools(screen, servers, gateway.endpoints())
    return Stage(options, folder, servers, gateway, keys)


def _folder(options: Options, stack: ExitStack) -> Path:
    if options.folder is None:
        folder = Path(tempfile.mkdtemp(prefix="quantgate-demo-"))
        stack.callback(_remove, folder)
        return folder
    options.folder.mkdir(parents=True, exist_ok=True)
    (options.folder / "access.log").unlink(missing_ok=True)  # of an earlier run; the gateway would append to it
    return options.folder.resolve()


def _remove(folder: Path) -> None:
    """Remove a temporary folder. A process that is being killed may still put a file into it: it is tried again."""
    deadline = time.monotonic() + GONE_S
    while folder.exists():
        shutil.rmtree(folder, ignore_errors=True)
        if time.monotonic() > deadline:
            return
        time.sleep(_POLL_S)


# the workload


async def _run_workload(stage: Stage, screen: Screen, steps: Sequence[Step]) -> tuple[dict[int, Answer], Edits]:
    """Send everything, ``AT_ONCE`` at a time, with the edits in between."""
    gateway, pools = stage.gateway, [server.spec.name for server in stage.servers]
    items = items_of(steps)
    order = next(route.pools for route in compiled(gateway.options.policy).routes if route.name == EDITED_ROUTE)
    editor = Editor(gateway.options.policy, order, stage.options.workers, gateway.state)
    keys = {**stage.keys, STRANGER: "demo-stranger"}
    async with Clients(f"{gateway.url}/v1", keys) as clients:
        report.show_workload(screen, items, clients.version, AT_ONCE, stage.options.seed)
        with screen.workload(len(items), pools) as tally:
            runner = Runner(clients, steps, tally)
            return runner.answers, await _side_by_side(runner, edit(editor, runner, tally, gateway))


async def _side_by_side(runner: Runner, editing: Coroutine[Any, Any, Edits]) -> Edits:
    """The edits beside the requests. A part's own error comes out as itself."""
    try:
        async with asyncio.TaskGroup() as group:
            edits = group.create_task(editing)
            for _ in range(AT_ONCE):
                group.create_task(runner.work())
    except ExceptionGroup as several:
        raise several.exceptions[0] from several
    return edits.result()


# the judgement


def _judge(stage: Stage, evidence: Evidence, edits: Edits, took_s: float) -> report.Result:
    privileged, long = bans(stage.gateway.options.policy)
    failed = sum(not right(item, evidence.answers[item.number]) for item in evidence.items)
    found: list[Check] = [
        *checks(evidence, privileged, long),
        check_edits(edits, evidence.entries, failed),
    ]
    return report.Result(evidence, edits, tuple(found), took_s)
