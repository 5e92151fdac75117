"""Promises of block records."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.evidence.blocks import BAD, GOOD, BlockRecord, OpenBlock, Overdue, merge

lanes = st.sampled_from([0.0, 1.0, 0.05, -0.0])
values = st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.25, 1 / 3])
parts = st.lists(st.lists(st.tuples(lanes, values, st.integers(0, 9)), max_size=6), min_size=1, max_size=6)


def _record(part, announced: int = 0, unscored: int = 0) -> BlockRecord:
    block = OpenBlock()
    for lane, value, count in part:
        block.add(value, count, lane)
    block.announce(announced)
    block.add_unscored(unscored)
    block.add_unscored(unscored, lane=0.05)
    return block.record(3)


@given(parts, st.randoms(use_true_random=False))
def test_merging_in_any_order_gives_the_same_bytes(workers, rng):
    """Counts add up over workers and replicas whichever reports first, also through partial merges."""
    records = [_record(part, announced=len(part), unscored=index) for index, part in enumerate(workers)]
    straight = merge(records).encode()
    shuffled = list(records)
    rng.shuffle(shuffled)
    assert merge(shuffled).encode() == straight
    cut = rng.randrange(len(shuffled)) + 1
    halves = [merge(half) for half in (shuffled[:cut], shuffled[cut:]) if half]
    assert merge(halves).encode() == straight


def test_negative_zero_is_zero():
    """-0.0 equals 0.0 as a key, so it must not differ as bytes."""
    assert _record([(-0.0, -0.0, 1)]).encode() == _record([(0.0, 0.0, 1)]).encode()


def test_what_has_no_score_is_known_by_lane_after_storing_too():
    """A slice knows whose requests are still open; what was stored without lanes is of the first."""
    block = OpenBlock()
    block.announce(3, lane=0.05)
    block.absorb(_record([], unscored=2))
    assert (block.unscored, block.open_requests()) == (4, {0.05: 1})
    block.absorb(BlockRecord(3, unscored=1))
    assert (block.unscored, block.record(3).unscored_lanes) == (5, ((0.05, 2),))


def test_records_of_different_blocks_do_not_merge():
    """Adding up different times would move requests from one block to another."""
    with pytest.raises(ValueError, match="one block"):
        merge([BlockRecord(1), BlockRecord(2)])
    with pytest.raises(ValueError, match="one block"):
        merge([])


def test_counts_are_never_negative():
    """There is no taking back."""
    for add in (lambda b: b.add(1.0, -1), lambda b: b.announce(-1), lambda b: b.add_unscored(-1)):
        with pytest.raises(ValueError, match="negative"):
            add(OpenBlock())


def test_open_requests_are_announced_ones_without_outcome():
    """Per lane; unscored pairs are resolved; an outcome that overtook its announcement is no debt."""
    block = OpenBlock()
    block.announce(5, lane=0.0)
    block.announce(2, lane=1.0)
    block.add(GOOD, 2, lane=0.0)
    block.add_unscored(1)
    block.add(BAD, 4, lane=1.0)
    assert block.open_requests() == {0.0: 2}


@pytest.mark.parametrize(
    ("overdue", "expected"),
    [(Overdue.DROP, {GOOD: 1}), (Overdue.GOOD, {GOOD: 4}), (Overdue.BAD, {GOOD: 1, BAD: 3})],
)
def test_open_requests_get_their_overdue_outcome(overdue, expected):
    """What is still open at the deadline is nothing, in time, or too slow, as the guard says."""
    block = OpenBlock()
    block.announce(4)
    block.add(GOOD)
    block.close(overdue)
    assert {value: count for (_, value), count in block.cells.items()} == expected
