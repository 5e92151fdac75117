"""One fault in one bucket, second by second, through the production engine: when it trips and whom it hurt.

Owns the simulated world around the engine: shares are obeyed at once, every proposal is stored. Outcomes arrive as
long after their dispatch as they took. Deterministic for a seed.
"""

import random
from collections import deque
from collections.abc import Mapping

import msgspec

from gateway.control import guards as guarding
from gateway.control.rehearsal.faults import Fault
from gateway.control.rehearsal.requests import Drawn, draw_pair, draw_request, inspected
from gateway.control.rollouts import Engine
from gateway.core.evidence import Budget
from gateway.core.rollout import Event, EventKind, Headroom, State
from gateway.model.messages import Start, Starts
from gateway.model.proving import Rollout
from gateway.model.table import Table

START_S = 1_700_000_000.0
TURN_S = 1.0
TASKS = ("chat", "code", "rag")


class ScenarioReport(msgspec.Struct, frozen=True):
    """What a fault did. ``after_s`` None = it was not noticed in time. ``hurt``: bad answers of the candidate from the
    fault on; ``served``: all of them. ``elsewhere``: other buckets that were rolled back although nothing ailed them.
    ``kept``: the share of live traffic that the candidate had."""

    fault: str
    seed: int
    after_s: float | None
    state: str
    hurt: int
    served: int
    elsewhere: int
    kept: float
    reason: str


class Quiet:
    """Everything is ready; nothing is known of loads."""

    def ready(self, pool: str) -> bool:
        """Always."""
        return True

    def absence(self, pool: str) -> str:
        """Never."""
        return ""

    def headroom(self, plan: Rollout, bucket_share: float) -> Headroom | None:
        """Unknown."""
        return None


class World:
    """An engine with its simulated traffic: ``rate`` requests and ``pairs`` shadow pairs a second and bucket."""

    def __init__(
        self, table: Table, budget: Budget, plan: Rollout, *, buckets: int, rate: float, pairs: float, seed: int
    ) -> None:
        self.now_s = START_S
        self.plan = plan
        self.table = table
        self.rand = random.Random(seed)  # noqa: S311 - a simulation
        self.engine = Engine(Quiet())
        self.engine.apply(table, budget, {}, self.now_s)
        self.engine.restore([], None, self.now_s)
        names = [(f"bucket-{number}", TASKS[number % len(TASKS)], "short") for number in range(1, buckets + 1)]
        self.buckets = names
        self._rate = rate
        self._pairs = pairs
        self._number = 0
        self._open: deque[tuple[float, Drawn]] = deque()

    def share(self, bucket: str) -> int:
        """The share in force in basis points."""
        standing = self.engine.standings.get((self.plan.identity, bucket))
        return standing.share_bp if standing is not None else 0

    def state(self, bucket: str) -> State:
        """The bucket's state."""
        return self.engine.standings[self.plan.identity, bucket].state

    def second(self, levels: Mapping[str, Mapping[str, float]]) -> list[Drawn]:
        """A second of traffic and a turn; ``levels`` by pool, the first bucket's faults under ``pool!``."""
        drawn = []
        for index, bucket in enumerate(self.buckets):
            part = [self._request(bucket, levels, faulty=index == 0) for _ in range(self._arrivals(self._rate))]
            starts: dict[str, int] = {}
            for one in part:
                pool = one.scored.outcome.kind.pool
                starts[pool] = starts.get(pool, 0) + 1
            counts = [Start(int(self.now_s), bucket[0], pool, number) for pool, number in starts.items()]
            self.engine.take_starts(Starts(0, counts))
            drawn += part
            self._pair_up(bucket[0], levels, faulty=index == 0)
        self._open.extend((self.now_s + one.scored.outcome.attempts[0].took_s, one) for one in drawn)
        self.now_s += TURN_S
        ended = [one.scored for due_s, one in self._open if due_s <= self.now_s]
        self._open = deque(item for item in self._open if item[0] > self.now_s)
        self.engine.take_outcomes([scored.outcome for scored in ended], self.now_s)
        self.engine.take_scored(ended, self.now_s)
        for proposal in self.engine.turn(self.now_s):
            self.engine.accept(proposal)
        return drawn

    def promote_to(self, stage: int) -> None:
        """People take every bucket to a stage, past the evidence."""
        for bucket, _, _ in self.buckets:
            at = (self.plan.identity, bucket)
            for person in range(10 * (stage + 1)):
                standing = self.engine.standings[at]
                if standing.stage >= stage or standing.state is State.PROMOTED:
                    break
                event = Event(EventKind.PROMOTE, self.now_s, "rehearsal", f"person {person}")
                found = self.engine.command(at, event)
                if not isinstance(found, str):
                    self.engine.accept(found)

    def _arrivals(self, rate: float) -> int:
        whole = int(rate)
        return whole + (self.rand.random() < rate - whole)

    def _request(
        self, bucket: tuple[str, str, str], levels: Mapping[str, Mapping[str, float]], *, faulty: bool
    ) -> Drawn:
        share = min(self.share(bucket[0]), 10_000 - self.plan.control_bp) / 10_000
        pool = self.plan.candidate if self.rand.random() < share else self.plan.baseline
        self._number += 1
        return draw_request(
            self.plan,
            self.table.guards,
            levels.get(f"{pool}!", levels[pool]) if faulty else levels[pool],
            bucket=bucket,
            pool=pool,
            at_s=self.now_s,
            number=self._number,
            rand=self.rand,
        )

    def _pair_up(self, bucket: str, levels: Mapping[str, Mapping[str, float]], *, faulty: bool) -> None:
        names = [name for name in self.plan.guards if self.table.guards[name].metric in guarding.PAIRS]
        arms = [levels[self.plan.baseline], levels[self.plan.candidate]]
        if faulty:
            arms = [levels.get(f"{pool}!", levels[pool]) for pool in (self.plan.baseline, self.plan.candidate)]
        loss = max((arms[1].get(name, 0.0) for name in names), default=0.0)
        for _ in range(self._arrivals(self._pairs)):
            self._number += 1
            pair, scored = draw_pair(
                self.plan, bucket=bucket, at_s=self.now_s, number=self._number, loss=loss, rand=self.rand
            )
            checks = [
                inspected(
                    self.plan,
                    self.table.guards,
                    {name: self.rand.random() < arm.get(name, 0.0) for name in self.plan.guards},
                )
                for arm in arms
            ]
            self.engine.take_pair(pair, scored, *checks)


def run_scenario(
    table: Table,
    budget: Budget,
    plan: Rollout,
    fault: Fault,
    levels: Mapping[str, float],
    *,
    stage: int,
    seed: int,
    rate: float = 5.0,
    pairs: float = 1.0,
    buckets: int = 3,
    before_s: int = 300,
    most_s: int = 3_600,
) -> ScenarioReport:
    """Health for a while, then the fault until it is answered or the time is up."""
    world = World(table, budget, plan, buckets=buckets, rate=rate, pairs=pairs, seed=seed)
    healthy = {plan.candidate: levels, plan.baseline: levels}
    while len(world.engine.standings) < buckets or any(
        world.state(name) is State.PENDING for name, _, _ in world.buckets
    ):
        world.second(healthy)
    world.promote_to(stage)
    for _ in range(before_s):
        world.second(healthy)
    return _strike(world, fault, levels, seed=seed, most_s=most_s)


def _strike(world: World, fault: Fault, levels: Mapping[str, float], *, seed: int, most_s: int) -> ScenarioReport:
    plan, bucket = world.plan, world.buckets[0][0]
    struck = {**levels, fault.guard: fault.level}
    faulty: dict[str, Mapping[str, float]] = {plan.candidate: levels, plan.baseline: levels}
    faulty[f"{plan.candidate}!"] = struck
    if fault.everywhere:
        faulty = {plan.candidate: struck, plan.baseline: struck}
    kept, began_s = max(0, world.share(bucket)) / 10_000, world.now_s
    hurt = served = 0
    answered: float | None = None
    while world.now_s - began_s < most_s:
        for one in world.second(faulty):
            outcome = one.scored.outcome
            if outcome.kind.pool == plan.candidate and outcome.kind.bucket == bucket:
                served += 1
                hurt += one.bad
        if world.state(bucket) in (State.ROLLED_BACK, State.HOLDING, State.FROZEN):
            answered = world.now_s - began_s
            break
    standing = world.engine.standings[plan.identity, bucket]
    elsewhere = sum(world.state(name) is State.ROLLED_BACK for name, _, _ in world.buckets[1:])
    reason = standing.reason if answered is not None else "not noticed in time"
    return ScenarioReport(fault.name, seed, answered, standing.state.value, hurt, served, elsewhere, kept, reason)
