"""Promises of latency guards."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.evidence.latency import (
    ControlQuantile,
    exceedance_limit,
    is_slow,
    is_slow_for_arm,
)


def exact_quantile(values: list[float], quantile: float) -> float:
    """Smallest x of them with P(X <= x) >= quantile."""
    return sorted(values)[max(1, math.ceil(quantile * len(values) - 1e-9)) - 1]


latencies = st.lists(st.integers(1, 50).map(float), min_size=1, max_size=200)


@given(latencies, st.integers(1, 50).map(float), st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_quantile_limit_is_exactly_an_exceedance_limit(values, limit, quantile):
    """The P-quantile is at most L if and only if the share above L is at most 1 - P."""
    exceeding = sum(is_slow(value, limit) for value in values)
    within = exceeding * 10**6 <= round(exceedance_limit(quantile) * 10**6) * len(values)
    assert (exact_quantile(values, quantile) <= limit) == within


@pytest.mark.parametrize(("quantile", "limit"), [(0.99, 0.01), (0.95, 0.05), (0.999, 0.001), (0.9, 0.1)])
def test_decimal_quantiles_have_decimal_limits(quantile, limit):
    """P99 means 1 %, not 1.0000000000000009 %."""
    assert exceedance_limit(quantile) == limit


@pytest.mark.parametrize("quantile", [0.0, 1.0])
def test_extreme_quantiles_are_refused(quantile):
    """The largest latency is no quantile that could be guarded."""
    with pytest.raises(ValueError, match="quantile"):
        exceedance_limit(quantile)


def test_equal_is_not_slow_and_nothing_is():
    """Exactly the limit is within it; no first token by the limit is beyond it."""
    assert not is_slow(2.0, 2.0)
    assert is_slow(2.0001, 2.0)
    assert is_slow(None, 2.0)


@given(st.integers(100, 500), st.integers(1, 5000))
def test_a_scaled_threshold_is_exact_for_decimal_ratios(percent, control_ms):
    """Exactly ratio times the control's quantile is not slow, although a float may round the product down."""
    latency = percent * control_ms / 100
    ratio = percent / 100
    assert not is_slow_for_arm(latency, candidate=True, control_quantile=float(control_ms), tolerated_ratio=ratio)
    assert is_slow_for_arm(latency + 0.01, candidate=True, control_quantile=float(control_ms), tolerated_ratio=ratio)


def test_each_arm_has_its_threshold():
    """The control is measured against its own quantile, the candidate against the tolerated multiple."""
    for latency, candidate, slow in ((1.1, True, False), (1.1, False, True), (1.3, True, True)):
        assert is_slow_for_arm(latency, candidate=candidate, control_quantile=1.0, tolerated_ratio=1.2) is slow


@given(latencies, st.sampled_from([0.5, 0.9, 0.95]))
def test_the_tracked_quantile_is_the_exact_one_within_a_bin(values, quantile):
    """The threshold is at most one bin (1 %) above the exact quantile of earlier blocks."""
    tracked = ControlQuantile(quantile, least=1)
    for value in values:
        tracked.observe(3, value)
    exact = exact_quantile(values, quantile)
    threshold = tracked.threshold(4)
    assert threshold is not None
    assert exact * (1 - 1e-9) <= threshold <= exact * 1.01 * (1 + 1e-9)


def test_a_block_never_sees_itself():
    """Only earlier blocks set the threshold, and once asked for it stays: late outcomes cannot move the judgement."""
    tracked = ControlQuantile(0.5, least=1)
    tracked.observe(7, 1.0)
    tracked.observe(8, 100.0)
    first = tracked.threshold(8)
    assert first == pytest.approx(1.0, rel=0.011)
    tracked.observe(7, 50.0)
    tracked.observe(7, 50.0)
    assert tracked.threshold(8) == first
    assert tracked.threshold(9) == pytest.approx(50.0, rel=0.011)


def test_too_few_latencies_give_no_threshold():
    """A quantile of a handful of values is noise; ten expected exceedances are asked for by default."""
    tracked = ControlQuantile(0.99)
    for _ in range(999):
        tracked.observe(0, 1.0)
    assert tracked.threshold(1) is None
    tracked.observe(0, 1.0)
    assert tracked.threshold(2) is not None


def test_old_blocks_leave_the_window():
    """The control's quantile follows its own drift, in bounded memory."""
    tracked = ControlQuantile(0.5, window_blocks=5, least=1)
    for block in range(100):
        tracked.observe(block, 1.0 if block < 50 else 10.0)
    tracked.observe(3, 1.0)
    assert tracked.threshold(100) == pytest.approx(10.0, rel=0.011)
    assert len(tracked._recent) <= 5
    assert tracked.threshold(200) is None


@given(st.lists(st.tuples(st.integers(0, 3), st.floats(0.01, 10.0)), max_size=80), st.integers(0, 80))
def test_a_restart_changes_no_threshold_within_the_window(steps, restart):
    """Blocks that come are judged as without it, and those that were judged already as they were."""
    whole, again, block = ControlQuantile(0.5, least=3), ControlQuantile(0.5, least=3), 1_000
    for number, (later, latency) in enumerate(steps):
        if number == restart:
            stored, again = again.state(), ControlQuantile(0.5, least=3)
            again.restore(stored)
        block += later
        assert whole.threshold(block) == again.threshold(block)
        for one in (whole, again):
            one.observe(block, latency)
            one.state()  # what it has put together must not be counted twice


def test_what_is_stored_of_a_window_is_small_and_counts_for_no_earlier_block():
    """Older blocks are put together under their newest, and leave the window with it."""
    tracked = ControlQuantile(0.5, window_blocks=80, least=1)
    for block in range(200):
        tracked.observe(block, 1.0 if block < 195 else 100.0)
    stored = tracked.state()
    assert len(stored.recent) <= 10
    assert sum(count for _, bins in stored.recent for _, count in bins) == 80
    again = ControlQuantile(0.5, window_blocks=80, least=1)
    again.restore(stored)
    assert again.threshold(200) == pytest.approx(1.0, rel=0.02)
    tracked.observe(150, 1.0)
    assert sum(count for _, bins in tracked.state().recent for _, count in bins) == 81
