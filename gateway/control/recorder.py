"""Where every outcome arrives, once: gathers them for a moment and fans batches out to whoever subscribes.

Owns the list of subscribers and what waits for them. Outcomes come three times a second from each worker; handled a
few hundred at a time they cost half as much, because waking up and warming up cost more than the work. Must not look
into outcomes. A subscriber that fails is told in the log and counted; it takes nothing from the others. Called by
``control.hub``.
"""

import asyncio
from collections.abc import Callable, Sequence

import msgspec
import structlog

from gateway.control.series import Counter
from gateway.core.batch import Batch, Kinds
from gateway.model.messages import Outcomes

GATHER_S = 0.35  # how long an outcome waits for others at most: for the next message of its worker, too
GATHER_MOST_BYTES = 256 * 1024  # some 1,200 outcomes, which hold the loop for several milliseconds

Subscriber = Callable[[Batch], None]
LossSubscriber = Callable[[Outcomes], None]

_log = structlog.get_logger("control.recorder")


class Recorder:
    """Fan-out of outcomes. Subscribers are called on the loop, in the order they subscribed, and must not block."""

    def __init__(self) -> None:
        self.failures = Counter(
            "quantgate_recorder_failures_total", "Batches of outcomes that a part of control failed on.", ("part",)
        )
        self._subscribers: list[tuple[str, Subscriber]] = []
        self._loss_subscribers: list[LossSubscriber] = []
        self._kinds = Kinds()
        self._waiting: list[bytes] = []
        self._size = 0
        self._timer: asyncio.TimerHandle | None = None

    def subscribe(self, name: str, subscriber: Subscriber) -> None:
        """Hand every batch from now on to ``subscriber``; ``name`` stands in the log and metric if it fails."""
        self._subscribers.append((name, subscriber))

    def subscribe_losses(self, subscriber: LossSubscriber) -> None:
        """Hand every message to ``subscriber`` that tells of something lost on a worker."""
        self._loss_subscribers.append(subscriber)

    def record(self, message: Outcomes) -> None:
        """Take one message of a worker."""
        if message.dropped or message.captures_dropped:
            for subscriber in self._loss_subscribers:
                subscriber(message)
        self._waiting.append(message.batch)
        self._size += len(message.batch)
        if self._size >= GATHER_MOST_BYTES:
            self.flush()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(GATHER_S, self.flush)

    def flush(self) -> None:
        """Hand on what waits."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        messages, self._waiting, self._size = self._waiting, [], 0
        batch = self._read(messages)
        for name, subscriber in self._subscribers if batch.kind else ():
            try:
                subscriber(batch)
            except Exception:
                self.failures.add((name,))
                _log.exception("recorder_part_failed", part=name)

    def _read(self, messages: Sequence[bytes]) -> Batch:
        """All messages as one batch, but for those that are none of a worker of this version."""
        try:
            return self._kinds.batch(messages)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            if len(messages) > 1:
                return self._kinds.batch([message for message in messages if self._read([message]).kind])
            self.failures.add(("read",))
            _log.error("outcomes_not_understood", error=str(error))
            return self._kinds.batch(())
