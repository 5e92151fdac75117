"""Dispatches that the judge must know of: counts per second, bucket and pool, for requests that take part in a rollout.

Without them nobody knows which outcomes are missing, and quick failures would be judged before slow successes. Bounded:
with control away for long, the oldest knowledge goes first. One dict update per attempt; called by ``forward``.
"""

from gateway.model.messages import Start, Starts

MOST = 20_000


class StartCounts:
    """Counts since control was last told."""

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        self._counts: dict[tuple[int, str, str], int] = {}

    def note(self, arrived_at: float, bucket: str, pool: str) -> None:
        """One attempt for a request that arrived at that wall-clock second."""
        key = (int(arrived_at), bucket, pool)
        self._counts[key] = self._counts.get(key, 0) + 1
        if len(self._counts) > MOST:
            del self._counts[next(iter(self._counts))]

    def take(self, worker: int) -> Starts | None:
        """What has come together; None if nothing has."""
        if not self._counts:
            return None
        counts, self._counts = self._counts, {}
        return Starts(
            worker, [Start(second, bucket, pool, number) for (second, bucket, pool), number in counts.items()]
        )
