"""Finished pairs and counts of shadow traffic on their way to control: bounded in bytes, the first to be dropped."""

from collections import Counter, deque

from gateway.model.pair import Count, Leg, Pair, Pairs

MOST_BYTES = 16 * 1024 * 1024
BATCH_BYTES = 2 * 1024 * 1024


class PairBuffer:
    """Pairs that control has not been sent yet, and counts since the last message."""

    __slots__ = ("_bytes", "_counts", "_most", "_pending")

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._pending: deque[Pair] = deque()
        self._bytes = 0
        self._most = most_bytes
        self._counts: Counter[tuple[str, str, str]] = Counter()

    def add(self, pair: Pair) -> bool:
        """Keep a pair; False if there is no room for its texts."""
        size = _size(pair)
        if self._bytes + size > self._most:
            return False
        self._bytes += size
        self._pending.append(pair)
        return True

    def count(self, rule: str, bucket: str, event: str) -> None:
        """One more of something."""
        self._counts[(rule, bucket, str(event))] += 1

    def take(self, worker: int) -> Pairs | None:
        """What to send now, within a frame's size; None if there is nothing."""
        if not self._pending and not self._counts:
            return None
        batch: list[Pair] = []
        size = 0
        while self._pending and size < BATCH_BYTES:
            pair = self._pending.popleft()
            batch.append(pair)
            size += _size(pair)
        self._bytes -= size
        counts = [Count(*key, number) for key, number in self._counts.items()]
        self._counts.clear()
        return Pairs(worker, batch, counts)


def _size(pair: Pair) -> int:
    legs: list[Leg | None] = [pair.baseline, pair.candidate, pair.noise]
    return len(pair.request) + sum(len(leg.answer) for leg in legs if leg is not None)
