"""One bucket of a rollout as it runs: its series in the judge, its verdicts, the steps of its meters.

Owns registration (all series of a bucket or none), the rules by which each guard is asked in a stage, and stage starts
in the judge, also those that another gateway decided. Decides nothing. Called by the engine.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from math import inf
from typing import NamedTuple

import msgspec

from gateway.control import guards
from gateway.control.guards import Shape, Wanted
from gateway.control.rollouts_clock import Since, believed
from gateway.control.rollouts_effect import EVERYTHING, design_effect
from gateway.control.rollouts_feeds import BucketFeed
from gateway.control.rollouts_open import OpenState
from gateway.core.evidence import (
    PAIR_LUMP,
    STAGE_LUMP,
    FedBlock,
    Form,
    Judge,
    Outcome,
    PromotionRule,
    SeriesKey,
    SeriesSpec,
    Verdict,
    release_by_slice,
    suspicion_of,
)
from gateway.core.evidence.promotion import ALPHA, CALM_BELOW, alpha_after_reentries
from gateway.core.evidence.setting import moved
from gateway.core.rollout import Cause, Standing, StartStage, State, stage_begun
from gateway.model.proving import Guard, Rollout, Stage

HISTORY = 120
SILENT_S = 600.0
SILENT_SEEN = 100


class Judged(NamedTuple):
    """What one series says at a moment. ``asked``: it must pass before the stage advances."""

    one: Wanted
    key: SeriesKey
    verdict: Verdict
    asked: bool


class NoSlotError(Exception):
    """The budget has no slots left for all series of the bucket."""


class Run:
    """A (rollout, bucket) with its series. ``incident_s``: when it last tripped without blame."""

    def __init__(self, judge: Judge, plan: Rollout, standing: Standing, found: dict[str, Guard], now_s: float) -> None:
        wanted = (*(one for name in plan.guards for one in guards.series_of(found[name])), *guards.implicit_series())
        if plan.stages[0].kind != "shadow":
            wanted = tuple(one for one in wanted if one.stages != "shadow")
        self.plan = plan
        self.standing = standing
        self.feed = BucketFeed(judge, plan, standing.bucket, wanted, now_s)
        self.feed.shadowing = standing.below is State.SHADOWING
        self.incident_s, self._since = 0.0, Since()
        self.history: dict[SeriesKey, deque[tuple[float, float, int, float]]] = {}
        self._judge = judge
        self._register(now_s)

    @property
    def judge(self) -> Judge:
        """Where its series are."""
        return self._judge

    @property
    def stage(self) -> Stage:
        """The stage it is in."""
        return self.plan.stages[min(self.standing.stage, len(self.plan.stages) - 1)]

    # registration

    def _register(self, now_s: float) -> None:
        judge = self._judge
        pairs = [(one, key, spec) for one in self.feed.wanted for key, spec in self.feed.keys(one)]
        slices = {key: list(self._slices(one, key)) for one, key, _ in pairs}
        known = set(judge.keys())
        needed = {key for _, key, _ in pairs} | {wide for wides in slices.values() for wide, _ in wides}
        if len(known | needed) > judge.budget.slots:
            raise NoSlotError(
                f"its {len(needed - known)} series do not fit: {len(known)} of {judge.budget.slots} slots are taken; "
                "raise guards.false_rollbacks.series, or watch fewer buckets or guards"
            )
        for _, key, spec in pairs:
            for wide, wide_spec in slices[key]:
                if wide not in known:
                    judge.register(wide, wide_spec, now_s)
                    judge.start_stage(wide, now_s, STAGE_LUMP)
                    known.add(wide)
            out = self.standing.state in (State.ROLLED_BACK, State.PENDING)
            judge.register(key, spec, now_s, () if out else [wide for wide, _ in slices[key]])

    def _slices(self, one: Wanted, key: SeriesKey) -> Iterator[tuple[SeriesKey, SeriesSpec]]:
        if not (one.asked and one.stages == "live" and one.spec.form in (Form.RATE, Form.SESSION)):
            return
        # Over all its buckets the baseline shows sooner how much its outcomes repeat each other.
        measures = key.pool == self.plan.baseline and one.shape is Shape.RATE
        spec = msgspec.structs.replace(one.spec, form=Form.SLICE, limit=0.0, measures_dependence=measures)
        for name in (EVERYTHING, *self.standing.slices):
            yield SeriesKey(one.name, name, key.pool), spec

    def series_keys(self) -> Iterator[tuple[Wanted, SeriesKey]]:
        """Every series of the bucket, the twins' too."""
        for one in self.feed.wanted:
            for key, _ in self.feed.keys(one):
                yield one, key

    def in_slice(self, name: str) -> bool:
        """Whether its outcomes count in that slice."""
        return name == EVERYTHING or name in self.standing.slices

    def tripped(self) -> bool:
        """Whether a series of its own has an unanswered trip, or was rolled back by one."""
        own = (key for _, key in self.series_keys() if key.pool == self.plan.candidate)
        return any(self._judge.series(key).trip is not None for key in own)

    def leave_slices(self, at_s: float) -> None:
        """Its outcomes count for itself alone, and the slices forget what they won, for it may have come from here."""
        for one, key in self.series_keys():
            spec = self._judge.series(key).spec
            for wide, wide_spec in self._slices(one, key):
                if key.pool == self.plan.candidate:
                    # From the next block on: the current one holds this bucket's outcomes already.
                    self._judge.start_stage(wide, at_s + wide_spec.block_s, STAGE_LUMP, new_pool=True)
            self._judge.register(key, spec, at_s)

    def join_slices(self, at_s: float) -> None:
        """Its outcomes count in its slices again."""
        for one, key in self.series_keys():
            wider = [wide for wide, _ in self._slices(one, key)]
            self._judge.register(key, self._judge.series(key).spec, at_s, wider)

    # stages

    def start_stage(self, effect: StartStage, at_s: float) -> None:
        """Begin a stage in the judge: lumps, fresh evidence, and for a new pool empty meters."""
        if effect.new_pool:
            self.join_slices(at_s)
            self.feed.culprits.clear()  # requests of the pool before it was mended
        for one, key in self.series_keys():
            mine = key.pool == self.plan.candidate
            pair = one.shape is Shape.PAIR
            lump = STAGE_LUMP
            if pair:
                lump = PAIR_LUMP if effect.new_pool or effect.first_live else 0.0
            self._judge.start_stage(
                key, at_s, lump, keep_evidence=pair and not effect.new_pool, new_pool=effect.new_pool and mine
            )
        self.feed.start_stage(at_s, shadowing=self.standing.below is State.SHADOWING)
        self.history.clear()

    def accept(self, standing: Standing, event_s: float, at_s: float) -> None:
        """A change of this gateway is stored. Its moment ``event_s`` is ``at_s`` by the clock of now."""
        self.standing = standing
        self._since.began(standing, event_s, at_s)

    def adopt(self, before: Standing | None, standing: Standing, now_s: float = inf) -> None:
        """Another gateway moved the bucket: what that does to the series, as of the moment at which it did."""
        self.standing = standing
        if standing.state in (State.ROLLED_BACK, State.PENDING):
            if before is not None and before.state is not standing.state:
                self.leave_slices(believed(standing.since_s, now_s))
            return
        begun = stage_begun(before, standing, self.plan)
        if begun is None:
            return
        unanswered = {key: self._judge.series(key).trip for _, key in self.series_keys()}
        self.start_stage(begun, believed(standing.stage_since_s, now_s))
        if not begun.new_pool:
            # A trip that came to nothing because the other gateway was faster is still to be answered.
            for key, trip in unanswered.items():
                self._judge.series(key).trip = trip

    def note(self, key: SeriesKey, fed: FedBlock) -> None:
        """Keep a meter's step for the record."""
        if fed.number or fed.step.tripped:
            line = (fed.step.end_s, suspicion_of(fed.step.total), fed.number, fed.bad)
            self.history.setdefault(key, deque(maxlen=HISTORY)).append(line)

    def forget_steps(self) -> None:
        """Meters went back: what is noted beyond where they stand comes again."""
        for key, lines in self.history.items():
            end_s = self._judge.series(key).meter.end_s
            self.history[key] = deque((line for line in lines if line[0] <= end_s), maxlen=HISTORY)

    # what survives

    def state(self, every: int = 1) -> OpenState:
        """What is not in the meters, of every so-many'th conversation."""
        since = self._since.state(self.standing)
        return msgspec.structs.replace(self.feed.state(every), incident_s=self.incident_s, since=since)

    def restore(self, state: OpenState) -> None:
        """Go on from there, where the questions are the same."""
        self.incident_s = state.incident_s
        self._since.restore(state.since)
        self.feed.restore(state)

    def since(self, now_s: float) -> tuple[float, float]:
        """When its state and its stage began, by the clock of now."""
        return self._since.of(self.standing, now_s)

    def shift(self, was_s: float, now_s: float) -> None:
        """The clock was set from one moment to another: all that is no series' moves along."""
        self._since.shift(self.standing, was_s, now_s)
        self.incident_s = moved(self.incident_s, was_s, now_s)
        self.feed.shift(was_s, now_s)

    def continue_from(self, before: "Run") -> None:
        """The judge was made anew under another policy: what goes on in it, goes on here."""
        self.feed.turns = before.feed.turns
        self.restore(before.state())
        for _, key in self.series_keys():
            lines = before.history.get(key)
            if lines and self._judge.series(key).spec.same_stakes(before.judge.series(key).spec):
                self.history[key] = lines

    # verdicts

    def judged(self, now_s: float) -> Iterator[Judged]:
        """Every series of the candidate that the current stage feeds."""
        shadowing = self.standing.below is State.SHADOWING
        for one in self.feed.wanted:
            if one.stages not in ("both", "shadow" if shadowing else "live"):
                continue
            key = self.feed.key(one, self.plan.candidate)
            yield Judged(one, key, self._verdict(one, key, now_s), one.asked)

    def _verdict(self, one: Wanted, key: SeriesKey, now_s: float) -> Verdict:
        rule = self._rule(one)
        own = self._judge.verdict(key, now_s, rule)
        if one.calm:
            return self._calm(own, rule)
        if self.standing.cause is Cause.TIME:
            for wide, _ in self._slices(one, key):
                own = release_by_slice(own, self._judge.verdict(wide, now_s, rule))
        return own

    def _rule(self, one: Wanted) -> PromotionRule:
        stage = self.stage
        pairs = one.shape is Shape.PAIR or one.stages == "shadow"
        return PromotionRule(
            alpha=alpha_after_reentries(ALPHA, self.standing.entries),
            least_outcomes=stage.least_pairs if pairs else stage.least_requests,
            least_s=stage.least_s,
            design_effect=design_effect(self._judge, self.feed, one),
        )

    def _calm(self, own: Verdict, rule: PromotionRule) -> Verdict:
        """A guard that can protect but not prove passes while it is calm and has seen traffic enough."""
        seen = self.feed.seen.get(self.plan.candidate, 0)
        if own.outcome is Outcome.FAIL:
            return own
        missing = []
        if seen < rule.least_outcomes or not seen:
            missing.append(f"{seen} of at least {rule.least_outcomes} requests")
        if own.stage_s < rule.least_s:
            missing.append(f"stage runs {own.stage_s:.0f} s of at least {rule.least_s:.0f} s")
        if own.total >= CALM_BELOW:
            missing.append(f"suspicion {own.total:.2g} is not below {CALM_BELOW:g}")
        outcome = Outcome.NOT_ENOUGH if missing else Outcome.PASS
        reasons = tuple(missing) or (f"calm after {seen} requests",)
        return msgspec.structs.replace(own, outcome=outcome, reasons=reasons)

    def silent(self, now_s: float) -> list[str]:
        """Guards that get nothing although the candidate serves: a name or a check that matches nothing."""
        seen = self.feed.seen.get(self.plan.candidate, 0)
        if not self.standing.live or seen < SILENT_SEEN or now_s - self.since(now_s)[1] < SILENT_S:
            return []
        return [
            judged.one.name
            for judged in self.judged(now_s)
            if judged.asked and not judged.one.calm and not judged.verdict.number
        ]


def observer(runs: Iterable[Run]) -> Callable[[SeriesKey, FedBlock], None]:
    """What ``Judge.advance`` tells each run of its own series."""
    by_bucket: dict[str, list[Run]] = {}
    for run in runs:
        by_bucket.setdefault(run.standing.bucket, []).append(run)

    def observe(key: SeriesKey, fed: FedBlock) -> None:
        for run in by_bucket.get(key.bucket, ()):
            run.note(key, fed)

    return observe
