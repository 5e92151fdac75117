"""Promises of the ladders of bets."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.evidence.ladders import (
    Ladder,
    pair_ladder,
    promotion_pair_ladder,
    promotion_rate_ladder,
    rate_ladder,
)

limits = st.floats(1e-6, 0.999)
tolerances = st.floats(0.0, 0.9)


def _factors(ladder: Ladder, value: float) -> list[float]:
    return [math.exp(step) for step in ladder.log_factors(value)]


@given(limits, st.sampled_from([rate_ladder, promotion_rate_ladder]))
def test_every_rate_bet_is_fair_at_the_limit(limit, build):
    """At a pool exactly at its limit no bet wins on average: m L(1) + (1 - m) L(0) = 1, and L >= 0."""
    ladder = build(limit)
    for bad, good in zip(_factors(ladder, 1.0), _factors(ladder, 0.0), strict=True):
        assert bad >= 0.0
        assert good >= 0.0
        assert limit * bad + (1.0 - limit) * good == pytest.approx(1.0, rel=1e-9)


@given(tolerances, st.floats(0.0, 1.0), st.sampled_from([pair_ladder, promotion_pair_ladder]))
def test_every_pair_bet_is_fair_at_the_tolerance(tolerance, spread, build):
    """Any two-point loss distribution with mean at the tolerance leaves every bet's expectation at 1."""
    low, high = tolerance - spread * (1.0 + tolerance), tolerance + spread * (1.0 - tolerance)
    weight = 0.5 if high == low else (tolerance - low) / (high - low)
    ladder = build(tolerance)
    for lose, win in zip(_factors(ladder, high), _factors(ladder, low), strict=True):
        assert weight * lose + (1.0 - weight) * win == pytest.approx(1.0, rel=1e-9)


@given(limits, st.floats(0.0, 1.0))
def test_no_outcome_ruins_a_rate_bet(limit, value):
    """Every factor stays positive, so no single outcome can take a bet out for ever."""
    assert all(factor > 0.0 for factor in _factors(rate_ladder(limit), value))


@given(limits)
def test_suspicion_bets_win_on_bad_and_promotion_bets_on_good(limit):
    """The two directions are the same formula with the bets' signs turned."""
    assert all(bet > 0.0 for bet in rate_ladder(limit).bets)
    assert all(bet < 0.0 for bet in promotion_rate_ladder(limit).bets)


@given(limits)
def test_a_bad_outcome_is_the_likelihood_ratio_of_the_assumed_rate(limit):
    """For 0/1 outcomes a factor is exactly p/m or (1-p)/(1-m) of the assumed rate p."""
    ladder = rate_ladder(limit)
    for target, bad, good in zip(ladder.targets, _factors(ladder, 1.0), _factors(ladder, 0.0), strict=True):
        assert bad == pytest.approx(target / limit, rel=1e-9)
        assert good == pytest.approx((1.0 - target) / (1.0 - limit), rel=1e-9)


@given(limits, st.floats(0.0, 1.0))
def test_cached_logs_agree_with_the_formula(limit, value):
    """Outcomes 0 and 1 use stored logs; they are those of the formula."""
    ladder = rate_ladder(limit)
    expected = [math.log1p(bet * (value - limit)) for bet in ladder.bets]
    assert ladder.log_factors(value) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("limit", [0.0, 1.0, -0.1, 1.5, math.nan])
def test_a_limit_without_room_to_bet_is_refused(limit):
    """Limits of 0 and 1 leave nothing to bet on."""
    for build in (rate_ladder, promotion_rate_ladder):
        with pytest.raises(ValueError, match="strictly between 0 and 1"):
            build(limit)


@pytest.mark.parametrize("tolerance", [-0.01, 1.0, math.nan])
def test_an_impossible_tolerance_is_refused(tolerance):
    """A tolerance of 1 allows everything, a negative one nothing."""
    for build in (pair_ladder, promotion_pair_ladder):
        with pytest.raises(ValueError, match="tolerance"):
            build(tolerance)
