"""Promises of the suspicion meter."""

import math
from fractions import Fraction

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.evidence.feeds import Feed, Group, log_factors
from gateway.core.evidence.ladders import RATE_ODDS, rate_ladder
from gateway.core.evidence.meter import BlockRefusedError, Meter, MeterState, suspicion_of

DRIP = 1e-9
blocks = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 60), st.integers(1, 90)), max_size=30)
"""Bad and good counts and the seconds a block lasts."""


def _factors(limit: float, bad: int, good: int) -> tuple[float, ...] | None:
    return log_factors((Group(rate_ladder(limit), {1.0: bad, 0.0: good}),), Feed.PRODUCT)


def _exact_bets(limit: Fraction) -> list[Fraction]:
    odds = limit / (1 - limit)
    cap = limit + Fraction(95, 100) * (1 - limit)
    ratios = [Fraction(str(ratio)) for ratio in RATE_ODDS]
    targets = [min(odds * ratio / (1 + odds * ratio), cap) for ratio in ratios] + [cap]
    return [(target - limit) / (limit * (1 - limit)) for target in targets]


@given(blocks, st.integers(0, 5))
def test_the_recursion_is_the_sum_over_seeding_times(history, lump_at):
    """The stakes are, by definition, each seed times all factors after it; exact rational arithmetic is the judge."""
    limit, drip, lump = Fraction(1, 50), Fraction(1, 10**9), Fraction(1, 10**5)
    meter = Meter(6, float(drip), 0.0)
    meter.grant(lump_at, float(lump))
    bets = _exact_bets(limit)
    seeds: list[Fraction] = []
    factors: list[list[Fraction]] = []
    end_s = 0
    since = 0  # seeds before this index were lost in a trip
    for number, (bad, good, seconds) in enumerate(history):
        end_s += seconds
        seeds.append(drip * seconds + (lump if number == lump_at else 0))
        factors.append([(1 + bet * (1 - limit)) ** bad * (1 - bet * limit) ** good for bet in bets])
        step = meter.feed(number, float(end_s), _factors(float(limit), bad, good))
        stakes = [
            sum(seeds[k] / 6 * math.prod(f[rung] for f in factors[k:]) for k in range(since, len(seeds)))
            for rung in range(6)
        ]
        assert step.bets == pytest.approx([float(stake) for stake in stakes], rel=1e-9)
        assert step.tripped == (sum(stakes) >= 1)
        if step.tripped:
            since = len(seeds)


@given(blocks, st.data())
def test_splitting_a_seed_over_empty_blocks_changes_nothing(history, data):
    """Feeding empty blocks one by one, or only the time that passed, gives the same money."""
    whole, split = Meter(6, DRIP, 0.0), Meter(6, DRIP, 0.0)
    whole.grant(0, 1e-4)
    split.grant(0, 1e-4)
    end_s, number = 0, 0
    for bad, good, seconds in history:
        cut = data.draw(st.integers(0, seconds - 1)) if seconds > 1 else 0
        if cut:
            split.feed(number, float(end_s + cut), None)
        end_s += seconds
        one = whole.feed(number + 1, float(end_s), _factors(0.05, bad, good))
        other = split.feed(number + 1, float(end_s), _factors(0.05, bad, good))
        assert one.bets == pytest.approx(other.bets, rel=1e-9)
        assert one.tripped == other.tripped
        number += 2


@given(blocks, st.integers(0, 29))
def test_restart_from_the_stored_state_continues_identically(history, cut):
    """A meter that went through its stored bytes in the middle is bit for bit the same."""
    straight, restarted = Meter(6, DRIP, 0.0), Meter(6, DRIP, 0.0)
    for meter in (straight, restarted):
        meter.grant(0, 1e-3)
        meter.grant(cut + 2, 1e-5)
    end_s = 0.0
    for number, (bad, good, seconds) in enumerate(history):
        if number == cut:
            stored = msgspec.json.encode(restarted.state())
            restarted = Meter(6, DRIP, 0.0)
            restarted.restore(msgspec.json.decode(stored, type=MeterState))
        end_s += seconds
        steps = [meter.feed(number, end_s, _factors(0.05, bad, good)) for meter in (straight, restarted)]
        assert steps[0] == steps[1]
    assert straight.state() == restarted.state()


def test_feeding_a_block_twice_is_refused():
    """The same outcomes must not be staked twice, nor older ones afterwards; the refusal changes nothing."""
    meter = Meter(6, DRIP, 0.0)
    meter.feed(7, 10.0, _factors(0.05, 1, 3))
    before = meter.state()
    for block, end_s in ((7, 10.0), (7, 20.0), (6, 20.0), (8, 9.0)):
        with pytest.raises(BlockRefusedError):
            meter.feed(block, end_s, _factors(0.05, 1, 3))
    assert meter.state() == before


def test_the_seed_is_added_before_the_factors():
    """A fresh canary's first outcomes count: the lump is in before they are multiplied."""
    meter = Meter(6, 0.0, 0.0)
    meter.grant(0, 6e-5)
    step = meter.feed(0, 10.0, _factors(0.01, 1, 0))
    assert step.bets == pytest.approx([1e-5 * math.exp(log) for log in rate_ladder(0.01).log_one])


def test_a_trip_takes_all_money_and_the_drip_goes_on():
    """After a trip the stakes start again at nothing but the seed."""
    meter = Meter(6, 1e-6, 0.0)
    meter.grant(0, 1e-2)
    assert meter.feed(0, 10.0, _factors(0.01, 9, 0)).tripped
    assert (meter.total, meter.trips, meter.last_trip_s) == (0.0, 1, 10.0)
    assert meter.feed(1, 20.0, None).total == pytest.approx(1e-5)


def test_an_outage_beyond_a_double_trips_instead_of_overflowing():
    """500 failures in one block are e^2000; the step is clamped and the meter survives."""
    meter = Meter(6, 1e-10, 0.0)
    meter.grant(0, 0.999)
    step = meter.feed(0, 10.0, _factors(0.01, 500, 0))
    assert step.tripped
    assert math.isfinite(step.total)
    assert meter.feed(1, 20.0, _factors(0.01, 0, 5)).total < 1e-9


@given(blocks)
def test_money_is_never_negative_and_good_outcomes_only_lose(history):
    """No history of good requests builds credit or debt beyond zero."""
    meter = Meter(6, 0.0, 0.0)
    meter.grant(0, 1e-2)
    previous = 1e-2
    for number, (_, good, _) in enumerate(history):
        total = meter.feed(number, float(number), _factors(0.05, 0, good)).total
        assert 0.0 <= total <= previous * (1 + 1e-12)
        previous = total


def test_a_lump_waits_for_its_block():
    """Money granted for a later block does not seed earlier ones, and a skipped block's lump joins the next."""
    meter = Meter(6, 0.0, 0.0)
    meter.grant(5, 1e-3)
    assert meter.feed(4, 10.0, None).total == 0.0
    assert sum(meter.bets_at(4, 20.0)) == 0.0
    assert sum(meter.bets_at(5, 20.0)) == pytest.approx(1e-3)
    assert meter.feed(9, 20.0, None).total == pytest.approx(1e-3)


def test_looking_at_the_money_changes_nothing():
    """The drip since the last block is shown without being added."""
    meter = Meter(6, 1e-6, 100.0)
    before = meter.state()
    assert sum(meter.bets_at(0, 200.0)) == pytest.approx(1e-4)
    assert meter.state() == before


def test_what_was_put_in_is_told_from_what_was_won():
    """Lumps and drip are put in; what bad outcomes add is won, and what good ones lost is put in no longer."""
    meter = Meter(1, 1e-6, 0.0)
    meter.grant(0, 1e-5)
    meter.feed(0, 10.0, None)
    meter.grant(1, 1e-5)
    assert meter.unearned_by(1, 20.0) == pytest.approx(4e-5) == sum(meter.bets_at(1, 20.0))
    meter.feed(1, 20.0, [math.log(3.0)])
    assert (meter.unearned_by(1, 20.0), meter.total) == (pytest.approx(4e-5), pytest.approx(12e-5))
    again = Meter(1, 1e-6, 0.0)
    again.restore(meter.state())
    assert again.unearned_by(1, 20.0) == meter.unearned_by(1, 20.0)
    meter.feed(2, 20.0, [math.log(1e-3)])
    assert meter.unearned_by(2, 20.0) == pytest.approx(12e-8) == meter.total


def test_emptying_forgets_money_and_due_lumps():
    """Another pool starts without the old one's money; lumps for later blocks stay."""
    meter = Meter(6, 0.0, 0.0)
    meter.grant(0, 1e-3)
    meter.grant(9, 1e-5)
    meter.feed(0, 10.0, None)
    meter.empty(4, 50.0)
    assert meter.total == 0.0
    with pytest.raises(BlockRefusedError):
        meter.feed(4, 60.0, None)
    assert meter.feed(9, 100.0, None).total == pytest.approx(1e-5)


@pytest.mark.parametrize("amount", [-1e-9, 1.0, 2.0])
def test_a_lump_is_a_probability(amount):
    """A lump of 1 would trip by itself."""
    with pytest.raises(ValueError, match="lump"):
        Meter(6, 0.0, 0.0).grant(0, amount)


def test_impossible_meters_are_refused():
    """A negative drip takes money out; a state of another ladder does not fit."""
    with pytest.raises(ValueError, match="drip"):
        Meter(6, -1.0, 0.0)
    with pytest.raises(ValueError, match="another kind of guard"):
        Meter(6, 0.0, 0.0).restore(Meter(5, 0.0, 0.0).state())


@pytest.mark.parametrize(("total", "shown"), [(0.0, -10.0), (1e-30, -10.0), (1e-3, -3.0), (1.0, 0.0)])
def test_suspicion_is_a_log_scale_from_minus_ten_to_zero(total, shown):
    """The number on the screen."""
    assert suspicion_of(total) == pytest.approx(shown)


CANARY = {
    0.001: {5: 3, 10: 3, 20: 4, 50: 4, 100: 5, 300: 7, 1000: 10, 10000: 31},
    0.01: {5: 4, 10: 5, 20: 6, 50: 8, 100: 10, 300: 17, 1000: 31, 10000: 156},
    0.05: {5: 5, 10: 7, 20: 9, 50: 14, 100: 21, 300: 39, 1000: 92, 10000: 658},
}
"""Bad requests among the first n that a fresh canary needs to trip (docs/evidence.md, section 1; lump 1e-5)."""


@pytest.mark.parametrize(("limit", "number", "bad"), [(m, n, b) for m, row in CANARY.items() for n, b in row.items()])
def test_what_a_fresh_canary_needs_to_trip(limit, number, bad):
    """Exactly as many bad requests as documented, and not one fewer, trip a fresh canary."""

    def trips(count: int) -> bool:
        meter = Meter(6, 0.0, 0.0)
        meter.grant(0, 1e-5)
        return meter.feed(0, 10.0, _factors(limit, count, number - count)).tripped

    assert trips(bad)
    assert not trips(bad - 1)
