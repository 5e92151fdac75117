"""How much a shadow rule may have under way in one worker: legs in flight, legs waiting, requests a second.

The policy's limits hold for the host; each worker has its part of them, and the parts add up exactly. Owns numbers and
the queue; what is started and dropped is ``shadow``'s.
"""

from collections import deque
from typing import TYPE_CHECKING

from gateway.core.mirror import Event, share_of_worker
from gateway.model.proving import Shadow

if TYPE_CHECKING:
    from gateway.dataplane.mirrored import Job


class Places:
    """The places of one rule. A leg is ``pending`` from when it is admitted until it starts or is given up.

    ``waiting`` holds the requests with pending legs whose body is ready. ``closed``: the rule is gone.
    """

    __slots__ = (
        "_allowance",
        "_allowed_at",
        "_burst",
        "_inflight_most",
        "_queue_most",
        "_rate",
        "closed",
        "inflight",
        "pending",
        "rule",
        "waiting",
    )

    def __init__(self, rule: Shadow, worker: int, workers: int, now: float) -> None:
        self.inflight = self.pending = 0
        self.waiting: deque[Job] = deque()
        self.closed = False
        self._allowed_at = now
        self._allowance = 1.0
        self.limit(rule, worker, workers)

    def limit(self, rule: Shadow, worker: int, workers: int) -> None:
        """Take over a rule's limits; what is under way stays."""
        self.rule = rule
        self._inflight_most = share_of_worker(rule.inflight, worker, workers)
        self._queue_most = share_of_worker(rule.queue, worker, workers) if self._inflight_most else 0
        self._rate = None if rule.rate is None else rule.rate / workers
        self._burst = max(1.0, self._rate or 0.0)

    def admit(self, legs: int, now: float) -> Event | None:
        """Give places to the legs of one more request, or say why not."""
        if self.inflight + self.pending + legs > self._inflight_most + self._queue_most:
            return Event.QUEUE_FULL
        if self._rate is not None:
            self._allowance = min(self._burst, self._allowance + (now - self._allowed_at) * self._rate)
            self._allowed_at = now
            if self._allowance < 1.0:
                return Event.RATE
            self._allowance -= legs  # below zero after two legs at once: the next request waits the longer
        self.pending += legs
        return None

    def may_start(self) -> bool:
        """Whether one more leg may be in flight."""
        return self.inflight < self._inflight_most

    def started(self) -> None:
        """A pending leg is in flight."""
        self.pending -= 1
        self.inflight += 1

    def given_up(self, job: "Job") -> None:
        """A request's pending legs will not start."""
        self.pending -= len(job.waiting)
        if job in self.waiting:
            self.waiting.remove(job)

    def ended(self) -> None:
        """A leg in flight has ended."""
        self.inflight -= 1
