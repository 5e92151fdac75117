"""Shares of failures: which requests of a (rollout, bucket) count in them, and for which arm.

Owns the conversations that have failed, for each series of that shape. Called by ``rollouts_feeds``.
"""

from collections.abc import Collection, Iterable, Mapping

from gateway.control.guards import Shape, Wanted
from gateway.control.rollouts_booking import Booking
from gateway.core.evidence import BASELINE, CANDIDATE
from gateway.core.evidence.blocks import BAD, GOOD
from gateway.core.evidence.shares import FirstFailures

Failed = tuple[tuple[str, float], ...]
"""Conversations and when they were last seen."""


class Shares:
    """The series of that shape among ``wanted``; ``candidate`` is the pool that all are booked for."""

    def __init__(self, booking: Booking, wanted: Iterable[Wanted], candidate: str) -> None:
        self._booking = booking
        self._candidate = candidate
        self._first = {one.name: FirstFailures() for one in wanted if one.shape is Shape.SHARE}

    def __len__(self) -> int:
        return sum(map(len, self._first.values()))

    def take(self, one: Wanted, pool: str, second: int, *, bad: bool, conversation: str) -> None:
        """One request at a pool: the first failure of its conversation, or one of a conversation without any."""
        first = self._first[one.name]
        if not first.counts(conversation, second):
            return
        if bad:
            first.failed(conversation, second)
        lane = CANDIDATE if pool == self._candidate else BASELINE
        self._booking.count(one.name, self._candidate, second, BAD if bad else GOOD, lane=lane)

    def shift(self, was_s: float, now_s: float) -> None:
        """The clock was set from one moment to another."""
        for first in self._first.values():
            first.shift(was_s, now_s)

    def state(self, every: int = 1) -> dict[str, Failed]:
        """What must survive a restart, of every so-many'th conversation."""
        return {name: first.state(every) for name, first in self._first.items() if len(first)}

    def restore(self, same: Collection[str], stored: Mapping[str, Failed]) -> None:
        """Go on from what was stored of the series that ask the ``same``, by name."""
        for name, first in self._first.items():
            if name in same and name in stored:
                first.restore(stored[name])
