"""Differences between the arms: unbiased, disjoint, and blind to outcomes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.control.guards import series_of
from gateway.control.rollouts_margins import Margins
from gateway.model.proving import Guard

GUARD = Guard("json", "format_error_rate", margin=0.005, feed="product", block_s=10.0, deadline_s=20.0)


def margins(guard: Guard = GUARD) -> Margins:
    return Margins(series_of(guard)[0], 0.0)


def test_a_block_is_handed_on_when_its_deadline_is_over_and_only_with_both_arms() -> None:
    """Before that outcomes may be missing; one arm alone says nothing."""
    made = margins()
    made.add(3, 1.0, candidate=True)
    made.add(4, 0.0, candidate=False)
    made.add(13, 1.0, candidate=True)
    assert list(made.ripe(29.0)) == []
    assert list(made.ripe(31.0)) == [(30.0, 1.0, 1)], "it is known of the second in which the deadline is over"
    assert list(made.ripe(100.0)) == []


@given(st.lists(st.booleans(), min_size=1, max_size=30), st.lists(st.booleans(), min_size=1, max_size=30))
def test_every_outcome_is_in_exactly_one_difference(mine: list[bool], theirs: list[bool]) -> None:
    """As many as the smaller arm; each difference lies in [-1, 1]; equal arms of one size cancel in the sum."""
    made = margins()
    for bad in mine:
        made.add(1, float(bad), candidate=True)
    for bad in theirs:
        made.add(1, float(bad), candidate=False)
    found = [value for _, value, count in made.ripe(100.0) for _ in range(count)]
    assert len(found) == min(len(mine), len(theirs))
    assert all(-1.0 <= value <= 1.0 for value in found)
    if len(mine) == len(theirs):
        assert sum(found) == pytest.approx(sum(mine) - sum(theirs))


def test_what_was_in_the_air_at_a_stage_start_is_forgotten() -> None:
    """It belongs to another load."""
    made = margins()
    made.add(3, 1.0, candidate=True)
    made.add(3, 0.0, candidate=False)
    made.skip(15.0)
    made.add(21, 0.0, candidate=True)
    made.add(21, 1.0, candidate=False)
    assert list(made.ripe(200.0)) == [(50.0, -1.0, 1)]


@given(st.integers(0, 60))
def test_a_restart_at_any_moment_changes_nothing(restart: int) -> None:
    """The same differences, of the same seconds: who heard of one before the restart knows it again."""
    made, whole = margins(), margins()
    found: list[tuple[float, float, int]] = []
    wanted: list[tuple[float, float, int]] = []
    for second in range(100):
        if second == restart:
            again = margins()
            again.restore(made.state())
            made = again
        for one in (made, whole):
            one.add(second, float(second % 3 == 0), candidate=second % 2 == 0)
        found += made.ripe(second + 1.0)
        wanted += whole.ripe(second + 1.0)
    assert found == wanted != []
