"""Promises of the judge over all series."""

import msgspec
import pytest

from gateway.core.evidence import (
    PAIR_LUMP,
    STAGE_LUMP,
    BlockRecord,
    Budget,
    Feed,
    Form,
    Judge,
    JudgeState,
    KeyedBlock,
    Outcome,
    Overdue,
    PromotionRule,
    Response,
    SeriesKey,
    SeriesSpec,
    TooManySeriesError,
    UnknownSeriesError,
)

SPEC = SeriesSpec(Form.RATE, 0.05, block_s=10.0, deadline_s=0.0)
CANDIDATE = SeriesKey("errors", "chat", "int4")
BASELINE = SeriesKey("errors", "chat", "bf16")
WIDE = SeriesKey("errors", "*", "int4")


def _judge(*keys: SeriesKey, slots: int = 10) -> Judge:
    judge = Judge(Budget(1.0, slots))
    for key in keys:
        judge.register(key, SPEC, 0.0)
    return judge


def test_a_bad_pool_is_named_and_rolled_back_while_the_baseline_is_calm():
    """The whole way: lump, outcomes, trip, twin, response, verdict."""
    judge = _judge(CANDIDATE, BASELINE)
    assert judge.start_stage(CANDIDATE, 0.0, STAGE_LUMP) == STAGE_LUMP
    for key, bad in ((CANDIDATE, 12), (BASELINE, 0)):
        judge.accept(key, 5.0, 1.0, bad)
        judge.accept(key, 5.0, 0.0, 20)
    (found,) = judge.advance(10.0)
    assert found.key == CANDIDATE
    decision = judge.decide(CANDIDATE, "bf16", 10.0)
    assert decision.response is Response.ROLL_BACK
    assert judge.verdict(CANDIDATE, 10.0, PromotionRule()).outcome is Outcome.FAIL
    assert judge.verdict(BASELINE, 10.0, PromotionRule()).outcome is Outcome.NOT_ENOUGH


def test_an_incident_of_the_platform_is_held():
    """When the baseline trips in the same moment, nothing is rolled back; the answered trip can be acknowledged."""
    judge = _judge(CANDIDATE, BASELINE)
    for key in (CANDIDATE, BASELINE):
        judge.start_stage(key, 0.0, STAGE_LUMP)
        judge.accept(key, 5.0, 1.0, 20)
    assert {trip.key for trip in judge.advance(10.0)} == {CANDIDATE, BASELINE}
    assert judge.decide(CANDIDATE, "bf16", 10.0).response is Response.HOLD
    judge.acknowledge(CANDIDATE)
    assert judge.verdict(CANDIDATE, 10.0, PromotionRule()).outcome is Outcome.NOT_ENOUGH


def test_the_baseline_is_not_its_own_twin():
    """A trip of the baseline itself is not excused by the baseline."""
    judge = _judge(BASELINE)
    judge.start_stage(BASELINE, 0.0, STAGE_LUMP)
    judge.accept(BASELINE, 5.0, 1.0, 20)
    judge.advance(10.0)
    assert judge.decide(BASELINE, "bf16", 10.0).response is Response.ROLL_BACK


def test_a_good_pool_passes_after_its_time():
    """Evidence, samples and time together are a pass; before the time it is not enough."""
    judge = _judge(CANDIDATE)
    judge.start_stage(CANDIDATE, 0.0, STAGE_LUMP)
    judge.accept(CANDIDATE, 5.0, 0.0, 500)
    judge.advance(10.0)
    rule = PromotionRule(least_s=1_800.0)
    assert judge.verdict(CANDIDATE, 1_799.0, rule).outcome is Outcome.NOT_ENOUGH
    assert judge.verdict(CANDIDATE, 1_800.0, rule).outcome is Outcome.PASS


def test_live_evidence_restarts_at_each_stage_and_pairs_keep_theirs():
    """The stage decides; the clock of the stage restarts either way."""
    judge = _judge(CANDIDATE)
    judge.accept(CANDIDATE, 5.0, 0.0, 500)
    judge.advance(10.0)
    judge.start_stage(CANDIDATE, 20.0, PAIR_LUMP, keep_evidence=True)
    assert judge.verdict(CANDIDATE, 30.0, PromotionRule()).number == 500
    assert judge.verdict(CANDIDATE, 30.0, PromotionRule()).stage_s == 10.0
    judge.start_stage(CANDIDATE, 40.0, STAGE_LUMP)
    assert judge.verdict(CANDIDATE, 50.0, PromotionRule()).number == 0


def test_more_series_than_slots_is_an_error():
    """An overdraft of the budget is refused with its mend; known series and freed slots are fine."""
    judge = _judge(CANDIDATE, BASELINE, slots=2)
    with pytest.raises(TooManySeriesError, match="slots"):
        judge.register(WIDE, SPEC, 0.0)
    judge.register(CANDIDATE, msgspec.structs.replace(SPEC, limit=0.06), 0.0)
    judge.forget(BASELINE)
    judge.register(WIDE, SPEC, 0.0)
    assert judge.keys() == (WIDE, CANDIDATE)


def test_registering_again_keeps_evidence_of_the_same_null_only():
    """A reload with the same limit keeps the meter, also with another deadline; another limit starts anew."""
    judge = _judge(CANDIDATE)
    judge.start_stage(CANDIDATE, 0.0, STAGE_LUMP)
    judge.accept(CANDIDATE, 5.0, 0.0, 9)
    judge.advance(10.0)
    kept = judge.register(CANDIDATE, SPEC, 50.0)
    assert kept.evidence.number == 9
    money = kept.meter.total
    moved = judge.register(CANDIDATE, msgspec.structs.replace(SPEC, deadline_s=5.0), 50.0)
    assert (moved.evidence.number, moved.meter.total) == (9, money)
    fresh = judge.register(CANDIDATE, msgspec.structs.replace(SPEC, limit=0.01), 50.0)
    assert (fresh.evidence.number, fresh.meter.total) == (0, 0.0)


def test_outcomes_reach_the_slice_under_their_own_limit():
    """Every way of counting (outcome, announcement, record) also counts in the slice, with the bucket's limit."""
    judge = Judge(Budget())
    judge.register(WIDE, msgspec.structs.replace(SPEC, form=Form.SLICE), 0.0)
    other = SeriesKey("errors", "code", "int4")
    judge.register(CANDIDATE, SPEC, 0.0, slices=[WIDE])
    judge.register(other, msgspec.structs.replace(SPEC, limit=0.01), 0.0, slices=[WIDE])
    judge.accept(CANDIDATE, 5.0, 1.0, 2)
    judge.announce(other, 5.0, 4)
    judge.absorb(other, BlockRecord(0, cells=((0.0, 0.0, 3), (0.0, 1.0, 1))))
    record = judge.series(WIDE).state().pending[0]
    assert record.cells == ((0.01, 0.0, 3), (0.01, 1.0, 1), (0.05, 1.0, 2))
    assert record.announced == ((0.01, 4),)
    judge.forget(WIDE)
    judge.accept(CANDIDATE, 6.0, 1.0)


@pytest.mark.parametrize("restarted", [False, True])
def test_what_says_nothing_is_no_good_outcome_of_a_slice(restarted):
    """Nobody waits for cancelled requests in a slice, nor counts them as good there when the block must be closed."""
    judge = Judge(Budget())
    spec = msgspec.structs.replace(SPEC, deadline_s=30.0, announced=True, overdue=Overdue.GOOD)
    judge.register(WIDE, msgspec.structs.replace(spec, form=Form.SLICE), 0.0)
    judge.register(CANDIDATE, spec, 0.0, slices=[WIDE])
    judge.announce(CANDIDATE, 5.0, 100)
    judge.accept(CANDIDATE, 5.0, 1.0, 4)
    judge.accept_unscored(CANDIDATE, 5.0, 95)
    judge.absorb(CANDIDATE, BlockRecord(0, unscored=1))
    assert sum(judge.series(WIDE).timeline.pending[0].open_requests().values()) == 0
    if restarted:
        judge.restore(judge.state())
    judge.advance(12.0)
    assert [(one.evidence.number, one.bad) for one in map(judge.series, (CANDIDATE, WIDE))] == [(4, 4.0), (4, 4.0)]


def test_only_slices_can_be_slices():
    """A bucket's own series cannot collect others' outcomes, and pairs have no limit to carry along."""
    judge = _judge(BASELINE)
    with pytest.raises(ValueError, match="no slice"):
        judge.register(CANDIDATE, SPEC, 0.0, slices=[BASELINE])
    judge.register(WIDE, msgspec.structs.replace(SPEC, form=Form.SLICE), 0.0)
    with pytest.raises(ValueError, match="only rates"):
        judge.register(CANDIDATE, msgspec.structs.replace(SPEC, form=Form.PAIR), 0.0, slices=[WIDE])


def test_an_unknown_series_is_named():
    """A typo does not silently create a series."""
    with pytest.raises(UnknownSeriesError, match="errors of int4 in chat"):
        _judge().accept(CANDIDATE, 5.0, 1.0)


def test_a_restart_continues_identically():
    """Stored as bytes and restored into freshly registered series, the judge goes on as if nothing had happened."""
    straight, restarted = _judge(CANDIDATE, BASELINE), _judge(CANDIDATE, BASELINE)

    def live(judge: Judge, seconds: range) -> None:
        for second in seconds:
            if second % 250 == 0:
                judge.start_stage(CANDIDATE, float(second), STAGE_LUMP)
            judge.accept(CANDIDATE, float(second), float(second % 19 == 0))
            judge.accept(BASELINE, float(second), float(second % 40 == 0), 2)
            judge.advance(float(second))

    for judge in (straight, restarted):
        live(judge, range(503))
    stored = msgspec.json.encode(restarted.state())
    restarted = _judge(CANDIDATE, BASELINE)
    assert restarted.restore(msgspec.json.decode(stored, type=JudgeState)) == ()
    for judge in (straight, restarted):
        live(judge, range(503, 1_500))
    assert straight.state() == restarted.state()
    assert straight.lumps_granted(1_500.0) == pytest.approx(6 * STAGE_LUMP)


def test_what_cannot_be_restored_is_told():
    """Series that are gone or have another null are listed with the reason; the others are restored."""
    before = _judge(CANDIDATE, BASELINE, WIDE)
    after = _judge(CANDIDATE)
    after.register(BASELINE, msgspec.structs.replace(SPEC, feed=Feed.VOTE), 0.0)
    discarded = after.restore(before.state())
    assert {(item.key, item.reason.split(" ")[0]) for item in discarded} == {(WIDE, "not"), (BASELINE, "limit,")}


def test_the_history_of_every_meter_can_be_observed():
    """Each fed block is shown once, with its key, its counts and the money after it."""
    judge = _judge(CANDIDATE, BASELINE)
    seen = []
    judge.start_stage(CANDIDATE, 0.0, STAGE_LUMP)
    for at_s in (5.0, 15.0, 35.0):
        judge.accept(CANDIDATE, at_s, 0.0, 3)
    judge.advance(20.0, lambda key, fed: seen.append((key, fed.step.block, fed.number)))
    judge.advance(40.0, lambda key, fed: seen.append((key, fed.step.block, fed.number)))
    assert seen == [(CANDIDATE, 0, 3), (CANDIDATE, 1, 3), (CANDIDATE, 3, 3)]


def test_a_changed_pool_starts_anew():
    """After a change of the pool's configuration neither the old trip nor the old money nor open outcomes remain."""
    judge = _judge(CANDIDATE)
    judge.start_stage(CANDIDATE, 0.0, STAGE_LUMP)
    judge.accept(CANDIDATE, 5.0, 1.0, 20)
    judge.advance(10.0)
    judge.accept(CANDIDATE, 15.0, 1.0, 20)
    judge.start_stage(CANDIDATE, 20.0, STAGE_LUMP, new_pool=True)
    assert judge.advance(100.0) == []
    assert judge.verdict(CANDIDATE, 100.0, PromotionRule()).outcome is Outcome.NOT_ENOUGH


def test_lumps_shrink_when_the_years_half_is_spent():
    """The ledger caps lumps over all series together."""
    judge = _judge(CANDIDATE, BASELINE)
    granted = [judge.start_stage(key, 0.0, 0.2) for _ in range(50) for key in (CANDIDATE, BASELINE)]
    assert granted[0] == 0.05
    assert granted == sorted(granted, reverse=True)
    assert judge.lumps_granted(0.0) == pytest.approx(sum(granted))
    assert judge.lumps_granted(0.0) < 0.5


def test_blocks_may_be_collected_here_and_fed_from_elsewhere():
    """Collecting closes without staking; feeding stakes what is given, for series that are watched, once."""
    judge = _judge(CANDIDATE)
    judge.start_stage(CANDIDATE, 0.0, STAGE_LUMP)
    judge.accept(CANDIDATE, 5.0, 1.0, 12)
    (block,) = judge.collect(10.0)
    assert (block.key, block.record.number, block.record.outcomes) == (CANDIDATE, 0, 12)
    assert judge.series(CANDIDATE).meter.total == 0.0
    assert judge.collect(10.0) == []
    seen = []
    strange = block._replace(key=WIDE)
    (trip,) = judge.feed([block, strange], 11.0, lambda key, fed: seen.append((key, fed.number)))
    assert (trip.key, trip.trip.bad) == (CANDIDATE, 12.0)
    assert seen == [(CANDIDATE, 12)]
    assert judge.feed([block], 12.0) == []
    assert judge.series(CANDIDATE).timeline.late == 12


def test_what_is_still_open_holds_its_series_back():
    """Announced requests without an outcome: the first block that is not closed, of these series only."""
    judge = Judge(Budget(1.0, 10))
    for key in (CANDIDATE, BASELINE):
        judge.register(key, msgspec.structs.replace(SPEC, announced=True, deadline_s=60.0), 0.0)
    judge.announce(CANDIDATE, 15.0)
    judge.collect(41.0)
    assert judge.held(41.0) == {CANDIDATE: 1}
    judge.accept(CANDIDATE, 15.0, 0.0)
    judge.collect(41.0)
    assert judge.held(41.0) == {}


def test_foreign_meters_are_taken_over_without_what_was_open_there():
    """Money, evidence and trips come along; what is being collected here stays."""
    theirs, ours = _judge(CANDIDATE), _judge(CANDIDATE)
    theirs.start_stage(CANDIDATE, 0.0, STAGE_LUMP)
    theirs.accept(CANDIDATE, 5.0, 1.0, 2)
    theirs.advance(10.0)
    theirs.accept(CANDIDATE, 15.0, 1.0, 7)
    ours.accept(CANDIDATE, 15.0, 0.0, 3)
    ours.restore(theirs.state(), foreign=True)
    assert ours.series(CANDIDATE).meter.state() == theirs.series(CANDIDATE).meter.state()
    assert [block.record.outcomes for block in ours.collect(30.0)] == [3]


def test_going_back_forgets_what_was_only_fed():
    """What comes again as a part of the whole must not count twice; what is open, and what was acted upon, stays."""
    others = [SeriesKey(name, "chat", "int4") for name in ("tripped", "staged", "renewed", "gone")]
    judge = _judge(CANDIDATE, *others)
    tripped, staged, renewed, gone = others
    judge.accept(CANDIDATE, 5.0, 0.0, 40)
    judge.advance(10.0)
    before, state = judge.state(), judge.series(CANDIDATE).state()
    for key in judge.keys():  # noqa: SIM118 - a method
        judge.accept(key, 15.0, 0.0, 10)
        judge.accept(key, 25.0, 0.0, 1)
    judge.accept(tripped, 15.0, 1.0, 60)
    judge.start_stage(staged, 12.0, STAGE_LUMP)
    judge.register(renewed, msgspec.structs.replace(SPEC, limit=0.02), 0.0)
    judge.forget(gone)
    assert [trip.key for trip in judge.advance(20.0)] == [tripped]
    kept = {key: judge.series(key).state() for key in (tripped, staged, renewed)}
    judge.go_back(before)
    went_back = judge.series(CANDIDATE).state()
    assert (went_back.meter, went_back.evidence, went_back.bad) == (state.meter, state.evidence, state.bad)
    assert [record.number for record in went_back.pending] == [2]
    assert {key: judge.series(key).state() for key in kept} == kept
    judge.feed([KeyedBlock(CANDIDATE, BlockRecord(1, cells=((0.0, 0.0, 30),)))], 20.0)
    assert judge.series(CANDIDATE).evidence.number == 40 + 30
