"""Where every outcome arrives, once: fans batches out to metrics, the access log and whoever subscribes.

Owns the list of subscribers. Must not look into outcomes. A subscriber that fails is told in the log and counted; it
takes nothing from the others. Called by ``control.hub``.
"""

from collections.abc import Callable

import structlog

from gateway.control.series import Counter
from gateway.model.messages import Outcomes

Subscriber = Callable[[Outcomes], None]

_log = structlog.get_logger("control.recorder")


class Recorder:
    """Fan-out of outcomes. Subscribers are called on the loop, in the order they subscribed, and must not block."""

    def __init__(self) -> None:
        self.failures = Counter(
            "quantgate_recorder_failures_total", "Batches of outcomes that a part of control failed on.", ("part",)
        )
        self._subscribers: list[tuple[str, Subscriber]] = []

    def subscribe(self, name: str, subscriber: Subscriber) -> None:
        """Hand every batch from now on to ``subscriber``; ``name`` stands in the log and metric if it fails."""
        self._subscribers.append((name, subscriber))

    def record(self, message: Outcomes) -> None:
        """Take one batch."""
        for name, subscriber in self._subscribers:
            try:
                subscriber(message)
            except Exception:
                self.failures.add((name,))
                _log.exception("recorder_part_failed", part=name)
