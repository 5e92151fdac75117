"""The second part from its policy to its proof: edit, traffic and watching side by side, then the accounts compared.

Owns the order of things and how long they may take. Called by ``gateway.demo.run`` when the first part is over, whose
servers and gateway it uses.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence

import msgspec

from gateway.demo.client import Clients
from gateway.demo.fleet import RunningServer
from gateway.demo.gateway_process import GatewayProcess
from gateway.demo.gathering import Witnesses
from gateway.demo.interrupt import Interrupts
from gateway.demo.policy import DemoPolicyError, compiled, find_policy, place, with_addresses
from gateway.demo.rollout import summary
from gateway.demo.rollout.findings import Found, checks
from gateway.demo.rollout.notes import Requests, Way
from gateway.demo.rollout.screen import Board, board_for
from gateway.demo.rollout.standing import ROLLED_BACK, Bucket, Event, read_buckets, read_events
from gateway.demo.rollout.traffic import AT_ONCE, Course, Tally, work
from gateway.demo.screen import Screen
from gateway.model.proving import Rollout

POLICY = "demo-rollout.yaml"
LOOK_S = 0.5
TAKE_UP_S = 30.0
SETTLE_S = 1.0
"""Within it every worker obeys a decision (docs/rollouts.md)."""


class Setting(msgspec.Struct, frozen=True):
    """What stands, and how much may be asked of it. ``first_number``: of its requests; ``longest_s``: of sending."""

    gateway: GatewayProcess
    servers: Sequence[RunningServer]
    keys: Mapping[str, str]
    witnesses: Witnesses
    workers: int
    first_number: int
    seed: int
    longest_s: float


class Ended(msgspec.Struct, frozen=True):
    """What is left of the part. ``good``: every check holds; ``rolled_back``: buckets."""

    good: bool
    rollout: str
    rolled_back: tuple[str, ...]


class Watch:
    """Looks at the rollout while requests run: shows it, and lets the course know what was decided."""

    def __init__(self, gateway: GatewayProcess, rollout: str, board: Board, course: Course, tally: Tally) -> None:
        self.buckets: dict[Way, Bucket] = {}
        self.events: dict[Way, list[Event]] = {}
        self._gateway = gateway
        self._rollout = rollout
        self._board = board
        self._course = course
        self._tally = tally
        self._seen: dict[Way, tuple[str, float]] = {}
        self._began = time.monotonic()

    @property
    def took_s(self) -> float:
        """Since it began."""
        return time.monotonic() - self._began

    async def run(self, longest_s: float) -> None:
        """Look again and again, until cancelled. When the time is over the course is stopped."""
        while True:
            await self.look()
            if self.took_s > longest_s:
                self._course.stop()
            await asyncio.sleep(LOOK_S)

    async def look(self) -> None:
        """Once. A gateway that says nothing at the moment changes nothing."""
        buckets = read_buckets(await asyncio.to_thread(self._gateway.rollouts, self._rollout))
        events = read_events(await asyncio.to_thread(self._gateway.rollout_history, self._rollout))
        self.buckets |= {way: bucket for bucket in buckets.values() if (way := way_of(bucket.bucket)) is not None}
        for event in events:
            way = way_of(event.bucket)
            if way is not None and event not in self.events.setdefault(way, []):
                self.events[way].append(event)
                self._board.event(way, event, self._tally)
        self._settle()
        self._board.show({way: self.buckets[way] for way in Way if way in self.buckets}, self._tally, self.took_s)

    def _settle(self) -> None:
        now = time.monotonic()
        for way, bucket in self.buckets.items():
            state, since = self._seen.get(way, ("", now))
            if bucket.state != state:
                self._seen[way] = bucket.state, now
            elif bucket.decided and now - since >= SETTLE_S:
                self._course.settle(way, bucket.state)


def way_of(bucket: str) -> Way | None:
    """The way whose requests are in that bucket."""
    return next((way for way in Way if way.value in bucket.split("/")), None)


def run(setting: Setting, screen: Screen, interrupts: Interrupts) -> Ended:
    """The whole part. Raises the parts' own errors, and ``Interrupted``."""
    gateway = setting.gateway
    generations = take_up(gateway, _policy_text(setting.servers), setting.workers)
    table = compiled(gateway.options.policy)
    plan = table.rollouts[0]
    summary.show_head(screen, table, plan, generations, AT_ONCE)
    since = setting.witnesses.mark()
    watch, course, tally = interrupts.run(_run(setting, screen, plan))
    items = [sent.request.item for sent in tally.sent]
    answers = {sent.answer.number: sent.answer for sent in tally.sent}
    found = Found(
        plan.candidate,
        plan.baseline,
        watch.buckets,
        watch.events,
        course.decisions,
        tally.sent,
        setting.witnesses.gather(items, answers, since),
        watch.took_s,
    )
    proven = checks(found)
    summary.show(screen.console, found, proven)
    out = tuple(bucket.bucket for bucket in watch.buckets.values() if bucket.state == ROLLED_BACK)
    return Ended(all(check.holds for check in proven), plan.name, out)


def _policy_text(servers: Sequence[RunningServer]) -> str:
    text = find_policy(POLICY).read_text()
    return with_addresses(text, {server.spec.name: server.url for server in servers})


def take_up(gateway: GatewayProcess, text: str, workers: int) -> tuple[int, int]:
    """Write the policy over the one that is served, and wait until all workers decide by it: both generations."""
    before = int(gateway.state().get("generation") or 0)
    place(gateway.options.policy, text)
    compiled(gateway.options.policy)
    deadline = time.monotonic() + TAKE_UP_S
    while True:
        state = gateway.state()
        generation = int(state.get("generation") or 0)
        if generation > before and state.get("workers", {}).get("on_current_generation") == workers:
            return before, generation
        gateway.check()
        if time.monotonic() > deadline:
            raise DemoPolicyError(f"the gateway did not take up {POLICY} within {TAKE_UP_S:.0f} s")
        time.sleep(LOOK_S)


async def _run(setting: Setting, screen: Screen, plan: Rollout) -> tuple[Watch, Course, Tally]:
    """Requests and watching side by side. A part's own error comes out as itself."""
    course = Course(Requests(setting.first_number, setting.seed), setting.seed)
    tally = Tally()
    board = board_for(screen, plan.candidate, plan.baseline)
    watch = Watch(setting.gateway, plan.name, board, course, tally)
    async with Clients(f"{setting.gateway.url}/v1", setting.keys) as clients:
        try:
            with board.shown():
                async with asyncio.TaskGroup() as group:
                    watching = group.create_task(watch.run(setting.longest_s))
                    await asyncio.wait([group.create_task(work(clients, course, tally)) for _ in range(AT_ONCE)])
                    watching.cancel()
                await watch.look()
        except ExceptionGroup as several:
            raise several.exceptions[0] from several
    return watch, course, tally
