"""Slow or not: by the guard's limit, by what the baseline showed before, and alike for all of a block."""

import pytest

from gateway.control.guards import Shape, Wanted, series_of
from gateway.control.rollouts_latencies import Latencies
from gateway.model.proving import Guard

LIMIT = Guard("ttft", "ttft", limit=2.0, quantile=0.9, or_ratio=1.5, feed="vote", block_s=30.0)
RATIO = Guard("total", "total", quantile=0.9, ratio=1.5, feed="vote", block_s=30.0)


def wanted(guard: Guard, shape: Shape) -> Wanted:
    """The guard's series of a shape."""
    return next(one for one in series_of(guard) if one.shape is shape)


def shown(latencies: Latencies, one: Wanted, seconds: float, second: int = 0) -> None:
    """The baseline answers often enough to be known, each time in so many seconds."""
    for _ in range(1_000):
        latencies.value(one, second, seconds, candidate=False, timed_out=False)


@pytest.mark.parametrize(("latency", "value"), [(1.9, 0.0), (2.1, 1.0)])
def test_without_a_baseline_the_limit_decides(latency: float, value: float) -> None:
    """From the first answer on, for either pool."""
    one = wanted(LIMIT, Shape.RATE)
    for candidate in (True, False):
        assert Latencies([one]).value(one, 5, latency, candidate=candidate, timed_out=False) == value


def test_a_slow_baseline_widens_the_limit() -> None:
    """A multiple of what it shows passes too, from the next block on."""
    one = wanted(LIMIT, Shape.RATE)
    latencies = Latencies([one])
    shown(latencies, one, 3.0)
    assert latencies.value(one, 5, 4.0, candidate=True, timed_out=False) == 1.0
    assert latencies.value(one, 35, 4.0, candidate=True, timed_out=False) == 0.0
    assert latencies.value(one, 35, 5.0, candidate=True, timed_out=False) == 1.0


def test_against_the_baseline_nobody_knows_before_it_was_seen() -> None:
    """Then the candidate may be slower by the ratio, and no more; the candidate's own latencies set no threshold."""
    one = wanted(RATIO, Shape.SHARE)
    latencies = Latencies([one])
    assert latencies.value(one, 5, 1.0, candidate=True, timed_out=False) is None
    shown(latencies, one, 1.0)
    for _ in range(1_000):
        latencies.value(one, 35, 100.0, candidate=True, timed_out=False)
    assert latencies.value(one, 65, 1.4, candidate=True, timed_out=False) == 0.0
    assert latencies.value(one, 65, 1.6, candidate=True, timed_out=False) == 1.0


def test_what_was_not_measured_says_nothing_and_a_timeout_is_slow() -> None:
    """Cancelled and failed requests have no latency; no first token in time is slower than any limit."""
    one = wanted(LIMIT, Shape.RATE)
    latencies = Latencies([one])
    assert latencies.value(one, 5, None, candidate=True, timed_out=False) is None
    assert latencies.value(one, 5, None, candidate=True, timed_out=True) == 1.0


def test_a_latency_of_the_baseline_is_shown_once_however_many_series_ask() -> None:
    """Half as many answers would be enough for a threshold, if each counted in the late series as well."""
    series = [one for one in series_of(LIMIT) if one.stages == "live"]
    latencies = Latencies(series)
    assert len(series) == 2
    for _ in range(99):
        for one in series:
            latencies.value(one, 5, 3.0, candidate=False, timed_out=False)
    assert latencies.value(series[0], 35, 4.0, candidate=True, timed_out=False) == 1.0, "99 of the 100 that it takes"
