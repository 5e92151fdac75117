"""Block records: what happened to the requests that were dispatched in one stretch of time, as mergeable integer
counts.

Owns the bag ``{value: count}``, its lanes, the bookkeeping of requests that are still open, and the stored form whose
bytes do not depend on the order of merging, so workers and replicas may report in any order. Must not know limits,
bets or clocks. Called by the timeline, by readings and by whoever stores evidence.

A lane tells outcomes of one block apart where the form of the guard needs it: a slice keeps each request's own limit
there, a failure share the arm (``CANDIDATE`` or ``BASELINE``); all other guards use lane 0. Session votes are in lane 0
too; the requests, which are awaited besides the conversations, are announced and resolved in ``REQUESTS``.
"""

from collections.abc import Iterable
from enum import StrEnum

import msgspec

ONLY_LANE = 0.0
CANDIDATE = 0.0
BASELINE = 1.0
REQUESTS = 1.0

GOOD = 0.0
BAD = 1.0


class Overdue(StrEnum):
    """What a request counts as that is still open when its block must be closed."""

    DROP = "drop"
    """Nothing is known about it; only right if staying open says nothing about the outcome."""
    GOOD = "good"
    """It has not failed in time (errors; what fails later is another guard's business)."""
    BAD = "bad"
    """It is too slow (latency: the deadline is the limit)."""


class BlockRecord(msgspec.Struct, frozen=True):
    """Stored form of a block: sorted, so equal contents have equal bytes.

    ``cells`` holds ``(lane, value, count)``, ``announced`` ``(lane, dispatched requests)`` where dispatches are
    announced, ``unscored`` the pairs without a score and the requests that resolved to nothing (cancelled, say); of
    these ``unscored_lanes`` holds ``(lane, count)`` for all lanes but the first.
    """

    number: int
    cells: tuple[tuple[float, float, int], ...] = ()
    announced: tuple[tuple[float, int], ...] = ()
    unscored: int = 0
    unscored_lanes: tuple[tuple[float, int], ...] = ()

    @property
    def outcomes(self) -> int:
        """Resolved requests in it, those without a score included."""
        return sum(count for _, _, count in self.cells) + self.unscored

    def encode(self) -> bytes:
        """Canonical bytes."""
        return msgspec.msgpack.encode(self)


class OpenBlock:
    """A block that still collects counts."""

    __slots__ = ("_unscored", "announced", "cells")

    def __init__(self) -> None:
        self.cells: dict[tuple[float, float], int] = {}
        self.announced: dict[float, int] = {}
        self._unscored: dict[float, int] = {}

    @property
    def unscored(self) -> int:
        """What resolved without a score, in all lanes."""
        return sum(self._unscored.values())

    def add(self, value: float, count: int = 1, lane: float = ONLY_LANE) -> None:
        """Count ``count`` outcomes of ``value``."""
        _check_count(count)
        # Adding 0.0 turns -0.0 into 0.0: equal keys would otherwise be stored with different bytes.
        key = (lane + 0.0, value + 0.0)
        self.cells[key] = self.cells.get(key, 0) + count

    def announce(self, count: int = 1, lane: float = ONLY_LANE) -> None:
        """Count ``count`` dispatched requests whose outcomes are to come."""
        _check_count(count)
        lane += 0.0
        self.announced[lane] = self.announced.get(lane, 0) + count

    def add_unscored(self, count: int = 1, lane: float = ONLY_LANE) -> None:
        """Count pairs or requests that resolved without a score: nobody waits for them, and they are no outcome."""
        _check_count(count)
        if count:
            lane += 0.0
            self._unscored[lane] = self._unscored.get(lane, 0) + count

    def absorb(self, record: BlockRecord) -> None:
        """Add a stored block's counts."""
        for lane, value, count in record.cells:
            self.add(value, count, lane)
        for lane, count in record.announced:
            self.announce(count, lane)
        for lane, count in record.unscored_lanes:
            self.add_unscored(count, lane)
        self.add_unscored(record.unscored - sum(count for _, count in record.unscored_lanes))

    def resolved(self) -> dict[float, int]:
        """Outcomes known so far, per lane; what has no score is resolved too."""
        known = dict(self._unscored)
        for (lane, _), count in self.cells.items():
            known[lane] = known.get(lane, 0) + count
        return known

    def open_requests(self) -> dict[float, int]:
        """Announced requests without an outcome, per lane; an outcome may overtake its announcement."""
        known = self.resolved()
        missing = {lane: count - known.get(lane, 0) for lane, count in self.announced.items()}
        return {lane: count for lane, count in missing.items() if count > 0}

    def close(self, overdue: Overdue) -> None:
        """Give every request that is still open its overdue outcome."""
        if overdue is Overdue.DROP:
            return
        value = GOOD if overdue is Overdue.GOOD else BAD
        for lane, count in self.open_requests().items():
            self.add(value, count, lane)

    def record(self, number: int) -> BlockRecord:
        """Stored form under block number ``number``."""
        return BlockRecord(
            number=number,
            cells=tuple(sorted((lane, value, count) for (lane, value), count in self.cells.items() if count)),
            announced=tuple(sorted((lane, count) for lane, count in self.announced.items() if count)),
            unscored=self.unscored,
            unscored_lanes=tuple(sorted(one for one in self._unscored.items() if one[0] != ONLY_LANE)),
        )


def merge(records: Iterable[BlockRecord]) -> BlockRecord:
    """Sum of records of one block, in any order; raises ValueError for records of several blocks or none."""
    parts = list(records)
    numbers = {record.number for record in parts}
    if len(numbers) != 1:
        raise ValueError(f"only records of one block can be merged, got blocks {sorted(numbers)}")
    block = OpenBlock()
    for record in parts:
        block.absorb(record)
    return block.record(numbers.pop())


def _check_count(count: int) -> None:
    if count < 0:
        raise ValueError(f"a count cannot be negative, got {count}")
