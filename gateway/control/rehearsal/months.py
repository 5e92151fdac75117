"""Months of health, in counts per block instead of single requests, through the same judge, turns and transitions.

Owns the drawing of counts: binomial for rates, differences for pairs. How often a healthy pool is rolled back, and when
it is promoted, at a speed of about a month in half a minute for one bucket. Deterministic for a seed.
"""

import dataclasses
import random
from collections.abc import Mapping
from math import log

import msgspec

from gateway.control.guards import Shape, Source, Wanted
from gateway.control.rehearsal.levels import DISCORDANT
from gateway.control.rehearsal.scenario import START_S, Quiet
from gateway.control.rollouts import Engine
from gateway.control.rollouts_runs import Run
from gateway.core.evidence import BASELINE, CANDIDATE, Budget, Feed, SeriesKey
from gateway.core.evidence.blocks import BAD, GOOD
from gateway.core.rollout import EventKind, State, begin_standing
from gateway.model.proving import Rollout
from gateway.model.table import Table

MONTH_S = 30.4375 * 86_400.0
STEP_S = 60.0
_OF_PAIRS = frozenset({Source.PAIRS, Source.MISSING, Source.SHADOW_ERRORS, Source.SHADOW_LATENCY, Source.SHADOW_CHECKS})
UNGUARDED = 0.001
"""How often an answer of a healthy pool is of no use at all, where no guard says."""


class MonthsReport(msgspec.Struct, frozen=True):
    """What months of health did. ``promoted_after_s`` per bucket that got through; ``holds`` are stages out of time."""

    months: float
    buckets: int
    false_rollbacks: int
    incidents: int
    holds: int
    promoted_after_s: tuple[float, ...]
    promised: float
    reasons: tuple[str, ...]


def run_months(
    table: Table,
    budget: Budget,
    plan: Rollout,
    levels: Mapping[str, float],
    *,
    months: float,
    seed: int,
    rate: float = 1.0,
    pairs: float = 0.05,
    buckets: int = 1,
) -> MonthsReport:
    """``rate`` requests and ``pairs`` shadow pairs a second and bucket; people approve whatever asks."""
    rand = random.Random(seed)  # noqa: S311 - a simulation
    easy = msgspec.structs.replace(plan, approvals=0, reentry_after_s=86_400.0, reentry_most=1_000_000)
    simulated = dataclasses.replace(table, rollouts=(easy,))
    engine = Engine(Quiet())
    engine.apply(simulated, budget, {}, START_S)
    names = [f"bucket-{number}" for number in range(1, buckets + 1)]
    engine.restore([begin_standing(easy, name, "", START_S, ()) for name in names], None, START_S)
    seen: dict[str, int] = {}
    promoted: list[float] = []
    reasons: list[str] = []
    now_s = START_S
    while now_s - START_S < months * MONTH_S:
        for run in engine.runs.values():
            _Step(engine, run, levels, rand).feed(now_s, rate=rate, pairs=pairs)
        now_s += STEP_S
        for proposal in engine.turn(now_s):
            engine.accept(proposal)
            kind, state = proposal.event.kind, proposal.stepped.standing.state
            seen[kind.value] = seen.get(kind.value, 0) + 1
            if state is State.PROMOTED:
                promoted.append(now_s - START_S)
            if kind is EventKind.FAIL:
                reasons.append(proposal.event.reason)
    watched = len(engine.judge.keys())
    return MonthsReport(
        months=months,
        buckets=buckets,
        false_rollbacks=seen.get("fail", 0),
        incidents=seen.get("incident", 0),
        holds=seen.get("timeout", 0),
        promoted_after_s=tuple(promoted),
        promised=engine.judge.lumps_granted(now_s) + budget.drip_per_s * watched * (now_s - START_S),
        reasons=tuple(reasons[:10]),
    )


class _Step:
    """One step of traffic into every series of a run, block by block."""

    def __init__(self, engine: Engine, run: Run, levels: Mapping[str, float], rand: random.Random) -> None:
        self._judge = engine.judge
        self._run = run
        self._levels = levels
        self._rand = rand

    def feed(self, now_s: float, *, rate: float, pairs: float) -> None:
        """Everything that happens in ``STEP_S`` seconds from ``now_s`` on."""
        run = self._run
        candidate, baseline = run.plan.candidate, run.plan.baseline
        share = min(max(0, run.standing.share_bp), 10_000 - run.plan.control_bp) / 10_000
        arms = {candidate: share * rate, baseline: (1.0 - share) * rate}
        for one in run.feed.wanted:
            # A product's factors multiply up alike however its outcomes are cut into blocks.
            block_s = STEP_S if one.spec.feed is Feed.PRODUCT else min(one.spec.block_s, STEP_S)
            for number in range(max(1, round(STEP_S / block_s))):
                at_s = now_s + number * block_s
                if one.source in _OF_PAIRS:
                    self._pairs(one, at_s, _poisson(pairs * block_s, self._rand))
                else:
                    self._block(one, at_s, {pool: _poisson(arm * block_s, self._rand) for pool, arm in arms.items()})
        run.feed.seen[candidate] = run.feed.seen.get(candidate, 0) + round(arms[candidate] * STEP_S)

    def _block(self, one: Wanted, at_s: float, counts: Mapping[str, int]) -> None:
        run, judge = self._run, self._judge
        level = self._levels.get(one.guard.name, UNGUARDED)
        candidate = run.feed.key(one, run.plan.candidate)
        if one.shape is Shape.MARGIN:
            for _ in range(min(counts.values())):
                value = float(self._rand.random() < level) - float(self._rand.random() < level)
                judge.accept(candidate, at_s + STEP_S, value)
            return
        for pool, number in counts.items():
            bad = _binomial(number, level, self._rand)
            mine = pool == run.plan.candidate
            if one.shape is Shape.SHARE:
                lane = CANDIDATE if mine else BASELINE
                judge.accept(candidate, at_s, BAD, bad, lane)
                judge.accept(candidate, at_s, GOOD, number - bad, lane)
            elif number and (one.twin or mine):
                self._count(run.feed.key(one, pool), at_s, number, bad)

    def _pairs(self, one: Wanted, at_s: float, drawn: int) -> None:
        if not drawn:
            return
        key = self._run.feed.key(one, self._run.plan.candidate)
        if one.source is Source.SHADOW_CHECKS and one.shape is Shape.PAIR:
            level = self._levels.get(one.guard.name, UNGUARDED)
            mine, theirs = _binomial(drawn, level, self._rand), _binomial(drawn, level, self._rand)
            for value, count in ((0.0, max(0, drawn - mine - theirs)), (1.0, mine), (-1.0, theirs)):
                self._judge.accept(key, at_s, value, count)
        elif one.shape is Shape.PAIR:
            loss = self._levels.get(one.guard.name, 0.0)
            differs = _binomial(drawn, DISCORDANT, self._rand)
            worse = _binomial(differs, 0.5 + loss / (2.0 * DISCORDANT), self._rand)
            for value, count in ((0.0, drawn - differs), (1.0, worse), (-1.0, differs - worse)):
                self._judge.accept(key, at_s, value, count)
        elif one.source is Source.MISSING:
            self._judge.accept(key, at_s, GOOD, drawn)
        elif self._run.feed.shadowing:
            level = self._levels.get(one.guard.name, UNGUARDED)
            self._count(key, at_s, drawn, _binomial(drawn, level, self._rand))

    def _count(self, key: SeriesKey, at_s: float, number: int, bad: int) -> None:
        self._judge.accept(key, at_s, GOOD, number - bad)
        self._judge.accept(key, at_s, BAD, bad)


def _poisson(mean: float, rand: random.Random) -> int:
    """Arrivals, by adding up waits; means here are small."""
    if mean > 200.0:
        return max(0, round(rand.gauss(mean, mean**0.5)))
    total, count = 0.0, -1
    while total < mean:
        total += rand.expovariate(1.0)
        count += 1
    return max(0, count)


def _binomial(number: int, share: float, rand: random.Random) -> int:
    """Bad ones among ``number``, by skipping over good ones; exact, and quick where the share is small."""
    if number <= 0 or share <= 0.0:
        return 0
    if share >= 1.0:
        return number
    if share > 0.5:
        return number - _binomial(number, 1.0 - share, rand)
    found, place, scale = 0, 0, log(1.0 - share)
    while True:
        place += int(log(1.0 - rand.random()) / scale) + 1
        if place > number:
            return found
        found += 1
