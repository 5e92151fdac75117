"""Hands each message of a worker to those who understand it. No logic of its own.

Called by ``control.link``; calls ``publisher``, ``metrics`` and ``recorder``.
"""

from collections.abc import Callable

from gateway.control.link import WorkerLink
from gateway.control.metrics import Metrics
from gateway.control.publisher import Publisher
from gateway.control.recorder import Recorder
from gateway.model.messages import Feedback, Outcomes, Prepared, Starts, Stats
from gateway.model.pair import Pairs


class Hub:
    """The ``link.Handler`` of control."""

    def __init__(
        self,
        publisher: Publisher,
        metrics: Metrics,
        recorder: Recorder,
        feedback: Callable[[Feedback], None],
        pairs: Callable[[Pairs], None],
        *,
        starts: Callable[[Starts], None] = lambda message: None,
    ) -> None:
        self._feedback = feedback
        self._pairs = pairs
        self._starts = starts
        self._publisher = publisher
        self._metrics = metrics
        self._recorder = recorder

    def worker_joined(self, link: WorkerLink) -> None:
        """It gets its table."""
        self._publisher.worker_joined(link)

    def worker_left(self, link: WorkerLink) -> None:
        """Its gauges go; its counters stay, control holds them."""
        self._publisher.worker_left(link)
        self._metrics.forget_worker(link.index)

    def prepared(self, link: WorkerLink, message: Prepared) -> None:
        """Part of a publication."""
        self._publisher.prepared(link, message)

    def outcomes(self, link: WorkerLink, message: Outcomes) -> None:
        """What finished requests left behind."""
        self._recorder.record(message)

    def pairs(self, link: WorkerLink, message: Pairs) -> None:
        """Mirrored requests with their legs."""
        self._pairs(message)

    def feedback(self, link: WorkerLink, message: Feedback) -> None:
        """An application's word on one of its answers."""
        self._feedback(message)

    def stats(self, link: WorkerLink, message: Stats) -> None:
        """A worker's gauges."""
        self._metrics.take_stats(message)

    def starts(self, link: WorkerLink, message: Starts) -> None:
        """Dispatched requests that the judge waits for."""
        self._starts(message)
