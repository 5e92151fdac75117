"""One bucket as it runs: registration, how guards are asked, stage starts, silence, the record."""

from collections import deque

import msgspec
import pytest

from gateway.control.rollouts_effect import UNMEASURED_EFFECT
from gateway.control.rollouts_runs import SILENT_S, NoSlotError, Run
from gateway.core.evidence import PAIR_LUMP, STAGE_LUMP, Budget, Judge, Outcome, SeriesKey
from gateway.core.rollout import Standing, StartStage, State, begin_standing
from gateway.model.proving import Rollout
from tests.unit.control.rollout_rig import EngineRig, rollout_policy

AT = 1_000.0
GUARDS = """
  errors: {metric: error_rate, limit: 1%}
  json: {metric: format_error_rate, limit: 1%, ratio_to_baseline: 1.0}
  quality: {metric: agreement, margin_to_baseline: 2%}
"""
TABLE = rollout_policy(
    guards=GUARDS,
    names="errors, json, quality",
    stages="[{shadow: 5%, at_least: {pairs: 50}}, {weight: 5%}, {weight: 50%}]",
)
PLAN: Rollout = TABLE.rollouts[0]


def made(judge: Judge, bucket: str = "b") -> Run:
    standing = begin_standing(PLAN, bucket, "r", AT, ("task=chat",))
    return Run(judge, PLAN, standing, dict(TABLE.guards), AT)


def test_all_series_of_a_bucket_are_registered_or_none() -> None:
    """A silent overdraft of the budget would break its promise."""
    judge = Judge(Budget(slots=30))
    made(judge)
    used = len(judge.keys())
    assert used <= 30
    with pytest.raises(NoSlotError, match="slots"):
        made(judge, "b2")
    assert len(judge.keys()) == used


def test_slices_span_buckets_under_names_of_their_own() -> None:
    """All of the pool, and its task; for guards with a limit, not for shadow or implicit series."""
    judge = Judge(Budget())
    run = made(judge)
    slices = {(key.guard, key.bucket) for key in judge.keys() if key.bucket != "b"}  # noqa: SIM118 - a method
    assert slices == {("errors", "*"), ("errors", "task=chat"), ("json", "*"), ("json", "task=chat")}
    assert run.in_slice("*")
    assert run.in_slice("task=chat")
    assert not run.in_slice("task=code")


def test_a_bucket_that_leaves_its_slices_takes_the_block_in_hand_with_it() -> None:
    """What it put there a moment before must not trip the slice for the others."""
    judge = Judge(Budget())
    run = made(judge)
    run.standing = msgspec.structs.replace(run.standing, state=State.STEPPING, below=State.STEPPING, stage=1)
    run.start_stage(StartStage(True), AT)
    wide = SeriesKey("errors", "*", "int4")
    for second in range(45):
        judge.accept(SeriesKey("errors", "b", "int4"), AT + second, 1.0, 50)
    assert judge.series(wide).timeline.pending
    run.leave_slices(AT + 44.5)
    judge.accept(SeriesKey("errors", "b", "int4"), AT + 44.9, 1.0, 50)
    assert judge.series(wide).timeline.pending == {}
    assert {trip.key.bucket for trip in judge.advance(AT + 1_000)} == {"b"}


def test_lumps_are_granted_at_stage_starts_and_to_pairs_only_at_the_first_two() -> None:
    """The ledger counts them."""
    judge = Judge(Budget())
    run = made(judge)
    quality = judge.series(SeriesKey("quality", "b", "int4"))
    grants = []
    for effect in (StartStage(True), StartStage(False, first_live=True), StartStage(False)):
        before = sum(lump.amount for lump in quality.meter.state().lumps)
        run.start_stage(effect, AT)
        after = sum(lump.amount for lump in quality.meter.state().lumps)
        grants.append(after - (0.0 if effect.new_pool else before))
    assert grants == [pytest.approx(PAIR_LUMP), pytest.approx(PAIR_LUMP), 0.0]
    errors = judge.series(SeriesKey("errors", "b", "int4")).meter.state().lumps
    assert sum(lump.amount for lump in errors) == pytest.approx(3 * STAGE_LUMP)
    assert judge.lumps_granted(AT) > 0.0


def test_requests_to_blame_are_those_since_the_pool_is_new() -> None:
    """An incident names what led to it, in earlier stages too, and nothing of before the pool was mended and reset."""
    run = made(Judge(Budget()))
    run.feed.culprits["errors"] = deque(["old"])
    run.start_stage(StartStage(False, True), AT + 10)
    assert run.feed.culprits == {"errors": deque(["old"])}
    run.start_stage(StartStage(True, False), AT + 20)
    assert run.feed.culprits == {}


def test_a_stage_asks_only_what_it_feeds() -> None:
    """Mirrored legs and agreement in shadow; live series and agreement after."""
    run = made(Judge(Budget()))
    run.standing = begin_standing(PLAN, "b", "r", AT)
    shadow = {judged.one.name for judged in _in(run, State.SHADOWING, 0) if judged.asked}
    live = {judged.one.name for judged in _in(run, State.STEPPING, 1) if judged.asked}
    assert shadow == {"errors.shadow", "json.shadow", "quality"}
    assert live == {"errors", "json", "json.ratio", "quality"}


def _in(run: Run, state: State, stage: int):  # type: ignore[no-untyped-def]
    run.standing = msgspec.structs.replace(run.standing, state=state, below=state, stage=stage)
    return list(run.judged(AT))


def test_a_share_passes_while_it_is_calm_and_has_seen_traffic_enough() -> None:
    """It protects and cannot prove."""
    run = made(Judge(Budget()))
    ratio = next(judged for judged in _in(run, State.STEPPING, 1) if judged.one.name == "json.ratio")
    assert ratio.verdict.outcome is Outcome.NOT_ENOUGH
    run.feed.seen["int4"] = 500
    later = next(judged for judged in run.judged(AT + 90_000) if judged.one.name == "json.ratio")
    assert later.verdict.outcome is Outcome.PASS


def test_unmeasured_clustering_is_paid_for() -> None:
    """Per-request guards need more evidence until the baseline has shown its design effect; conversations do not."""
    run = made(Judge(Budget()))
    needed = {judged.one.name: judged.verdict.needed_log_evidence for judged in _in(run, State.STEPPING, 1)}
    assert needed["errors"] == pytest.approx(UNMEASURED_EFFECT * needed["json"])


def test_a_guard_that_gets_nothing_is_silent_only_while_the_pool_serves() -> None:
    """B120: a name that matches nothing must not look like health."""
    guards = "\n  errors: {metric: error_rate, limit: 1%}\n  numbers: {metric: check, check: numbers, limit: 1%}\n"
    rig = EngineRig(rollout_policy(guards=guards, names="errors, numbers"))
    rig.until(lambda: rig.at(State.STEPPING))
    run = next(iter(rig.engine.runs.values()))
    assert run.silent(rig.now_s) == []
    for _ in range(50):
        rig.second()
    assert run.silent(rig.state().stage_since_s + SILENT_S) == ["numbers"]


def moved(run: Run, **changes: object) -> Standing:
    return msgspec.structs.replace(run.standing, **changes)


def live(judge: Judge, stage: int = 1) -> Run:
    """A bucket in a live stage."""
    run = made(judge)
    run.adopt(None, moved(run, state=State.STEPPING, below=State.STEPPING, stage=stage, stage_since_s=AT, version=2))
    return run


def trip(run: Run, judge: Judge) -> SeriesKey:
    """Its errors trip, and nobody has answered yet."""
    key = SeriesKey("errors", "b", "int4")
    for second in range(60):
        judge.accept(key, AT + 60 + second, 1.0, 50)
    assert judge.advance(AT + 1_000)
    assert judge.series(key).trip is not None
    return key


def test_a_stage_that_another_gateway_began_begins_here_as_of_its_moment() -> None:
    """Lumps and fresh evidence, from the same second on."""
    judge = Judge(Budget())
    run = live(judge)
    assert judge.lumps_granted(AT) > 0.0
    series = judge.series(SeriesKey("errors", "b", "int4"))
    assert (series.stage_s, run.feed.shadowing) == (AT, False)
    before = run.standing
    run.adopt(before, moved(run, stage=2, stage_since_s=AT + 30, version=3))
    assert series.stage_s == AT + 30
    assert sum(lump.amount for lump in series.meter.state().lumps) == pytest.approx(2 * STAGE_LUMP)
    run.adopt(run.standing, moved(run, version=4, state=State.HOLDING))
    assert series.stage_s == AT + 30


def test_a_trip_outlives_the_promotion_that_came_before_its_rollback() -> None:
    """Another gateway was faster with the next stage: the pool is still to be taken out."""
    judge = Judge(Budget())
    run = live(judge)
    key = trip(run, judge)
    run.adopt(run.standing, moved(run, stage=2, stage_since_s=AT + 1_000, version=3))
    assert judge.series(key).trip is not None
    fresh = moved(run, stage=0, state=State.SHADOWING, below=State.SHADOWING, stage_since_s=AT + 2_000, entries=1)
    run.adopt(run.standing, fresh)
    assert judge.series(key).trip is None  # another entry: what tripped is not this pool's


def test_a_rollback_that_another_gateway_decided_leaves_the_slices_here_too() -> None:
    """What it put there must not trip them for the others."""
    judge = Judge(Budget())
    run = live(judge)
    wide = SeriesKey("errors", "*", "int4")
    judge.accept(SeriesKey("errors", "b", "int4"), AT + 45, 1.0)
    assert judge.series(wide).timeline.pending
    run.adopt(run.standing, moved(run, state=State.ROLLED_BACK, below=State.PENDING, since_s=AT + 44.5, version=3))
    judge.accept(SeriesKey("errors", "b", "int4"), AT + 46, 1.0)
    assert judge.series(wide).timeline.pending == {}
