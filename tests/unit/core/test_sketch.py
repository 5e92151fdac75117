"""Sketches: quantiles within their promise, merging in any order to the same bytes, intervals that hold."""

import itertools
import math
import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.evidence.intervals import rate_interval
from gateway.core.sketch import ACCURACY, LEAST_S, MOST_S, Sketch

SECONDS = st.floats(LEAST_S, MOST_S, allow_nan=False)
MANY = st.lists(SECONDS, min_size=1, max_size=60)


def sketch_of(values):
    made = Sketch()
    for value in values:
        made.add(value)
    return made


@given(MANY, st.sampled_from([0.01, 0.5, 0.9, 0.95, 0.99, 1.0]))
def test_a_quantile_is_within_one_percent_of_the_exact_one(values, share):
    """Whatever the values: the relative error stays under the stated accuracy, and microsecond rounding."""
    exact = sorted(values)[max(1, math.ceil(share * len(values) - 1e-9)) - 1]
    told = sketch_of(values).quantile(share)
    assert ACCURACY <= 0.01
    assert abs(told - exact) <= ACCURACY * exact + 1e-6


@given(st.lists(MANY, max_size=5), st.randoms(use_true_random=False))
def test_merging_in_any_order_gives_the_same_bytes(parts, rng):
    """Workers, replicas and time blocks may come in any order, whole or in pieces."""
    whole = sketch_of([value for part in parts for value in part])
    shuffled = list(parts)
    rng.shuffle(shuffled)
    merged = Sketch()
    for part in shuffled:
        merged.merge(sketch_of(part))
    assert merged.encode() == whole.encode()


@given(st.lists(st.lists(st.floats(-1.0, 2 * MOST_S) | st.sampled_from([0.0, -0.0, LEAST_S, MOST_S, 6e-7]))))
def test_many_at_once_are_the_same_as_one_by_one(parts):
    """Also durations of nothing, below nothing, and beyond either end."""
    made = Sketch()
    for part in parts:
        made.extend(part)
    assert made.encode() == sketch_of([value for part in parts for value in part]).encode()


@given(MANY)
def test_bytes_hold_the_whole_sketch(values):
    """Stored and read again it goes on as before."""
    made = sketch_of(values)
    read = Sketch.decode(made.encode())
    assert read.encode() == made.encode()
    assert read.quantile(0.5) == made.quantile(0.5)
    assert (read.least, read.most, read.mean) == (made.least, made.most, made.mean)


@pytest.mark.parametrize("data", [b"", b"x", msgspec.msgpack.encode([3, 0, 0, 0, [1, 2]]), b"\x93"])
def test_bytes_that_are_no_sketch_are_refused(data):
    """Also counts that do not add up."""
    with pytest.raises(msgspec.MsgspecError):
        Sketch.decode(data)


@pytest.mark.parametrize(("value", "told"), [(0.0, 0.0), (-1.0, 0.0), (1e-9, 0.0), (float("inf"), MOST_S)])
def test_values_out_of_range_count_at_the_ends(value, told):
    """A clock that stands still or a duration without end is counted and breaks nothing."""
    made = sketch_of([value])
    assert (made.count, made.quantile(0.5)) == (1, told)


def test_without_values_there_is_no_number():
    """No data is None and an interval of everything, never a zero."""
    empty = Sketch()
    assert (empty.quantile(0.5), empty.mean, empty.least, empty.most) == (None, None, None, None)
    assert empty.quantiles([0.5, 0.9]) == [None, None]
    assert empty.quantile_interval(0.5) == (0.0, math.inf)
    assert list(empty.spans()) == []


def test_mean_and_ends_are_exact_to_the_microsecond():
    """They are sums and comparisons of whole microseconds, not read from bins."""
    made = sketch_of([0.1, 0.2, 0.6])
    assert (made.mean, made.least, made.most) == (0.3, 0.1, 0.6)


def test_bins_tile_the_values_in_order():
    """A plot can draw them side by side; their counts are all values."""
    spans = list(sketch_of([0.001 * 1.07**step for step in range(200)]).spans())
    assert sum(found.number for found in spans) == 200
    assert all(left.upper <= right.lower for left, right in itertools.pairwise(spans))


@given(st.integers(1, 400), st.sampled_from([0.5, 0.95, 0.99]), st.sampled_from([0.05, 0.025]))
def test_the_interval_of_a_quantile_is_the_rates_turned_round(number, share, alpha):
    """A value lies inside exactly while the anytime-valid interval of P(X <= x) holds the share."""
    made = sketch_of([float(index) for index in range(1, number + 1)])
    span = made.quantile_interval(share, alpha)
    for hits in range(number + 1):
        rate = rate_interval(number, hits, alpha)
        inside = rate.lower < share < rate.upper
        x = hits + 0.5  # exactly ``hits`` of the values are below
        if inside and 1 <= hits < number:
            assert span.lower <= x <= span.upper + 1
        if span.upper * (1 + 2 * ACCURACY) + 1 < x or x < span.lower * (1 - 2 * ACCURACY) - 1:
            assert not inside


def test_the_interval_of_a_quantile_holds_at_every_look():
    """Looked at after each value, it leaves out the truth in at most 5 % of runs (here: 200 runs of 400 values)."""
    rng = random.Random(11)
    missed = 0
    for _ in range(200):
        made = Sketch()
        for index in range(400):
            made.add(rng.expovariate(1.0))
            if index % 7 == 0:
                span = made.quantile_interval(0.9)
                truth = -math.log(0.1)
                if not span.lower <= truth <= span.upper:
                    missed += 1
                    break
    assert missed <= 10


def test_few_values_bound_no_tail():
    """A hundred values say nothing about how long the slowest percent may take."""
    assert sketch_of([0.1] * 100).quantile_interval(0.99).upper == math.inf
    assert sketch_of([0.1] * 100).quantile_interval(0.5).upper < 0.11
