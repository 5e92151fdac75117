"""The one record of each request: built when it ends, buffered within a bound, sent to control in batches.

Control may be away: the buffer holds what it can, and what it cannot hold is dropped and counted, never waited for.
"""

from collections import deque

import msgspec

from gateway.model.outcome import Packed

CAPACITY = 50_000  # about a minute at 800 requests a second, some 60 MB at worst
CAPTURE_BYTES = 32 * 1024 * 1024  # texts for the checks; the first thing to go when control is slow or away
BATCH = 512
BATCH_BYTES = 4 * 1024 * 1024


class OutcomeBuffer:
    """Finished requests that control has not been sent yet. ``captures_dropped`` counts texts given up for room since
    control was last told."""

    __slots__ = ("_capacity", "_capture_bytes", "_capture_most", "_pending", "captures_dropped", "dropped")

    def __init__(self, capacity: int = CAPACITY, capture_most: int = CAPTURE_BYTES) -> None:
        self._pending: deque[Packed] = deque()
        self._capacity = capacity
        self._capture_most = capture_most
        self._capture_bytes = 0
        self.captures_dropped = 0
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._pending)

    def add(self, outcome: Packed) -> None:
        """Keep an outcome, or count it as dropped if the buffer is full."""
        if len(self._pending) >= self._capacity:
            self.dropped += 1
            return
        size = _capture_size(outcome)
        if size and self._capture_bytes + size > self._capture_most:
            self.captures_dropped += 1
            outcome = msgspec.structs.replace(outcome, capture=None)
            size = 0
        self._capture_bytes += size
        self._pending.append(outcome)

    def take(self, most: int = BATCH) -> tuple[list[Packed], int]:
        """The oldest outcomes, bounded in number and bytes, and the number dropped since the last call."""
        pending, size = self._pending, 0
        batch: list[Packed] = []
        while pending and len(batch) < most and size < BATCH_BYTES:
            outcome = pending.popleft()
            batch.append(outcome)
            size += _capture_size(outcome)
        self._capture_bytes -= size
        dropped, self.dropped = self.dropped, 0
        return batch, dropped


def _capture_size(outcome: Packed) -> int:
    capture = outcome.capture
    return len(capture.request) + len(capture.answer) if capture is not None else 0
