"""The queue before the database: in order, bounded, nothing twice and nothing lost between two threads."""

import threading
from typing import Any

from gateway.control.backlog import Backlog


def taken(backlog: Backlog, most: int) -> dict[str, list[Any]]:
    return {table: list(rows) for table, rows in backlog.take(most).items()}


def test_rows_come_out_by_table_and_in_order() -> None:
    """Piece by piece; a table without rows is not there."""
    backlog = Backlog(("a", "b"), 100)
    assert backlog.take(10) == {}
    for rows in ([1, 2], [3], [4, 5]):
        assert backlog.add("a", rows) == 0
    assert len(backlog) == 5
    assert taken(backlog, 3) == {"a": [1, 2, 3]}
    assert backlog.add("b", ["x"]) == 0
    assert taken(backlog, 1) == {"a": [4, 5], "b": ["x"]}
    assert (len(backlog), backlog.take(1)) == (0, {})


def test_what_does_not_fit_is_told() -> None:
    """All tables share the room; what fits of a piece is kept, and room that was made is used again."""
    backlog = Backlog(("a", "b"), 3)
    assert backlog.add("a", [1, 2]) == 0
    assert backlog.add("b", [3, 4, 5]) == 2
    assert backlog.add("a", [6]) == 1
    assert taken(backlog, 10) == {"a": [1, 2], "b": [3]}
    assert backlog.add("a", [7, 8, 9]) == 0


def test_two_threads_lose_nothing() -> None:
    """One adds while the other takes."""
    backlog, found = Backlog(("a",), 10**6), []

    def add() -> None:
        for number in range(20_000):
            backlog.add("a", [number])

    adder = threading.Thread(target=add)
    adder.start()
    while adder.is_alive() or len(backlog):
        found += backlog.take(50).get("a", [])
    adder.join()
    assert found == list(range(20_000))
