"""Promises of a series: dispatch order in, trips and evidence out."""

import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.evidence.blocks import BAD, GOOD, BlockRecord, OpenBlock, Overdue, merge
from gateway.core.evidence.feeds import Feed
from gateway.core.evidence.readings import Form
from gateway.core.evidence.series import Series
from gateway.core.evidence.values import SeriesSpec, SeriesState

RATE = SeriesSpec(Form.RATE, 0.05, block_s=10.0, deadline_s=30.0)


def _series(drip: float = 1e-9, lump: float = 1e-3, **changes) -> Series:
    series = Series(msgspec.structs.replace(RATE, **changes), drip, 0.0)
    series.grant(0.0, lump)
    return series


def test_a_bad_pool_trips_and_the_trip_stays():
    """The trip tells the evidence as it stood and is latched until a new stage."""
    series = _series()
    series.accept(5.0, BAD, 9)
    series.accept(6.0, GOOD, 1)
    trip = series.advance(40.0)
    assert trip is not None
    assert (trip.block, trip.block_end_s, trip.noticed_s, trip.number, trip.bad) == (0, 10.0, 40.0, 10, 9.0)
    assert trip.total == pytest.approx(sum(trip.bets)) and trip.total >= 1.0
    assert series.advance(1_000.0) is None
    assert series.trip == trip
    series.start_stage(1_000.0, keep_evidence=False)
    assert series.trip is None


@given(st.lists(st.tuples(st.floats(0, 200), st.booleans(), st.floats(0, 25)), max_size=80), st.randoms())
def test_the_order_of_completion_does_not_matter(requests, rng):
    """Reported in any order, as long as before the deadline, the same requests give the same state, bit for bit."""
    straight, shuffled = _series(), _series()
    for dispatched_s, bad, _ in requests:
        straight.accept(dispatched_s, float(bad))
    straight.advance(1_000.0)
    order = list(requests)
    rng.shuffle(order)
    for dispatched_s, bad, _ in order:
        shuffled.accept(dispatched_s, float(bad))
    shuffled.advance(1_000.0)
    assert straight.state() == shuffled.state()


@given(
    st.lists(st.tuples(st.floats(0, 200), st.booleans(), st.floats(0, 25)), max_size=80), st.sets(st.integers(1, 60))
)
def test_how_often_anybody_looks_does_not_matter(requests, looks):
    """Advancing at any moments in between ends in the same state as advancing once."""
    seldom, often = _series(), _series()
    events = sorted([(at + takes, at, float(bad)) for at, bad, takes in requests], key=lambda event: event[0])
    for _, at, value in events:
        seldom.accept(at, value)
    remaining = sorted(look * 5.0 for look in looks)
    for done_s, at, value in events:
        while remaining and remaining[0] <= done_s:
            often.advance(remaining.pop(0))
        assert often.accept(at, value)
    seldom.advance(1_000.0)
    often.advance(1_000.0)
    assert msgspec.structs.replace(seldom.state(), trip=None) == msgspec.structs.replace(often.state(), trip=None)


def test_records_of_workers_add_up_to_the_same_series():
    """Whole block records, merged or not, are the same as single outcomes."""
    single, records = _series(), _series()
    parts = [OpenBlock() for _ in range(3)]
    rng = random.Random(1)
    for _ in range(300):
        value = float(rng.random() < 0.1)
        single.accept(25.0, value)
        rng.choice(parts).add(value)
    records.absorb(merge([parts[0].record(2), parts[1].record(2)]))
    records.absorb(parts[2].record(2))
    for series in (single, records):
        series.advance(1_000.0)
    assert single.state() == records.state()
    assert not records.absorb(BlockRecord(2, cells=((0.0, GOOD, 4),)))
    assert records.timeline.late == 4


def test_late_outcomes_are_dropped_and_counted():
    """A fed block is closed for good."""
    series = _series()
    series.advance(100.0)
    before = series.meter.state()
    assert not series.accept(69.0, BAD, 5)
    assert not series.accept_unscored(1.0, 2)
    assert series.timeline.late == 7
    series.advance(200.0)
    assert series.meter.state() == before


@pytest.mark.parametrize(
    ("overdue", "number", "bad"), [(Overdue.DROP, 1, 0), (Overdue.GOOD, 6, 0), (Overdue.BAD, 6, 5)]
)
def test_hanging_requests_are_fed_at_the_deadline(overdue, number, bad):
    """A pool that hangs is not invisible: open requests count as their guard says, without waiting for their end."""
    series = _series(announced=True, overdue=overdue)
    series.announce(5.0, 6)
    series.accept(5.0, GOOD)
    fed = []
    series.advance(39.0, fed.append)
    assert fed == []
    series.advance(40.0, fed.append)
    assert [(block.number, block.bad) for block in fed] == [(number, bad)]


def test_announced_series_judge_as_soon_as_all_is_known():
    """Seconds instead of the deadline."""
    series = _series(announced=True)
    series.announce(5.0, 9)
    series.accept(5.0, BAD, 9)
    assert series.advance(11.0) is not None


def test_money_on_screen_includes_the_drip_since():
    """Long silence shows its drip although no block was fed."""
    series = _series(drip=1e-6, lump=0.0)
    assert series.total_at(1_000.0) == pytest.approx(1e-3)


def test_a_new_stage_counts_evidence_from_its_first_whole_block():
    """Requests dispatched before the stage, or in its first broken block, say nothing about the new load."""
    series = _series()
    series.accept(15.0, GOOD, 100)
    series.start_stage(25.0, keep_evidence=False)
    series.accept(29.0, GOOD, 100)
    series.accept(31.0, GOOD, 7)
    series.advance(1_000.0)
    assert series.evidence.number == 7
    series.start_stage(1_000.0, keep_evidence=True)
    assert (series.evidence.number, series.stage_s) == (7, 1_000.0)


def test_another_pool_starts_without_the_old_ones_past():
    """After a reset neither money nor open blocks nor evidence of the old pool remain."""
    series = _series(lump=1e-2)
    series.accept(5.0, GOOD, 3)
    series.advance(40.0)
    series.accept(45.0, BAD, 50)
    series.reset(60.0)
    assert series.advance(1_000.0) is None
    assert series.meter.total == 0.0
    assert series.evidence.number == 0


@pytest.mark.parametrize("form", [Form.RATE, Form.SESSION, Form.PAIR, Form.SHARE, Form.SLICE])
@pytest.mark.parametrize("feed", list(Feed))
def test_a_restart_in_the_middle_continues_identically(form, feed):
    """Stored as bytes with open blocks and restored: bit for bit the state of a series that never stopped."""
    rng = random.Random(form.value)
    changes = {"form": form, "feed": feed, "announced": True, "measures_dependence": form is Form.RATE}
    spec = msgspec.structs.replace(RATE, **changes)
    straight, restarted = Series(spec, 1e-8, 0.0), Series(spec, 1e-8, 0.0)
    for series in (straight, restarted):
        series.grant(0.0, 1e-3)
        series.grant(1_505.0, 1e-4)
    for second in range(3_000):
        if second == 1_503:
            stored = msgspec.json.encode(restarted.state())
            restarted = Series(spec, 1e-8, 0.0)
            restarted.restore(msgspec.json.decode(stored, type=SeriesState))
        value, lane = _outcome(form, rng)
        hangs = rng.random() < 0.01
        for series in (straight, restarted):
            series.announce(float(second), 1, lane)
            if not hangs:
                series.accept(float(second), value, 1, lane)
            if form is Form.PAIR and second % 50 == 0:
                series.accept_unscored(float(second))
            series.advance(float(second))
    assert straight.state() == restarted.state()
    assert msgspec.msgpack.encode(straight.state()) == msgspec.msgpack.encode(restarted.state())


def _outcome(form: Form, rng: random.Random) -> tuple[float, float]:
    bad = float(rng.random() < 0.06)
    if form is Form.SESSION:
        return bad * rng.randint(1, 20) / 20, 0.0
    if form is Form.PAIR:
        return rng.choice([0.0, 0.0, 0.25, -0.3, 1.0]), 0.0
    if form is Form.SHARE:
        return bad, float(rng.random() < 0.7)
    return bad, rng.choice([0.01, 0.05]) if form is Form.SLICE else 0.0


def test_money_of_another_null_is_refused():
    """A stored state of another limit must not be taken over."""
    with pytest.raises(ValueError, match="another limit"):
        _series(limit=0.06).restore(_series().state())


def test_a_slice_finds_what_its_thin_buckets_cannot():
    """Twenty buckets with two bad requests each do not trip; the slice over the same outcomes does."""
    buckets = [_series(lump=1e-5, limit=0.01 if index % 2 else 0.02) for index in range(20)]
    wide = _series(lump=1e-5, form=Form.SLICE)
    for index, bucket in enumerate(buckets):
        for value, count in ((BAD, 2), (GOOD, 30)):
            bucket.accept(index * 10.0, value, count)
            wide.accept(index * 10.0, value, count, lane=bucket.spec.limit)
    assert [bucket.advance(1_000.0) for bucket in buckets] == [None] * 20
    assert wide.advance(1_000.0) is not None


def test_a_share_blames_the_candidate_only_for_more_than_its_part():
    """An incident that hits both arms alike does not trip, the same number of failures in one arm does."""
    common, own = _series(form=Form.SHARE, lump=1e-5), _series(form=Form.SHARE, lump=1e-5)
    for series, blamed in ((common, 5), (own, 50)):
        series.accept_share(5.0, candidate=True, bad=True, count=blamed)
        series.accept_share(5.0, candidate=True, bad=False, count=50)
        series.accept_share(5.0, candidate=False, bad=True, count=100)
        series.accept_share(5.0, candidate=False, bad=False, count=900)
    assert common.advance(100.0) is None
    assert own.advance(100.0) is not None


def test_intervals_fit_the_form():
    """Rates get a rate interval, losses and votes a mean's, slices and shares none."""
    rate, pair, vote = _series(), _series(form=Form.PAIR), _series(form=Form.SESSION)
    rate.accept(5.0, BAD, 3)
    rate.accept(5.0, GOOD, 97)
    pair.accept(5.0, 0.1, 2_000)
    vote.accept(5.0, 0.1, 2_000)
    for series in (rate, pair, vote):
        series.advance(100.0)
    assert rate.interval().lower == pytest.approx(0.0018790606, rel=1e-6)
    assert pair.interval().lower < 0.1 < pair.interval().upper
    assert vote.interval().lower < 0.1 < vote.interval().upper
    assert pair.bad == pytest.approx(200.0)
    assert _series(form=Form.SHARE).interval() is None


def test_unscored_pairs_count_against_promotion_only():
    """A broken scorer neither trips nor promotes."""
    scored, broken = _series(form=Form.PAIR), _series(form=Form.PAIR)
    for series in (scored, broken):
        series.accept(5.0, 0.0, 1_000)
    broken.accept_unscored(5.0, 100)
    for series in (scored, broken):
        series.advance(100.0)
    assert scored.meter.state() == broken.meter.state()
    assert broken.evidence.log_value < 0.0 < scored.evidence.log_value


@given(st.lists(st.tuples(st.floats(0, 200), st.booleans()), max_size=80))
def test_collecting_and_feeding_is_advancing(requests):
    """Bit for bit, so one process alone needs no other way."""
    straight, apart = _series(announced=True), _series(announced=True)
    for series in (straight, apart):
        for dispatched_s, bad in requests:
            series.announce(dispatched_s)
            series.accept(dispatched_s, float(bad))
    for now_s in (50.0, 130.0, 1_000.0):
        first = straight.advance(now_s)
        trips = [trip for record in apart.collect(now_s) if (trip := apart.feed(record, now_s)) is not None]
        assert first == (trips[0] if trips else None)
    assert straight.state() == apart.state()


def test_a_block_from_before_the_meter_is_late():
    """A process that joins has no stake in what was before."""
    series = Series(RATE, 1e-9, 100.0)
    assert series.feed(BlockRecord(3, ((0.0, BAD, 5),)), 200.0) is None
    assert (series.timeline.late, series.meter.total) == (5, 0.0)


@given(st.floats(-200.0, 200.0), st.floats(100.0, 150.0), st.sampled_from([0.0, 25.0, 90.0]))
def test_a_step_of_any_size_closes_no_block_that_is_open(step_s, at_s, deadline_s):
    """Also one that is smaller than the time for which blocks stay open: the meter stands where they begin."""
    series = _series(block_s=10.0, deadline_s=deadline_s)
    offset = number = 0.0
    for second in range(300):
        if second <= at_s < second + 1:
            series.shift(second + 0.5, second + 0.5 + step_s)
            offset = step_s
        for record in series.collect(second + 0.5 + offset):
            series.feed(record, 0.0)
        number += series.accept(second + 0.5 + offset, 0.0)
    for record in series.collect(1_000.0):
        series.feed(record, 0.0)
    assert (series.timeline.late, series.evidence.number) == (0, 300 if number == 300 else -1)
