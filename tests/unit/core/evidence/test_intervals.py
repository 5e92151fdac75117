"""Promises of the intervals on screens."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.evidence.intervals import MeanInterval, rate_interval


@given(st.integers(1, 2_000), st.data(), st.sampled_from([0.01, 0.05, 0.2]))
def test_a_rate_interval_is_where_the_mixture_is_not_convinced(number, data, alpha):
    """Both ends lie on the border of the defining inequality and enclose the observed rate."""
    bad = data.draw(st.integers(0, number))
    interval = rate_interval(number, bad, alpha)
    assert 0.0 <= interval.lower <= bad / number <= interval.upper <= 1.0

    def log_mixture(rate: float) -> float:
        beta = math.lgamma(bad + 0.5) + math.lgamma(number - bad + 0.5) - math.lgamma(number + 1) - math.log(math.pi)
        return beta - bad * math.log(rate) - (number - bad) * math.log1p(-rate)

    for end, inner in ((interval.lower, 0.0), (interval.upper, 1.0)):
        if end != inner:
            assert log_mixture(end) == pytest.approx(math.log(1 / alpha), abs=1e-4)


def test_extreme_rates_reach_the_end():
    """Nothing bad leaves 0 possible, everything bad leaves 1 possible, no data leaves everything possible."""
    assert rate_interval(50, 0).lower == 0.0
    assert rate_interval(50, 50).upper == 1.0
    assert (rate_interval(0, 0).lower, rate_interval(0, 0).upper) == (0.0, 1.0)


def test_a_rate_interval_holds_at_every_look():
    """Looked at after every request, the true rate leaves the interval in at most alpha of all runs."""
    rng = random.Random(1)
    missed = 0
    for _ in range(100):
        bad = 0
        for number in range(1, 151):
            bad += rng.random() < 0.1
            interval = rate_interval(number, bad, 0.2)
            if not interval.lower <= 0.1 <= interval.upper:
                missed += 1
                break
    assert missed / 100 <= 0.2


def test_a_mean_interval_holds_at_every_look_and_shrinks():
    """The same for mean losses; and thousands of values leave a narrow interval."""
    rng = random.Random(2)
    missed = 0
    for _ in range(50):
        mean = MeanInterval(0.2)
        inside = True
        for _ in range(1_000):
            mean.add((rng.choice([0, 0, 0, 0, 1, -1, 1]) + 1) / 2)
            interval = mean.loss_interval()
            inside = inside and interval.lower <= 1 / 7 <= interval.upper
        missed += not inside
        assert interval.upper - interval.lower < 0.3
    assert missed / 50 <= 0.2


def test_no_values_say_nothing():
    """Without values the interval is infinite, not a point."""
    interval = MeanInterval().interval()
    assert (interval.lower, interval.upper) == (-math.inf, math.inf)


@pytest.mark.parametrize("arguments", [(5, 6, 0.05), (5, -1, 0.05), (5, 1, 0.0), (5, 1, 1.0)])
def test_impossible_counts_and_levels_are_refused(arguments):
    """More bad than all, or a level outside (0, 1), is a programming error."""
    with pytest.raises(ValueError, match="alpha"):
        rate_interval(*arguments)
    with pytest.raises(ValueError, match="alpha"):
        MeanInterval(0.0)
