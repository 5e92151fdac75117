"""Shared counters: what one worker writes all read, windows slide, a restarted worker starts from zero."""

from pathlib import Path

import pytest

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
