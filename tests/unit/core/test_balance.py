"""Endpoint choice: less loaded wins, conversations stay where that costs little, loss of an endpoint moves few."""

import random
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from gateway.core.balance import STALE_S, Ring, choose, pressure


def test_power_of_two_prefers_the_less_loaded() -> None:
    """An endpoint with far more load than the others gets almost nothing."""
    loads = [50.0, 1.0, 1.0, 1.0]
    rand = random.Random(1).random
    picked = Counter(choose([0, 1, 2, 3], lambda index: loads[index], None, rand) for _ in range(2000))
    assert picked[0] == 0
    assert min(picked[1], picked[2], picked[3]) > 400


@given(st.integers(1, 8), st.data())
def test_the_choice_is_always_allowed(count: int, data: st.DataObject) -> None:
    """Whatever loads, stickiness and randomness: the result is one of the allowed endpoints."""
    allowed = data.draw(st.lists(st.integers(0, 20), min_size=count, max_size=count, unique=True))
    sticky = data.draw(st.one_of(st.none(), st.sampled_from(allowed)))
    loads = {index: data.draw(st.floats(0, 100)) for index in allowed}
    numbers = data.draw(st.lists(st.floats(0, 1, exclude_max=True), min_size=2, max_size=2))
    assert choose(allowed, loads.__getitem__, sticky, iter(numbers).__next__) in allowed


def test_stickiness_holds_under_even_load_and_yields_under_skew() -> None:
    """A conversation keeps its endpoint within the slack, and leaves it when it is clearly overloaded."""
    rand = random.Random(2).random
    assert {choose([0, 1, 2], lambda index: 5.0, 2, rand) for _ in range(50)} == {2}
    skewed = [5.0, 5.0, 30.0]
    assert 2 not in {choose([0, 1, 2], lambda index: skewed[index], 2, rand) for _ in range(50)}


def test_ring_moves_only_what_it_must() -> None:
    """When one of four endpoints is not allowed, only its conversations move; all of them come back."""
    ring = Ring(["a", "b", "c", "d"])
    keys = [random.Random(seed).randbytes(8) for seed in range(2000)]
    before = [ring.walk(key, [0, 1, 2, 3]) for key in keys]
    without = [ring.walk(key, [0, 1, 3]) for key in keys]
    assert all(b == w for b, w in zip(before, without, strict=True) if b != 2)
    shares = Counter(before)
    assert all(shares[index] > 300 for index in range(4))


def test_pressure_uses_fresh_reports_only() -> None:
    """A queue reported a moment ago counts twice; an old report counts nothing; unknown numbers count nothing."""
    assert pressure(2, 6.0, 4.0, 0.5, 0.1) == 14.0
    assert pressure(2, 6.0, 4.0, 0.5, STALE_S + 1) == 2.0
    assert pressure(3, -1.0, -1.0, -1.0, 0.0) == 3.0
    assert pressure(0, 0.0, 0.0, 0.99, 0.0) > 0.0
