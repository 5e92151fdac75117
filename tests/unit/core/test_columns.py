"""Loops over columns say what the same thing says of one number after the other."""

from bisect import bisect_left

from hypothesis import given
from hypothesis import strategies as st

from gateway.core import columns

BOUNDS = (0.1, 0.5, 2.0)
NUMBERS = st.floats(-2.0, 4.0) | st.sampled_from((*BOUNDS, 0.0, -1.0))


@given(st.lists(st.tuples(st.sampled_from((0, 1, None)), NUMBERS)))
def test_a_value_is_counted_once_under_its_bound(given_: list[tuple[int | None, float]]) -> None:
    """At most one place of its row, and the sum; the unknown and what has no row nowhere."""
    rows, expected = [[0.0] * 5 for _ in range(2)], [[0.0] * 5 for _ in range(2)]
    columns.observe(
        BOUNDS, tuple(None if row is None else rows[row] for row, _ in given_), [value for _, value in given_]
    )
    for row, value in given_:
        if row is not None and value >= 0.0:
            expected[row][bisect_left(BOUNDS, value)] += 1.0
            expected[row][-1] += value
    assert rows == expected


def test_milliseconds_are_whole_microseconds() -> None:
    """And what is unknown is the very object that the caller knows it by."""
    unknown = object()
    found = columns.milliseconds([0.0, 0.0812345, 1e-7, 3599.9999996, -1.0, -0.5], unknown)
    assert found == [0.0, 81.235, 0.0, 3_600_000.0, unknown, unknown]
    assert columns.milliseconds([-3.0]) == [-1.0]


def test_only_known_numbers_are_added_or_gathered() -> None:
    """In their order, to the row or the list beside each."""
    row, first, second = [1.0], [7.0], list[float]()
    columns.add((row, row, row, [0.0]), [5, -1, 2, 9])
    columns.gather((first, None, second, first, second), [0.0, 1.0, 2.0, 3.0, -1.0])
    assert (row, first, second) == ([8.0], [7.0, 0.0, 3.0], [2.0])


def test_a_part_counts_where_both_numbers_are_known() -> None:
    """How many, how many with a part, and both sums."""
    row = [0, 0, 0, 0]
    columns.count_parts((row, row, None, row, row), [100, 50, 70, 0, 30], [60, 0, 5, 0, -1])
    assert row == [2, 1, 150, 60]


def test_a_token_after_the_first_has_a_time() -> None:
    """Where there are two of them, and a span."""
    assert columns.per_token([0.4, 0.4, -1.0, 0.4], [11, 1, 11, -1]) == [0.04, -1.0, -1.0, -1.0]
