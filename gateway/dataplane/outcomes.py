"""The one record of each request: built when it ends, buffered within a bound, sent to control in batches.

Control may be away: the buffer holds what it can, and what it cannot hold is dropped and counted, never waited for.
"""

from collections import deque

from gateway.model.outcome import Outcome

CAPACITY = 50_000  # about a minute at 800 requests a second, some 60 MB at worst
BATCH = 512


class OutcomeBuffer:
    """Finished requests that control has not been sent yet."""

    __slots__ = ("_capacity", "_pending", "dropped")

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._pending: deque[Outcome] = deque()
        self._capacity = capacity
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._pending)

    def add(self, outcome: Outcome) -> None:
        """Keep an outcome, or count it as dropped if the buffer is full."""
        if len(self._pending) >= self._capacity:
            self.dropped += 1
        else:
            self._pending.append(outcome)

    def take(self, most: int = BATCH) -> tuple[list[Outcome], int]:
        """The oldest outcomes and the number dropped since the last call."""
        pending = self._pending
        batch = [pending.popleft() for _ in range(min(most, len(pending)))]
        dropped, self.dropped = self.dropped, 0
        return batch, dropped

    def put_back(self, batch: list[Outcome], dropped: int) -> None:
        """Undo a ``take`` that could not be sent."""
        self._pending.extendleft(reversed(batch))
        self.dropped += dropped
