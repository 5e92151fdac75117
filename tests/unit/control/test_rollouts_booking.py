"""Counts on their way to the judge: whatever the portions, the same blocks."""

import random

import pytest

from gateway.control.rollouts_booking import Booking
from gateway.core.evidence import BASELINE, CANDIDATE, Budget, Form, Judge, SeriesKey, SeriesSpec

RATE, SHARE = SeriesKey("errors", "b", "p"), SeriesKey("ratio", "b", "p")
SLICE = SeriesKey("errors", "*", "p")


def judge() -> Judge:
    """With a rate, its slice and a share of failures."""
    made = Judge(Budget())
    made.register(SLICE, SeriesSpec(Form.SLICE, 0.0, block_s=10.0, deadline_s=30.0, announced=True), 0.0)
    rate = SeriesSpec(Form.RATE, 0.1, block_s=10.0, deadline_s=30.0, announced=True)
    made.register(RATE, rate, 0.0, [SLICE])
    made.register(SHARE, SeriesSpec(Form.SHARE, 0.1, block_s=10.0, deadline_s=30.0, tolerated_ratio=1.5), 0.0)
    return made


def test_many_at_once_are_the_same_as_one_by_one() -> None:
    """Values, unscored ones and lanes, over several blocks."""
    rand = random.Random(1)
    one_by_one, together = judge(), judge()
    booking = Booking(together, "b")
    for _ in range(500):
        second, value = float(rand.randrange(40)), rand.choice([0.0, 1.0, None])
        lane = rand.choice([CANDIDATE, BASELINE])
        booking.count("errors", "p", second, value)
        booking.count("ratio", "p", second, float(bool(value)), lane=lane)
        if value is None:
            one_by_one.accept_unscored(RATE, second)
        else:
            one_by_one.accept(RATE, second, value)
        one_by_one.accept(SHARE, second, float(bool(value)), 1, lane)
    booking.settle()
    assert together.collect(100.0) == one_by_one.collect(100.0) != []


def test_nothing_is_told_before_and_nothing_twice() -> None:
    """``settle`` hands on what was counted since the last time."""
    seen = judge()
    booking = Booking(seen, "b")
    booking.count("errors", "p", 1.0, 1.0, number=3)
    assert seen.series(RATE).timeline.pending == {}
    booking.settle()
    booking.settle()
    (block,) = seen.series(RATE).timeline.pending.values()
    assert sum(block.cells.values()) == 3


def test_what_the_judge_refuses_is_not_told_again() -> None:
    """A value that no guard knows is an error once, and does not hold up what comes later."""
    seen = judge()
    booking = Booking(seen, "b")
    booking.count("errors", "p", 1.0, 0.5)
    with pytest.raises(ValueError, match="no outcome"):
        booking.settle()
    booking.count("errors", "p", 1.0, 1.0)
    booking.settle()
    (block,) = seen.series(RATE).timeline.pending.values()
    assert sum(block.cells.values()) == 1
