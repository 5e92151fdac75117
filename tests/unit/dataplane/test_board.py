"""Shared counters: what one worker writes all read, windows slide, a restarted worker starts from zero."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.dataplane.board import Board


def test_inflight_sums_over_workers(tmp_path: Path) -> None:
    """Two workers' in-flight counts add up for both."""
    one, two = Board(tmp_path / "b", 0, 2), Board(tmp_path / "b", 1, 2)
    one.enter(5)
    two.enter(5)
    two.enter(5)
    assert one.inflight(5) == two.inflight(5) == 3
    two.leave(5)
    assert one.inflight(5) == 2
    assert one.inflight(6) == 0
    one.enter(-1)
    one.leave(-1)
    one.close()
    two.close()


def test_the_window_slides(tmp_path: Path) -> None:
    """Counts of the last minute fade in proportion to time and are gone after two."""
    board = Board(tmp_path / "b", 0, 1)
    board.charge(1, 600.0, 60, 6000)
    assert board.used(1, 630.0) == (60.0, 6000.0)
    assert board.used(1, 690.0) == pytest.approx((30.0, 3000.0))
    board.charge(1, 690.0, 1, 10)
    assert board.used(1, 690.0) == pytest.approx((31.0, 3010.0))
    assert board.used(1, 740.0)[0] == pytest.approx(1 - 20 / 60)
    assert board.used(1, 900.0) == (0.0, 0.0)
    board.close()


def test_tokens_can_be_corrected_downwards_but_never_below_nothing(tmp_path: Path) -> None:
    """A correction lowers what was charged; the sum is never negative."""
    board = Board(tmp_path / "b", 0, 1)
    board.charge(1, 600.0, 1, 100)
    board.charge(1, 600.0, 0, -40)
    assert board.used(1, 600.0) == (1.0, 60.0)
    board.charge(1, 600.0, 0, -400)
    assert board.used(1, 600.0)[1] == 0.0
    board.close()


def test_a_restarted_worker_forgets_its_own_cells_only(tmp_path: Path) -> None:
    """kill -9 of a worker leaves its in-flight counts behind; its successor clears them."""
    one, two = Board(tmp_path / "b", 0, 2), Board(tmp_path / "b", 1, 2)
    one.enter(3)
    two.enter(3)
    two.charge(3, 600.0, 5, 5)
    two.close()
    again = Board(tmp_path / "b", 1, 2)
    assert again.inflight(3) == 1
    assert again.used(3, 600.0) == (0.0, 0.0)
    one.close()
    again.close()


def test_a_long_request_does_not_wipe_the_minutes_since_it_began(tmp_path: Path) -> None:
    """A correction goes to its own minute; what others were charged after that stays."""
    board = Board(tmp_path / "b", 0, 1)
    board.charge(1, 659.0, 1, 100)
    board.charge(1, 661.0, 2, 200)
    board.charge(1, 659.0, 0, -50)
    assert board.used(1, 660.0) == (3.0, 250.0)
    board.charge(1, 539.0, 0, 999)  # from so long ago that it counts no more
    assert board.used(1, 660.0) == (3.0, 250.0)
    board.close()


def test_a_request_from_just_before_the_border_counts(tmp_path: Path) -> None:
    """It arrived in the old minute and was admitted after one of the new."""
    board = Board(tmp_path / "b", 0, 1)
    board.charge(1, 660.1, 1, 10)
    board.charge(1, 659.9, 1, 10)
    assert board.used(1, 660.0) == (2.0, 20.0)
    board.close()


def test_a_clock_that_is_set_back_does_not_switch_limits_off(tmp_path: Path) -> None:
    """From the first request after it, what is charged counts again."""
    board = Board(tmp_path / "b", 0, 1)
    board.charge(1, 7200.0, 5, 50)
    board.charge(1, 3600.0, 1, 10)
    assert board.used(1, 3600.0) == (1.0, 10.0)
    board.close()


def test_whatever_was_in_the_file_a_worker_starts_from_zero(tmp_path: Path) -> None:
    """Rubbish in its own cells, from another version or a fault, is gone."""
    (tmp_path / "b").write_bytes(b"\x03" * (4096 * 8 * 8 + 100))
    board = Board(tmp_path / "b", 0, 1)
    assert board.inflight(7) == 0
    assert board.used(7, 600.0) == (0.0, 0.0)
    board.close()


def test_what_the_neighbours_used_counts(tmp_path: Path) -> None:
    """Minutes turn in each worker's cells by themselves, and every worker finds the same sums."""
    boards = [Board(tmp_path / "b", worker, 3) for worker in range(3)]
    for number, board in enumerate(boards):
        board.charge(1, 600.0 + 60.0 * number, number + 1, 10)
    for board in boards:
        assert board.used(1, 660.0) == pytest.approx((1 + 2 + 3, 30.0)), "a neighbour may be a moment ahead"
        assert board.used(1, 750.0) == pytest.approx((0.5 * 2 + 3, 15.0))
    boards[0].charge(1, 660.0, 1, 10)
    boards[0].charge(1, 600.0, 0, 90)
    for board in boards:
        assert board.used(1, 660.0) == pytest.approx((1 + 2 + 1 + 3, 20.0 + 10.0 + 90.0 + 10.0))
        board.close()


def test_rows_below_nothing_are_not_counted(tmp_path: Path) -> None:
    """Endpoints without a row on the board."""
    board = Board(tmp_path / "b", 0, 1)
    board.enter(-1)
    assert board.inflight(-1) == 0
    assert board.inflight(4095) == 0
    board.close()


@given(
    st.lists(st.tuples(st.floats(0, 90), st.integers(1, 3), st.booleans()), min_size=1, max_size=12),
    st.floats(0, 30),
    st.integers(1, 10),
)
def test_who_waits_as_long_as_told_is_let_in_and_not_a_second_sooner(
    taken: list[tuple[float, int, bool]], later: float, most: int
) -> None:
    """At any time of the minute, whichever worker let the others in."""
    with TemporaryDirectory() as directory:
        one, two = Board(Path(directory) / "b", 0, 2), Board(Path(directory) / "b", 1, 2)
        for at, requests, elsewhere in sorted(taken):
            (two if elsewhere else one).charge(1, 6000.0 + at, requests, 0)
        now = 6000.0 + max(at for at, _, _ in taken) + later
        waited = one.wait_s(1, now, most - 1, float("inf"))
        assert one.used(1, now + waited)[0] + 1 <= most
        assert waited == 1 or one.used(1, now + waited - 1)[0] + 1 > most
        one.close()
        two.close()


def test_what_can_never_be_waits_for_the_longest(tmp_path: Path) -> None:
    """No room even where nothing is used."""
    board = Board(tmp_path / "b", 0, 1)
    assert board.wait_s(1, 600.0, -1, 0) == 120
    board.close()


@pytest.mark.parametrize("reader", [0, 1])
def test_a_clock_that_is_set_back_over_a_minute_opens_no_limit(tmp_path: Path, reader: int) -> None:
    """What was charged a moment before counts on, for the worker itself and for its neighbours."""
    boards = [Board(tmp_path / "b", worker, 2) for worker in range(2)]
    boards[0].charge(5, 1_000 * 60.0 - 10, 4, 40)
    boards[0].charge(5, 1_000 * 60.0 + 10, 3, 30)
    seen = boards[reader]
    assert seen.used(5, 1_000 * 60.0 - 20) == (7.0, 70.0)
    assert seen.used(5, 1_000 * 60.0) == (7.0, 70.0)
    assert seen.used(5, 1_000 * 60.0 - 90) == (0.0, 0.0), "further back it begins anew"
    for board in boards:
        board.close()
