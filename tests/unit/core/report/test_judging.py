"""Verdicts: decided by intervals that do not overlap, and by nothing else. No data is never a pass."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.evidence.intervals import MeanInterval
from gateway.core.report import METRICS, Estimate, Verdict
from gateway.core.report.judging import EMULATED, NO_BASELINE, NO_DATA, OVERLAP, compare, mean, quantile, share
from gateway.core.sketch import Sketch

ALPHA = 0.025
ERRORS, TTFT, QUALITY, CACHE = (METRICS[n] for n in ("error_rate", "ttft_p50", "quality", "cached_share"))


def test_no_data_is_never_a_pass():
    """Neither an empty pool nor an empty baseline gives a verdict, and each says which."""
    full, empty = share(0, 10_000, ALPHA), Estimate(0)
    assert compare(ERRORS, full, empty) is not None
    assert (compare(ERRORS, full, empty).verdict, compare(ERRORS, full, empty).reason) == (Verdict.NOT_ENOUGH, NO_DATA)
    assert compare(ERRORS, empty, full).reason == NO_BASELINE
    assert compare(ERRORS, empty, empty).verdict is Verdict.NOT_ENOUGH


@pytest.mark.parametrize(
    ("bad", "number", "verdict"),
    [(300, 1000, Verdict.WORSE), (0, 1000, Verdict.BETTER), (52, 1000, Verdict.NOT_ENOUGH), (1, 1, Verdict.NOT_ENOUGH)],
)
def test_rates_against_five_percent_of_a_thousand(bad, number, verdict):
    """Less is better; a small difference and a small number are not enough."""
    found = compare(ERRORS, share(50, 1000, ALPHA), share(bad, number, ALPHA))
    assert found.verdict is verdict
    assert (found.reason == OVERLAP) == (verdict is Verdict.NOT_ENOUGH)


def test_more_quality_is_better():
    """For scores the directions turn round."""
    good, bad = MeanInterval(ALPHA), MeanInterval(ALPHA)
    for _ in range(500):
        good.add(1.0)
        bad.add(0.6)
    assert compare(QUALITY, mean(bad), mean(good)).verdict is Verdict.BETTER
    assert compare(QUALITY, mean(good), mean(bad)).verdict is Verdict.WORSE


def test_latency_is_told_in_percent_of_the_baseline():
    """Half the time is minus fifty percent, within the sketch's accuracy."""
    slow, fast = Sketch(), Sketch()
    for index in range(1000):
        slow.add(1.0 + index / 1000)
        fast.add(0.5 + index / 2000)
    found = compare(TTFT, quantile(slow, 0.5, ALPHA), quantile(fast, 0.5, ALPHA))
    assert found.verdict is Verdict.BETTER
    assert found.delta == pytest.approx(-0.5, abs=0.02)
    assert found.lower < found.delta < found.upper < 0.0


def test_emulated_hardware_gets_no_latency_verdict():
    """Its numbers are shown; a rate is still judged."""
    slow, fast = Sketch(), Sketch()
    for _ in range(1000):
        slow.add(1.0)
        fast.add(0.1)
    found = compare(TTFT, quantile(slow, 0.5, ALPHA), quantile(fast, 0.5, ALPHA), emulated=True)
    assert (found.verdict, found.reason) == (Verdict.NOT_ENOUGH, EMULATED)
    assert found.delta == pytest.approx(-0.9, abs=0.01)
    rate = compare(ERRORS, share(0, 1000, ALPHA), share(500, 1000, ALPHA), emulated=True)
    assert rate.verdict is Verdict.WORSE


def test_what_is_told_is_not_judged():
    """A prefix cache or a load has no good direction of its own."""
    assert compare(CACHE, Estimate(10, 0.5), Estimate(10, 0.1)) is None


@given(st.integers(0, 300), st.integers(0, 300), st.integers(1, 300))
def test_a_verdict_needs_intervals_apart(one, two, number):
    """For any counts."""
    baseline, other = share(min(one, number), number, ALPHA), share(min(two, number), number, ALPHA)
    found = compare(ERRORS, baseline, other)
    apart = other.lower > baseline.upper or other.upper < baseline.lower
    assert (found.verdict is not Verdict.NOT_ENOUGH) == apart


def test_equal_pools_are_told_apart_in_at_most_five_percent_of_reports():
    """200 pairs of equal pools, looked at after every tenth answer: a verdict ever counts as wrong."""
    rng = random.Random(3)
    wrong = 0
    for _ in range(200):
        bad = [0, 0]
        for number in range(1, 301):
            for pool in (0, 1):
                bad[pool] += rng.random() < 0.1
            if number % 10 == 0:
                found = compare(ERRORS, share(bad[0], number, ALPHA), share(bad[1], number, ALPHA))
                if found.verdict is not Verdict.NOT_ENOUGH:
                    wrong += 1
                    break
    assert wrong <= 10
