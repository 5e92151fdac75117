"""Rows in, counts out: everything a report needs of any number of requests, in bounded memory.

Owns one cell for each (bucket, pool): counters, sketches, bags of what the checks found. Rows may come in any order;
only the mean of quality scores follows the order of arrival, as its interval does. Must not decide anything; `build`
makes the report of it. Called by whoever has rows: the command line over a database, control's report process.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from gateway.core.attempted import attempts_of, has_several, lost_s
from gateway.core.consequence import BAD_BELOW
from gateway.core.evidence.intervals import MeanInterval
from gateway.core.quality import CLASS_OF, Check, Verdict
from gateway.core.report.metrics import LATENCIES
from gateway.core.report.rows import ConsequenceRow, RequestRow
from gateway.core.sketch import Sketch
from gateway.model.enums import Failure, Result

CELLS_MOST = 2_000
OTHER = "other"
BAG_MOST = 1_000  # distinct lists of findings held before they are counted

NOT_THE_POOLS_FAULT = frozenset(
    {Failure.REUSED_CLOSED.value, Failure.BUSY.value, Failure.STATUS_4XX.value, Failure.EXHAUSTED.value}
)
"""Failed attempts that say nothing about the pool: our own limit, a stale connection, a bad request."""

_FINDINGS = msgspec.json.Decoder(list[tuple[str, str]])
_CLASS_OF_CHECK = {check.value: kind.value for check, kind in CLASS_OF.items()}
_CHECKS = frozenset(check.value for check in Check)


class Shares:
    """Failed and applicable answers of one question."""

    __slots__ = ("failed", "number")

    def __init__(self) -> None:
        self.number = 0
        self.failed = 0

    def add(self, failed: bool, count: int) -> None:
        """Count ``count`` equal answers."""
        self.number += count
        if failed:
            self.failed += count


class Cell:
    """One pool in one bucket."""

    def __init__(self, alpha: float) -> None:
        self.requests = 0
        self.results: dict[str, int] = {}
        self.attempts = 0
        self.failed_attempts: dict[str, int] = {}
        self.latencies = {name: Sketch() for name in LATENCIES}
        self.quality = MeanInterval(alpha)
        self.calls = 0
        self.prompt_tokens = self.output_tokens = 0
        self.cached_tokens = self.cache_told_tokens = 0
        self.first_at = float("inf")
        self.last_at = float("-inf")
        self.precisions: dict[str, int] = {}
        self.deployments: dict[str, int] = {}
        self.consequences: dict[str, int] = {}
        self.feedback = Shares()
        self._bag: dict[str, int] = {}
        self._classes: dict[str, Shares] = {}
        self._checks: dict[str, Shares] = {}

    def add(self, row: RequestRow, lost_s: float = 0.0) -> None:
        """Count one request that ended at this pool; attempts are counted apart. ``lost_s``: what earlier ones took."""
        self.requests += 1
        result = row.result
        self.results[result] = self.results.get(result, 0) + 1
        self.precisions[row.precision] = self.precisions.get(row.precision, 0) + 1
        if row.deployment:
            self.deployments[row.deployment] = self.deployments.get(row.deployment, 0) + 1
        self.first_at = min(self.first_at, row.at)
        ended_at = row.at + max(row.total_s, 0.0)
        self.last_at = max(self.last_at, ended_at)
        self._count_tokens(row)
        self._measure(row, lost_s)
        if row.score is not None:
            self.quality.add(row.score)
            self.calls += row.finish_reason == "tool_calls"
            self._bag[row.findings] = self._bag.get(row.findings, 0) + 1
            if len(self._bag) > BAG_MOST:
                self._empty_bag()

    def _count_tokens(self, row: RequestRow) -> None:
        if row.completion_tokens > 0:
            self.output_tokens += row.completion_tokens
        if row.prompt_tokens > 0:
            self.prompt_tokens += row.prompt_tokens
            if row.cached_tokens >= 0:
                self.cached_tokens += row.cached_tokens
                self.cache_told_tokens += row.prompt_tokens

    def _measure(self, row: RequestRow, lost_s: float) -> None:
        latencies = self.latencies
        if row.queue_s >= 0.0:
            latencies["queue"].add(row.queue_s)
        if row.overhead_s >= 0.0:
            latencies["overhead"].add(row.overhead_s)
        if row.result != Result.OK.value:
            return
        latencies["total"].add(max(0.0, row.total_s - lost_s))
        if row.stream:
            if row.ttft_s >= 0.0:
                latencies["ttft"].add(max(0.0, row.ttft_s - lost_s))
            if row.longest_gap_s >= 0.0:
                latencies["gap"].add(row.longest_gap_s)
            if row.completion_tokens > 1 and row.first_to_last_s >= 0.0:
                latencies["tpot"].add(row.first_to_last_s / (row.completion_tokens - 1))

    def add_attempt(self, failure: str) -> None:
        """Count a try at this pool, however the request ended."""
        if failure in NOT_THE_POOLS_FAULT:
            return
        self.attempts += 1
        if failure:
            self.failed_attempts[failure] = self.failed_attempts.get(failure, 0) + 1

    def add_consequence(self, row: ConsequenceRow) -> None:
        """Count what became known of one of its answers."""
        if row.kind != "feedback":
            self.consequences[row.kind] = self.consequences.get(row.kind, 0) + 1
        elif row.score is not None:
            self.feedback.add(row.score < BAD_BELOW, 1)

    @property
    def checked(self) -> int:
        """Answers that the checks saw."""
        return self.quality.state.number

    def classes(self) -> Mapping[str, Shares]:
        """By failure class: failed answers, of those where some check of the class applied."""
        self._empty_bag()
        return self._classes

    def checks(self) -> Mapping[str, Shares]:
        """The same by single check."""
        self._empty_bag()
        return self._checks

    def _empty_bag(self) -> None:
        """Findings repeat: equal lists are read once."""
        bag, self._bag = self._bag, {}
        for text, count in bag.items():
            checks: dict[str, bool] = {}
            classes: dict[str, bool] = {}
            for check, verdict in _FINDINGS.decode(text):
                if check in _CHECKS and verdict in (Verdict.PASS.value, Verdict.FAIL.value):
                    failed = verdict == Verdict.FAIL.value
                    checks[check] = checks.get(check, False) or failed
                    kind = _CLASS_OF_CHECK[check]
                    classes[kind] = classes.get(kind, False) or failed
            for found, totals in ((checks, self._checks), (classes, self._classes)):
                for name, failed in found.items():
                    totals.setdefault(name, Shares()).add(failed, count)


class Tally:
    """Everything counted. ``alpha``: each interval of the report will hold at ``1 - alpha``."""

    def __init__(self, alpha: float = 0.025) -> None:
        self.alpha = alpha
        self.requests = 0
        self.first_at: float | None = None
        self.last_at: float | None = None
        self.cells: dict[tuple[str, str], Cell] = {}
        self.unserved: dict[str, dict[str, int]] = {}
        self.models: dict[str, str] = {}
        self.records: dict[str, Mapping[str, Any]] = {}
        self.folded = False

    def add_requests(self, rows: Iterable[RequestRow]) -> None:
        """Count finished requests."""
        for row in rows:
            self.add(row)

    def add(self, row: RequestRow) -> None:
        """Count one finished request, at the pool where it ended and at each pool that was tried."""
        self.requests += 1
        if self.first_at is None or row.at < self.first_at:
            self.first_at = row.at
        if self.last_at is None or row.at > self.last_at:
            self.last_at = row.at
        if not row.pool:
            ends = self.unserved.setdefault(self._bucket(row.bucket, ""), {})
            ends[row.result] = ends.get(row.result, 0) + 1
            return
        self.models[row.pool] = row.model
        cell = self.cell(row.bucket, row.pool)
        if row.result == Result.OK.value and not has_several(row.attempts):
            cell.add(row)
            cell.add_attempt("")
            return
        attempts = attempts_of(row.attempts)
        cell.add(row, lost_s(attempts))
        for attempt in attempts:
            self.models.setdefault(attempt.pool, row.model)
            self.cell(row.bucket, attempt.pool).add_attempt(attempt.failure)

    def add_consequences(self, rows: Iterable[ConsequenceRow]) -> None:
        """Count consequences; those of pools that served nothing here are left out."""
        for row in rows:
            cell = self.cells.get((row.bucket, row.pool)) or self.cells.get((OTHER, row.pool))
            if cell is not None:
                cell.add_consequence(row)

    def describe(self, records: Mapping[str, Mapping[str, Any]]) -> None:
        """What ran: deployment records by their hash."""
        self.records.update(records)

    def cell(self, bucket: str, pool: str) -> Cell:
        """The cell of a bucket and pool."""
        cell = self.cells.get((bucket, pool))
        if cell is None:
            key = (self._bucket(bucket, pool), pool)
            cell = self.cells.get(key)
            if cell is None:
                cell = self.cells[key] = Cell(self.alpha)
        return cell

    def _bucket(self, bucket: str, pool: str) -> str:
        """Over the bound, further buckets are counted together."""
        if len(self.cells) < CELLS_MOST or (bucket, pool) in self.cells or (not pool and bucket in self.unserved):
            return bucket
        self.folded = True
        return OTHER
