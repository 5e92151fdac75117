"""Promises of the timeline: dispatch order, ripeness, lateness."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.evidence.timeline import Timeline, block_number


def _ripe(timeline: Timeline, now_s: float) -> list[int]:
    return [number for number, _ in timeline.take_ripe(now_s)]


def _open(timeline: Timeline, at_s: float, announced: int = 0, resolved: int = 0) -> None:
    block = timeline.open_at(at_s, 1)
    assert block is not None
    block.announce(announced)
    block.add(0.0, resolved)


def test_a_block_waits_for_its_deadline():
    """Without announcements nobody knows what is missing, so every block waits, and then is closed for good."""
    timeline = Timeline(10.0, 30.0, 0.0)
    _open(timeline, 5.0, resolved=1)
    assert _ripe(timeline, 39.9) == []
    assert _ripe(timeline, 40.0) == [0]
    assert timeline.open_at(9.0, 2) is None
    assert timeline.late == 2
    assert timeline.open_at(10.0, 1) is not None


def test_announced_blocks_ripen_when_all_is_resolved():
    """With announcements a block waits only for its own requests."""
    timeline = Timeline(10.0, 30.0, 0.0, announced=True, grace_s=1.0)
    _open(timeline, 5.0, announced=2, resolved=1)
    assert _ripe(timeline, 12.0) == []
    _open(timeline, 6.0, resolved=1)
    assert _ripe(timeline, 10.9) == []
    assert _ripe(timeline, 11.0) == [0]


def test_a_slow_block_holds_back_the_later_ones():
    """Order is strict: a resolved block waits for an earlier one that is not, until the earlier one's deadline."""
    timeline = Timeline(10.0, 30.0, 0.0, announced=True)
    _open(timeline, 5.0, announced=1)
    _open(timeline, 15.0, announced=1, resolved=1)
    assert _ripe(timeline, 39.0) == []
    assert timeline.next_block == 0
    assert _ripe(timeline, 40.0) == [0, 1]


def test_time_without_traffic_closes_blocks_too():
    """Counts for an empty stretch that is over come too late."""
    timeline = Timeline(10.0, 30.0, 0.0)
    assert _ripe(timeline, 1000.0) == []
    assert timeline.next_block == 97
    assert timeline.open_at(969.0, 3) is None
    assert timeline.late == 3


@given(
    st.lists(st.tuples(st.floats(0, 300), st.booleans()), max_size=60),
    st.lists(st.floats(0, 400), max_size=20),
    st.booleans(),
)
def test_blocks_come_out_once_in_order_and_complete(arrivals, ticks, announced):
    """In any order of arrival and of looking, blocks come out rising, once, and nothing is lost uncounted."""
    timeline = Timeline(10.0, 20.0, 0.0, announced=announced)
    events = sorted([(at, "tick", at) for at in ticks] + [(at + 25.0 * slow, "done", at) for at, slow in arrivals])
    fed: list[int] = []
    counted = 0
    for now_s, kind, at_s in events:
        if kind == "tick":
            for number, block in timeline.take_ripe(now_s):
                fed.append(number)
                counted += sum(block.cells.values())
        else:
            block = timeline.open_at(at_s, 1)
            if block is not None:
                block.add(0.0)
    for number, block in timeline.take_ripe(10_000.0):
        fed.append(number)
        counted += sum(block.cells.values())
    assert fed == sorted(set(fed))
    assert counted + timeline.late == len(arrivals)


def test_going_back_in_time_reopens_nothing():
    """A clock that jumps back does not open closed blocks."""
    timeline = Timeline(10.0, 0.0, 0.0)
    _ripe(timeline, 100.0)
    _ripe(timeline, 50.0)
    assert timeline.next_block == 10


@given(st.integers(0, 10**6), st.sampled_from([0.1, 0.5, 1 / 3, 10.0, 30.0]))
def test_borders_do_not_suffer_from_rounding(number, block_s):
    """The start of a block belongs to that block, the middle too."""
    assert block_number(number * block_s, block_s) == number
    assert block_number((number + 0.5) * block_s, block_s) == number


def test_first_whole_block_begins_at_or_after_the_moment():
    """A moment inside a block points to the next one, a border to its own."""
    timeline = Timeline(10.0, 0.0, 0.0)
    assert timeline.first_whole_block(20.0) == 2
    assert timeline.first_whole_block(20.5) == 3


def test_skipping_forgets_open_blocks():
    """Blocks before the number are gone and closed, later ones stay."""
    timeline = Timeline(10.0, 30.0, 0.0)
    _open(timeline, 5.0, resolved=1)
    _open(timeline, 25.0, resolved=1)
    timeline.skip_before(2)
    assert timeline.open_at(15.0, 1) is None
    assert _ripe(timeline, 100.0) == [2]


@pytest.mark.parametrize("times", [(0.0, 1.0, 0.0), (1.0, -1.0, 0.0), (1.0, 1.0, -1.0)])
def test_impossible_lengths_are_refused(times):
    """Blocks need a length, deadlines and graces cannot be negative."""
    block_s, deadline_s, grace_s = times
    with pytest.raises(ValueError, match="need block_s"):
        Timeline(block_s, deadline_s, 0.0, grace_s=grace_s)


def test_a_restart_keeps_what_is_open_and_what_is_closed():
    """Nothing is closed twice, and nothing that waits is lost."""
    timeline, again = Timeline(10.0, 20.0, 0.0), Timeline(10.0, 20.0, 500.0)
    for second in (5.0, 15.0, 25.0):
        timeline.open_at(second, 1).add(1.0)
    assert [number for number, _ in timeline.take_ripe(31.0)] == [0]
    assert timeline.open_at(5.0, 2) is None
    again.restore(timeline.state())
    assert (again.late, again.is_closed(9.0), again.is_closed(10.0)) == (2, True, False)
    assert [(number, block.cells) for number, block in again.take_ripe(100.0)] == [
        (1, {(0.0, 1.0): 1}),
        (2, {(0.0, 1.0): 1}),
    ]
