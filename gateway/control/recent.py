"""Answers of the last time by request id: whose they were, which pool gave them, and in which conversation.

Kept in slices that are forgotten whole, so that nothing is walked or moved for an answer, and the memory of a slice
comes back in one piece. Owned by ``control.joining``.
"""

from collections import deque
from collections.abc import Mapping
from itertools import compress

from gateway.core.batch import Batch, ByKind
from gateway.core.consequence import Subject
from gateway.model.outcome import Kind

SLICES = 64

Slice = dict[str, tuple[float, Kind, str]]


class Recent:
    """At least the last ``most`` answers, and not many more."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._slice_most = max(1, most // SLICES)
        self._slices: deque[Slice] = deque([{}])
        self._size = 0
        self._answered = ByKind(lambda kind: bool(kind.pool) and kind.result == "ok")

    def add(self, batch: Batch) -> list[Mapping[str, object]]:
        """Remember those that a pool answered; gives the slices that are forgotten for it, by request id."""
        if len(self._slices[-1]) >= self._slice_most:
            self._slices.append({})
        newest = self._slices[-1]
        before = len(newest)
        found = zip(batch.request_id, zip(batch.at, batch.kind, batch.conversation, strict=True), strict=True)
        newest.update(compress(found, self._answered.of(batch)))
        self._size += len(newest) - before
        forgotten: list[Mapping[str, object]] = []
        while self._size - len(self._slices[0]) >= self._most:
            forgotten.append(self._slices.popleft())
            self._size -= len(forgotten[-1])
        return forgotten

    def subject(self, request_id: str) -> Subject | None:
        """What a consequence of that request counts against."""
        for part in reversed(self._slices):
            found = part.get(request_id)
            if found is not None:
                at, kind, conversation = found
                return Subject(request_id, at, kind.tenant, kind.bucket, kind.pool, conversation, kind.rollout)
        return None
