"""Rows on their way to the database, by table, in the pieces in which they came: bounded, and without a lock.

One thread adds and one takes. A piece moves as a whole, so that nothing is done for a single row and no thread is woken
for one. Owned by ``control.archive``.
"""

from collections import deque
from collections.abc import Collection, Iterable
from typing import Any

from gateway.store.inserting import Joined

Rows = dict[str, Collection[Any]]
"""Rows by table."""


class Backlog:
    """At most ``capacity`` rows of all tables together."""

    def __init__(self, tables: Iterable[str], capacity: int) -> None:
        self._capacity = capacity
        self._pieces: dict[str, deque[Collection[Any]]] = {table: deque() for table in tables}
        # Each is changed by one thread alone.
        self._added = 0
        self._taken = 0

    def __len__(self) -> int:
        return self._added - self._taken

    def add(self, table: str, rows: Collection[Any]) -> int:
        """Add what fits; the number of rows that did not."""
        room = max(0, self._capacity - len(self))
        fitting = rows if len(rows) <= room else list(rows)[:room]
        if fitting:
            self._added += len(fitting)
            self._pieces[table].append(fitting)
        return len(rows) - len(fitting)

    def take(self, most: int) -> Rows:
        """The oldest pieces of each table until there are ``most`` rows of it; tables without rows are left out."""
        taken: Rows = {}
        for table, pieces in self._pieces.items():
            rows: list[Collection[Any]] = []
            number = 0
            while pieces and number < most:
                rows.append(pieces.popleft())
                number += len(rows[-1])
            if number:
                taken[table] = Joined(rows)
                self._taken += number
        return taken
