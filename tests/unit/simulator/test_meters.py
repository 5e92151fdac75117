"""Counting."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.simulator.meters import Histogram


@given(st.lists(st.floats(0, 100), max_size=50))
def test_histogram_keeps_everything(values: list[float]) -> None:
    """Every value falls into exactly one bucket: the first whose bound is not below it."""
    histogram = Histogram((1.0, 10.0))
    for value in values:
        histogram.add(value)
    expected = [sum(v <= 1 for v in values), sum(1 < v <= 10 for v in values), sum(v > 10 for v in values)]
    assert histogram.counts == expected


def test_many_at_once() -> None:
    """A value may count several times."""
    histogram = Histogram((1.0,))
    histogram.add(0.5, 4)
    assert (histogram.counts, histogram.total) == ([4, 0], 2.0)
