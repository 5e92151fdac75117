"""Deadlines: fired once when due, moved later for free, never after removal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.wire.wheel import Alarm, Due, Wheel


class Item:
    def __init__(self, due: float) -> None:
        self.alarm = Alarm(self.on_due)
        self.alarm.due = due
        self.fired: list[float] = []
        self.victim: Item | None = None
        self.wheel: Wheel | None = None

    def on_due(self, now: float) -> None:
        self.fired.append(now)
        if self.victim is not None and self.wheel is not None:
            self.wheel.discard(self.victim.alarm)


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_an_item_fires_once_after_its_due() -> None:
    """Never early, at most one tick late, never twice."""
    clock = Clock()
    wheel = Wheel(clock, 0.1)
    item = Item(101.0)
    wheel.add(item.alarm)
    clock.now = 100.95
    wheel.turn()
    assert item.fired == []
    clock.now = 101.2
    wheel.turn()
    clock.now = 150.0
    wheel.turn()
    assert item.fired == [101.2]


def test_moving_later_needs_no_call() -> None:
    """An item whose due moved on is put back when its old slot comes round."""
    clock = Clock()
    wheel = Wheel(clock, 0.1)
    item = Item(101.0)
    wheel.add(item.alarm)
    item.alarm.due = 105.0
    clock.now = 102.0
    wheel.turn()
    assert item.fired == []
    clock.now = 105.2
    wheel.turn()
    assert item.fired == [105.2]


def test_discarded_by_a_neighbour_of_the_same_slot_does_not_fire() -> None:
    """Two items of one slot: the first to fire removes the other, which then stays silent."""
    clock = Clock()
    wheel = Wheel(clock, 0.1)
    first, second = Item(101.0), Item(101.0)
    for item, other in ((first, second), (second, first)):
        item.victim, item.wheel = other, wheel
        wheel.add(item.alarm)
    clock.now = 102.0
    wheel.turn()
    assert len(first.fired) + len(second.fired) == 1


@given(
    st.lists(st.tuples(st.floats(100.0, 130.0), st.booleans()), max_size=40), st.lists(st.floats(0.0, 3.0), max_size=40)
)
def test_no_item_fires_early_or_gets_lost(dues: list[tuple[float, bool]], steps: list[float]) -> None:
    """For any dues and any steps of the clock: what is due has fired once, what is removed never."""
    clock = Clock()
    clock.now = 100.0
    wheel = Wheel(clock, 0.05)
    items = []
    for due, keep in dues:
        item = Item(due)
        wheel.add(item.alarm)
        if not keep:
            wheel.discard(item.alarm)
        items.append((item, keep))
    for step in [*steps, 60.0]:
        clock.now += step
        wheel.turn()
        for item, keep in items:
            assert all(at >= item.alarm.due for at in item.fired)
            assert len(item.fired) == (1 if keep and item.alarm.due < clock.now - 0.1 else len(item.fired))
            assert keep or not item.fired


def test_an_item_that_is_never_due_costs_its_neighbours_nothing() -> None:
    """A deadline moved to never leaves the wheel when its slot comes round, and can be set again."""
    clock = Clock()
    wheel = Wheel(clock, 0.1)
    items = [Item(101.0) for _ in range(20)]
    for item in items:
        wheel.add(item.alarm)
    for item in items[::2]:
        item.alarm.due = float("inf")
    clock.now = 102.0
    wheel.turn()
    assert [len(item.fired) for item in items] == [0, 1] * 10
    assert [item.alarm.wheel_slot for item in items[::2]] == [0] * 10
    items[0].alarm.due = 103.0
    wheel.add(items[0].alarm)
    clock.now = 104.0
    wheel.turn()
    assert items[0].fired == [104.0]


class Faulty(Item):
    def on_due(self, now: float) -> None:
        super().on_due(now)
        raise RuntimeError("broken")


def test_a_fault_in_one_item_does_not_lose_the_others() -> None:
    """What shares a slot with an item that raises still fires, a turn later at the most."""
    clock = Clock()
    wheel = Wheel(clock, 0.1)
    items = [*(Item(101.0) for _ in range(20)), Faulty(101.0)]
    for item in items:
        wheel.add(item.alarm)
    clock.now = 102.0
    with pytest.raises(RuntimeError):
        wheel.turn()
    clock.now = 103.0
    wheel.turn()
    assert all(len(item.fired) == 1 for item in items)


def test_a_deadline_beyond_a_round_of_the_wheel_fires_at_its_time() -> None:
    """What is due in an hour waits in the slots of a minute and a half, again and again, and keeps its place."""
    clock = Clock()
    wheel = Wheel(clock, 0.05)
    near, far = Item(100.0 + 150.0), Item(100.0 + 3600.0)
    for item in (near, far):
        wheel.add(item.alarm)
    while clock.now < 100.0 + 3700.0:
        clock.now += 1.0
        wheel.turn()
    assert near.fired == [251.0]
    assert far.fired == [3701.0]


def test_an_alarm_that_was_dropped_is_silent() -> None:
    """It may still be on the wheel; nobody is called."""
    clock = Clock()
    wheel = Wheel(clock, 0.1)
    item = Item(101.0)
    wheel.add(item.alarm)
    item.alarm.drop()
    clock.now = 102.0
    wheel.turn()
    assert item.fired == []


def test_a_deadline_of_nothing_in_particular_is_a_mistake() -> None:
    """``Due`` is a base: what is to be done is said by whoever has the deadline."""
    with pytest.raises(NotImplementedError):
        Due().on_due(0.0)
