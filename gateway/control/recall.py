"""Finds on record what feedback speaks of and memory does not know: answers of before a restart, or of another gateway.

Asks the database for many at once, in a thread, and only while feedback waits. Gives what it finds to ``joining``.
"""

import asyncio
from collections.abc import Callable

from gateway.control.archive import Archive
from gateway.control.joining import Joining
from gateway.control.reads import NoDatabaseError, read
from gateway.store import aftermath

EVERY_S = 3.0
PATIENCE_S = 2.0  # an outcome of this gateway comes sooner, and is on record about as late
AT_ONCE_MOST = 500  # below the number of values that any database takes in one statement


class Recall:
    """The search. ``wall`` is the clock of feedback, in seconds since the epoch."""

    def __init__(self, joining: Joining, archive: Archive, wall: Callable[[], float], every_s: float = EVERY_S) -> None:
        self._joining = joining
        self._archive = archive
        self._wall = wall
        self._every_s = every_s

    async def run(self) -> None:
        """For as long as control runs."""
        while True:
            await asyncio.sleep(self._every_s)
            await self.once()

    async def once(self) -> None:
        """Look for what is waited for now. A database that does not answer is asked again the next time."""
        wanted = self._joining.unknown(self._wall() - PATIENCE_S)
        for start in range(0, len(wanted), AT_ONCE_MOST):
            try:
                found = await read(self._archive, aftermath.answered, wanted[start : start + AT_ONCE_MOST])
            except NoDatabaseError:
                return
            self._joining.recall(found)
