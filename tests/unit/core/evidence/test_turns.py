"""The mean number of turns: right for any shape of conversations, bounded, and unknown before it is known."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.evidence import turns
from gateway.core.evidence.turns import IDLE_S, LEAST_CONVERSATIONS, Turns, TurnsState


def geometric(mean: float, conversations: int, at_once: int, seed: int = 1) -> Turns:
    """Requests of interleaved conversations."""
    draw, found = random.Random(seed), Turns()
    running, made, second = [f"c{number}" for number in range(at_once)], at_once, 0.0
    while made < conversations:
        second += 0.01
        index = draw.randrange(at_once)
        found.see(running[index], second)
        if draw.random() < 1.0 / mean:
            running[index], made = f"c{made}", made + 1
    return found


@pytest.mark.parametrize("mean", [1.0, 3.0, 8.0])
def test_the_mean_is_found(mean: float) -> None:
    """Whatever runs beside it."""
    assert geometric(mean, 4_000, 200).mean() == pytest.approx(mean, rel=0.08)


def test_it_is_found_with_more_conversations_than_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """A part of them tells as much, because it is drawn without looking."""
    monkeypatch.setattr(turns, "MOST", 512)
    found = geometric(4.0, 6_000, 500)
    assert found.mean() == pytest.approx(4.0, rel=0.15)
    assert len(found._open) <= 512


def test_few_conversations_say_nothing() -> None:
    """None, so that nobody takes it for 1."""
    found = Turns()
    for number in range(LEAST_CONVERSATIONS - 1):
        found.see(f"c{number}", 0.0)
    assert found.mean() is None
    found.see("one more", 0.0)
    assert found.mean() == 1.0


def test_after_an_hour_it_is_another_conversation() -> None:
    """And idle ones make room first."""
    found = Turns(TurnsState(200, 100))
    found.see("a", 0.0)
    found.see("a", IDLE_S)
    found.see("a", 2 * IDLE_S + 1)
    assert found.state() == TurnsState(203, 102)


def test_what_was_long_ago_weighs_less(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mean follows a change of the traffic."""
    monkeypatch.setattr(turns, "REMEMBER_MOST", 400)
    found = Turns(TurnsState(4_000, 400))
    for number in range(4_000):
        found.see(f"c{number}", float(number))
    assert found.mean() == pytest.approx(1.0, abs=0.05)


@given(st.lists(st.tuples(st.integers(0, 5), st.floats(0, 1e5)), max_size=200))
def test_a_restart_forgets_nobody_twice(seen: list[tuple[int, float]]) -> None:
    """The counts go on; they are never negative and never fewer requests than conversations."""
    found = Turns()
    for number, at in seen:
        found.see(str(number), at)
        found = Turns(found.state()) if number == 5 else found
        state = found.state()
        assert 0 <= state.conversations <= state.requests
