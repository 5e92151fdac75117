"""What is counted of the requests. One place decides which number an outcome moves.

Owns the counters and histograms that live as long as control does, and the workers' latest gauges. An outcome costs a
few microseconds: the rows it moves are looked up once per (bucket, pool, rule, result) and kept. Label values are
bounded: buckets by the policy's own limit, pools and rules by the tables seen, results and failures by their enums.
Called by ``control.recorder`` and ``control.hub``; read by ``control.gauges`` and ``control.admin``.
"""

from collections.abc import Iterable

from gateway.control.series import Counter, Family, Histogram, Names
from gateway.model.messages import Outcomes, Stats
from gateway.model.outcome import Outcome
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

# Distinct (bucket, pool, rule, result) whose rows are kept; over it they are looked up anew.
_ROWS_MOST = 20_000

_BY_POOL = ("bucket", "pool")


class _Rows:
    """The rows that outcomes of one (bucket, pool, rule, result) move."""

    __slots__ = ("cached", "completion", "overhead", "pool", "prompt", "queue", "request", "requests", "tpot", "ttft")

    def __init__(self, metrics: "Metrics", bucket: str, pool: str, rule: str, result: str) -> None:
        self.pool = pool
        self.requests = metrics.requests.row((bucket, pool, rule, result))
        self.ttft = metrics.ttft.row((bucket, pool))
        self.tpot = metrics.tpot.row((bucket, pool))
        self.request = metrics.request.row((bucket, pool))
        self.queue = metrics.queue.row((bucket, pool))
        self.overhead = metrics.overhead.row((bucket, pool))
        self.prompt = metrics.tokens.row((pool, "prompt"))
        self.cached = metrics.tokens.row((pool, "cached"))
        self.completion = metrics.tokens.row((pool, "completion"))


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
        self.worker_stats: dict[int, Stats] = {}
        self._buckets = Names(200)
        self._pools = Names()
        self._rules = Names()
        self._endpoints = Names()
        self._rows: dict[tuple[str, str, str, str], _Rows] = {}

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

    def take_batch(self, message: Outcomes) -> None:
        """Count a batch of finished requests."""
        if message.dropped:
            self.dropped.add((str(message.worker),), message.dropped)
        for outcome in message.batch:
            self._count(outcome)

    def take_stats(self, message: Stats) -> None:
        """A worker's gauges replace its last ones."""
        self.worker_stats[message.worker] = message

    def forget_worker(self, worker: int) -> None:
        """A dead worker has no gauges."""
        self.worker_stats.pop(worker, None)

    def families(self) -> Iterable[Family]:
        """A copy of everything counted."""
        for counter in (self.requests, self.attempts, self.tokens, self.dropped):
            yield counter.family()
        for histogram in (self.ttft, self.tpot, self.request, self.queue, self.overhead):
            yield histogram.family()

    def _count(self, outcome: Outcome) -> None:
        key = (outcome.bucket, outcome.pool, outcome.rule, outcome.result)
        rows = self._rows.get(key) or self._find_rows(key)
        rows.requests[0] += 1.0
        self.request.observe(rows.request, outcome.total_s)
        if outcome.queue_s >= 0.0:
            self.queue.observe(rows.queue, outcome.queue_s)
        if outcome.overhead_s >= 0.0:
            self.overhead.observe(rows.overhead, outcome.overhead_s)
        if outcome.ttft_s >= 0.0:
            self.ttft.observe(rows.ttft, outcome.ttft_s)
        completion = outcome.completion_tokens
        if completion > 0:
            rows.completion[0] += completion
            if completion > 1 and outcome.stream and outcome.first_to_last_s >= 0.0:
                self.tpot.observe(rows.tpot, outcome.first_to_last_s / (completion - 1))
        if outcome.prompt_tokens > 0:
            rows.prompt[0] += outcome.prompt_tokens
        if outcome.cached_tokens > 0:
            rows.cached[0] += outcome.cached_tokens
        for attempt in outcome.attempts:
            self.attempts.add(
                (
                    self._endpoints.label(attempt.endpoint),
                    self._pools.label(attempt.pool),
                    attempt.failure or "none",
                )
            )

    def _find_rows(self, key: tuple[str, str, str, str]) -> _Rows:
        bucket, pool, rule, result = key
        if len(self._rows) >= _ROWS_MOST:
            self._rows.clear()
        rows = self._rows[key] = _Rows(
            self,
            self._buckets.admit(bucket) if bucket else "none",
            self._pools.label(pool),
            self._rules.label(rule),
            result,
        )
        return rows
