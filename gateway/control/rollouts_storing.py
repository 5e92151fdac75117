"""Storing without waiting for ever: a database that hangs must not keep a bad pool in, nor the judge from judging.

Owns what is under way with the database: one change and one reading at a time, each in a thread, each waited for
``STORE_S`` at most. What takes a pool out acts by then and is stored as soon as possible; what lets one in is given up
here, and found in the database later if it was stored after all. Called by the service.
"""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

import structlog
from sqlalchemy.exc import SQLAlchemyError

from gateway.control.rollouts_keeping import Keeper, Kept
from gateway.control.rollouts_values import Key
from gateway.core.rollout import Standing
from gateway.store.rollouts import Change

STORE_S = 1.0

_log = structlog.get_logger("control.rollouts_storing")


class News(NamedTuple):
    """What the database knows better: standings that others changed, and changes of ours that theirs came before."""

    newer: tuple[Standing, ...] = ()
    overtaken: tuple[Change, ...] = ()


class _Late(NamedTuple):
    change: Change
    tightens: bool


class Storing:
    """Changes to and news from the database."""

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper
        self._late: dict[asyncio.Task[Kept], _Late] = {}
        self._reading: asyncio.Task[News] | None = None

    async def store(self, change: Change, *, tightens: bool) -> Kept:
        """Store it within ``STORE_S``, or owe it if it tightens; whether it may act is ``Kept.acts``."""
        if any(not work.done() for work in self._late):  # this one would stand behind it
            if tightens:
                self._keeper.owe(change)
            return Kept.OWED if tightens else Kept.REFUSED
        work = asyncio.create_task(asyncio.to_thread(self._keeper.commit, change, tightens=tightens), name="store")
        await asyncio.wait([work], timeout=STORE_S)
        if work.done():
            return work.result()
        _log.warning("rollout_database_slow", bucket=change.standing.bucket)
        self._late[work] = _Late(change, tightens)
        return Kept.OWED if tightens else Kept.REFUSED

    async def news(self, standings: Sequence[Standing]) -> News:
        """Pay what is owed, and read what others changed; nothing while the database does not answer in time."""
        if self._reading is None:
            overtaken = self._late_ones_overtaken()
            self._reading = asyncio.create_task(asyncio.to_thread(self._read, standings, overtaken), name="read")
        await asyncio.wait([self._reading], timeout=STORE_S)
        if not self._reading.done():
            return News()
        done, self._reading = self._reading, None
        try:
            return done.result()
        except SQLAlchemyError as error:
            _log.warning("rollouts_not_read", error=type(error).__name__)
            return News()

    def _late_ones_overtaken(self) -> list[Change]:
        ended = [(work, self._late.pop(work)) for work in list(self._late) if work.done()]
        return [
            late.change
            for work, late in ended
            if late.tightens and work.exception() is None and work.result() is Kept.OVERTAKEN
        ]

    def _read(self, standings: Sequence[Standing], overtaken: list[Change]) -> News:
        lost = [*overtaken, *self._keeper.settle(standings)]
        known = {(one.identity, one.bucket): one.version for one in standings}
        known.update({key_of(change): 0 for change in lost})
        return News(tuple(self._keeper.newer(known)), tuple(lost))


def key_of(change: Change) -> Key:
    """Whose change it is."""
    return change.standing.identity, change.standing.bucket
