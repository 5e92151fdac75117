"""What is counted of the requests. One place decides which number an outcome moves.

Owns the counters and histograms that live as long as control does, and the workers' latest gauges. An outcome costs a
microsecond: the rows it moves are looked up once per kind and kept. Label values are bounded: buckets by the policy's
own limit, pools and rules by the tables seen, results and failures by their enums. Called by ``control.recorder`` and
``control.hub``; read by ``control.gauges`` and ``control.admin``.
"""

from collections import Counter as Counted
from collections.abc import Iterable
from itertools import compress
from typing import NamedTuple

from gateway.control.series import NONE, Counter, Family, Histogram, Names
from gateway.core.batch import Batch, ByKind, numbers
from gateway.core.columns import add
from gateway.model.enums import Result
from gateway.model.messages import Outcomes, Stats
from gateway.model.outcome import Kind
from gateway.model.table import Table

TTFT_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 60.0, 120.0)
TPOT_S = (0.001, 0.0025, 0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0, 2.0)
REQUEST_S = (
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    20.0,
    40.0,
    60.0,
    120.0,
    300.0,
    600.0,
    3600.0,
)
QUEUE_S = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
OVERHEAD_S = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)

_BY_POOL = ("bucket", "pool")

Row = list[float]


class _Rows(NamedTuple):
    """The rows that outcomes of one kind move."""

    requests: Row
    request: Row
    queue: Row
    overhead: Row
    ttft: Row
    tpot: Row | None  # an answer that is not streamed shows none
    prompt: Row
    cached: Row
    completion: Row


class Metrics:
    """Counters and histograms of all workers together, and each worker's last gauges."""

    def __init__(self) -> None:
        self.requests = Counter(
            "quantgate_requests_total",
            "Requests by how they ended; exactly one per request.",
            ("bucket", "pool", "rule", "result"),
        )
        self.attempts = Counter(
            "quantgate_attempts_total",
            "Attempts at endpoints by why they failed (none = it answered).",
            ("endpoint", "pool", "failure"),
        )
        self.tokens = Counter(
            "quantgate_tokens_total",
            "Tokens as the runtimes reported them; cached ones are part of prompt.",
            ("pool", "kind"),
        )
        self.dropped = Counter(
            "quantgate_dropped_outcomes_total",
            "Outcomes a worker lost because its buffer to control was full.",
            ("worker",),
        )
        self.ttft = Histogram(
            "quantgate_ttft_seconds", "Seconds from arrival to the first content delta.", _BY_POOL, TTFT_S
        )
        self.tpot = Histogram(
            "quantgate_tpot_seconds", "Seconds per output token after the first, over one stream.", _BY_POOL, TPOT_S
        )
        self.request = Histogram(
            "quantgate_request_seconds", "Seconds from arrival to the end of the answer.", _BY_POOL, REQUEST_S
        )
        self.queue = Histogram("quantgate_queue_seconds", "Seconds a request waited for admission.", _BY_POOL, QUEUE_S)
        self.overhead = Histogram(
            "quantgate_overhead_seconds",
            "Seconds the gateway itself spent before the first attempt, without the queue.",
            _BY_POOL,
            OVERHEAD_S,
        )
        # An alert watches their sum, and an increase from nothing to 1 is none to a monitoring system.
        self.requests.row((NONE, NONE, NONE, Result.INTERNAL.value))
        self.worker_stats: dict[int, Stats] = {}
        self._buckets = Names(200)
        self._pools = Names()
        self._rules = Names()
        self._endpoints = Names()
        self._rows = ByKind(self._rows_of)
        self._answered = ByKind(lambda kind: self.attempts.row(self._attempt_key(kind.endpoint, kind.pool, "")))

    def take_table(self, table: Table) -> None:
        """Names of the new table become label values; those of earlier ones stay, their counters are not over."""
        self._buckets.most = table.classifier.bucket_most
        for pool in table.pools.values():
            self._pools.admit(pool.name)
            for endpoint in pool.endpoints:
                self._endpoints.admit(endpoint.name)
        for route in table.routes:
            self._rules.admit(route.name)
        self._rows.clear()
        self._answered.clear()

    def take_batch(self, batch: Batch) -> None:
        """Count a batch of finished requests."""
        if not batch.kind:
            return
        counted = Counted(batch.kind)
        for kind, number in counted.items():
            self._rows[kind].requests[0] += number
        # By column, in the order of _Rows.
        _, request, queue, overhead, ttft, tpot, prompt, cached, completion = zip(*self._rows.of(batch), strict=True)
        self.request.observe_each(request, numbers(batch.total_s))
        self.queue.observe_each(queue, numbers(batch.queue_s))
        self.overhead.observe_each(overhead, numbers(batch.overhead_s))
        self.ttft.observe_each(ttft, numbers(batch.ttft_s))
        self.tpot.observe_each(tpot, numbers(batch.per_token_s))
        add(prompt, numbers(batch.prompt_tokens))
        add(cached, numbers(batch.cached_tokens))
        add(completion, numbers(batch.completion_tokens))
        self._take_attempts(batch, counted)

    def _take_attempts(self, batch: Batch, counted: Counted[Kind]) -> None:
        """Most outcomes have the one attempt that answered, and count by kind: ``counted``, unless there are others."""
        others = list(batch.other_attempts())
        if others:
            counted = Counted(compress(batch.kind, [tried is None for tried in batch.attempts]))
        for kind, number in counted.items():
            self._answered[kind][0] += number
        for _, tried in others:
            for attempt in tried:
                self.attempts.add(self._attempt_key(attempt.endpoint, attempt.pool, attempt.failure))

    def take_losses(self, message: Outcomes) -> None:
        """Count what a worker says that it lost."""
        self.dropped.add((str(message.worker),), message.dropped)

    def take_stats(self, message: Stats) -> None:
        """A worker's gauges replace its last ones. A rate needs the series of its losses before there are any."""
        self.worker_stats[message.worker] = message
        self.dropped.add((str(message.worker),), 0)

    def forget_worker(self, worker: int) -> None:
        """A dead worker has no gauges."""
        self.worker_stats.pop(worker, None)

    def families(self) -> Iterable[Family]:
        """A copy of everything counted."""
        for counter in (self.requests, self.attempts, self.tokens, self.dropped):
            yield counter.family()
        for histogram in (self.ttft, self.tpot, self.request, self.queue, self.overhead):
            yield histogram.family()

    def _rows_of(self, kind: Kind) -> _Rows:
        bucket = self._buckets.admit(kind.bucket) if kind.bucket else "none"
        pool, rule = self._pools.label(kind.pool), self._rules.label(kind.rule)
        tpot = self.tpot.row((bucket, pool))
        return _Rows(
            self.requests.row((bucket, pool, rule, kind.result)),
            self.request.row((bucket, pool)),
            self.queue.row((bucket, pool)),
            self.overhead.row((bucket, pool)),
            self.ttft.row((bucket, pool)),
            tpot if kind.stream else None,
            self.tokens.row((pool, "prompt")),
            self.tokens.row((pool, "cached")),
            self.tokens.row((pool, "completion")),
        )

    def _attempt_key(self, endpoint: str, pool: str, failure: str) -> tuple[str, str, str]:
        return self._endpoints.label(endpoint), self._pools.label(pool), failure or "none"
