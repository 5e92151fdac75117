"""Shadow pairs in control: compared in the scorer processes, counted, stored, and handed to whoever judges.

Owns the queue of pairs, bounded in bytes; what does not fit is dropped and counted, never silently. Gives each pair out
once as ``ScoredPair`` as soon as it is compared; a pair that is also scored teacher-forced is stored after that. Holds
texts only until then.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import NamedTuple

import msgspec
import orjson
import structlog

from gateway.control import opinion_plugins, pair_process
from gateway.control.likelihood import Likelihood, PairGap
from gateway.control.pair_process import PairScores, Work
from gateway.control.scoring import Scoring
from gateway.control.series import Counter, Family, Histogram, Key, gauge
from gateway.core.comparison import Agreement, Verdict
from gateway.core.evidence.intervals import Interval, MeanInterval
from gateway.core.mirror import Event
from gateway.model.pair import Pair, Pairs
from gateway.model.table import Table
from gateway.store.pairs import PairRow

WAITING_BYTES = 32 * 1024 * 1024
BATCH = 8
BATCH_BYTES = 2 * 1024 * 1024
EXCESS_BOUNDS = (-0.5, -0.2, -0.1, -0.05, -0.02, 0.0, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
ALPHA = 0.05

_log = structlog.get_logger("control.pairing")


class ScoredPair(NamedTuple):
    """A compared pair. ``pair`` still has its texts: subscribers must not keep it."""

    pair: Pair
    scores: PairScores


class Standing:
    """Excess difference of one (bucket, candidate) so far, with an anytime-valid interval."""

    def __init__(self) -> None:
        self.number = 0
        self.total = 0.0
        self.mean = MeanInterval(ALPHA)

    def add(self, loss: float) -> None:
        """One more pair with all three legs."""
        self.number += 1
        self.total += loss
        self.mean.add((loss + 1.0) / 2.0)

    def interval(self) -> Interval:
        """The interval, within what a loss can be."""
        found = self.mean.loss_interval()
        return Interval(max(-1.0, found.lower), min(1.0, found.upper))


class Pairing:
    """The stage that turns mirrored requests into evidence. ``scoring`` lends its processes."""

    def __init__(
        self,
        scoring: Scoring,
        keep: Callable[[PairRow], None],
        likelihood: Likelihood,
        waiting_bytes: int = WAITING_BYTES,
    ) -> None:
        self.events = Counter(
            "quantgate_shadow_requests_total",
            "Requests in a shadow rule's sample, by what became of them. eligible = mirrored + the reasons against it; "
            "mirrored = compared + unscored + what was lost on the way. failed counts some of the compared once more.",
            ("bucket", "rule", "event"),
            most=4_000,
        )
        self.compared = Counter(
            "quantgate_pairs_total",
            "Pairs by verdict: compared, other_failed (the candidate), reference_failed (the baseline), both_failed "
            "(an incident, no agreement), unscored (a leg is missing or the comparison broke).",
            ("bucket", "candidate", "verdict"),
            most=4_000,
        )
        self.agreement = Histogram(
            "quantgate_pair_agreement",
            "Agreement of the candidate's answer with the baseline's: 1 is no difference, 0 also a failed leg.",
            ("bucket", "candidate"),
            (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0),
        )
        self.excess = Histogram(
            "quantgate_pair_excess",
            "Disagreement of the candidate with the baseline beyond the baseline's with itself, -1 to 1; above 0 is "
            "worse. Only pairs with a noise leg.",
            ("bucket", "candidate"),
            EXCESS_BOUNDS,
        )
        self.standings: dict[tuple[str, str], Standing] = {}
        self.likelihood = likelihood
        self._opinions: dict[str, tuple[str, ...]] = {}
        self._scoring = scoring
        self._keep = keep
        self._most = waiting_bytes
        self._waiting: deque[Pair] = deque()
        self._bytes = 0
        self._running = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._subscribers: list[Callable[[ScoredPair], None]] = []

    def subscribe(self, subscriber: Callable[[ScoredPair], None]) -> None:
        """Hear every compared pair from now on."""
        self._subscribers.append(subscriber)

    def configure(self, table: Table) -> None:
        """A policy came into force. An opinion that is asked for and not installed is no part of a score."""
        self.likelihood.configure(table)
        self._opinions = {rule.name: names for rule in table.shadows if (names := opinion_plugins.asked_by(rule))}
        missing = {name for names in self._opinions.values() for name in names}
        missing -= opinion_plugins.installed() if missing else frozenset()
        if missing:
            _log.warning("opinions_missing", names=sorted(missing), group=opinion_plugins.GROUP)

    def take(self, message: Pairs) -> None:
        """Pairs and counts of a worker."""
        for count in message.counts:
            self.events.add((count.bucket, count.rule, count.event), count.number)
        for pair in message.batch:
            size = size_of(pair)
            if self._bytes + size > self._most:
                self._count(pair, Event.BUFFER_FULL)
                continue
            self._waiting.append(pair)
            self._bytes += size
        self._feed()

    def families(self) -> Iterable[Family]:
        """The excess difference of this moment with its interval."""
        yield gauge("quantgate_pairs_waiting", "Pairs that wait to be compared.", (), {(): float(len(self._waiting))})
        low: dict[Key, float] = {}
        high: dict[Key, float] = {}
        mean: dict[Key, float] = {}
        for key, standing in list(self.standings.items()):
            interval = standing.interval()
            low[key], high[key] = interval.lower, interval.upper
            mean[key] = standing.total / standing.number
        labels = ("bucket", "candidate")
        yield gauge("quantgate_excess_mean", "Mean excess difference since control started.", labels, mean)
        yield gauge("quantgate_excess_low", "Lower end of its 95 % interval, valid at any time.", labels, low)
        yield gauge("quantgate_excess_high", "Upper end of its 95 % interval, valid at any time.", labels, high)
        yield from self.likelihood.families()

    async def stop(self, within_s: float) -> None:
        """Let what is waiting be compared, within a time."""
        try:
            async with asyncio.timeout(within_s):
                await self._idle.wait()
        except TimeoutError:
            for pair in self._waiting:
                self._count(pair, Event.STOPPING)
            self._waiting.clear()
        await self.likelihood.stop()

    def _feed(self) -> None:
        while self._waiting and self._running < 2:
            batch: list[Pair] = []
            size = 0
            while self._waiting and len(batch) < BATCH and size < BATCH_BYTES:
                pair = self._waiting.popleft()
                batch.append(pair)
                size += size_of(pair)
            self._bytes -= size
            self._running += 1
            self._idle.clear()
            task = asyncio.get_running_loop().create_task(self._score(batch), name="score pairs")
            task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._running -= 1
        if not task.cancelled() and task.exception() is not None:
            _log.error("pairing_failed", error=type(task.exception()).__name__)
        self._feed()
        if self._running == 0 and not self._waiting:
            self._idle.set()

    async def _score(self, batch: list[Pair]) -> None:
        try:
            work = Work(batch, [self._opinions.get(pair.rule, ()) for pair in batch])
            data = await self._scoring.run(pair_process.score_pairs, msgspec.msgpack.encode(work))
            found = pair_process.decode(data)
        except Exception as error:  # the pairs are missing then, which the judge must hear of
            _log.error("comparison_failed", error=type(error).__name__, pairs=len(batch))
            found = [pair_process.unscored(pair) for pair in batch]
        for pair, scores in zip(batch, found, strict=True):
            self._found(ScoredPair(pair, scores))

    def _found(self, scored: ScoredPair) -> None:
        pair, scores = scored
        candidate = pair.candidate.pool
        key = (pair.bucket, candidate)
        verdict = scores.agreement.verdict
        self._count(pair, Event.UNSCORED if verdict is Verdict.UNSCORED else Event.COMPARED)
        if verdict in (Verdict.OTHER_FAILED, Verdict.BOTH_FAILED):
            self._count(pair, Event.FAILED)
        self.compared.add((pair.bucket, candidate, verdict.value))
        if scores.agreement.score is not None:
            self.agreement.observe(self.agreement.row(key), scores.agreement.score)
        if scores.loss is not None and scores.loss.trip is not None:
            self.excess.observe(self.excess.row(key), scores.loss.trip)
            if key in self.standings or len(self.standings) < 1000:
                self.standings.setdefault(key, Standing()).add(scores.loss.trip)
        for subscriber in self._subscribers:
            try:
                subscriber(scored)
            except Exception:
                _log.exception("pair_part_failed")
        if verdict is Verdict.COMPARED and self.likelihood.wants(pair):
            self.likelihood.take(pair, lambda gap: self._keep(row_of(scored, gap)))
        else:
            self._keep(row_of(scored))

    def _count(self, pair: Pair, event: Event) -> None:
        self.events.add((pair.bucket, pair.rule, event.value))


def row_of(scored: ScoredPair, gap: PairGap | None = None) -> PairRow:
    """The pair as it is stored: scores and parts."""
    pair, scores = scored
    found, loss = scores.agreement, scores.loss
    agreement, noise = found.score, scores.noise.score if scores.noise else None
    return PairRow(
        request_id=pair.request_id,
        at=pair.at,
        rule=pair.rule,
        tenant=pair.tenant,
        bucket=pair.bucket,
        task=pair.task,
        baseline=pair.baseline.pool,
        candidate=pair.candidate.pool,
        verdict=found.verdict.value,
        kind=found.kind.value,
        agreement=agreement,
        noise=noise,
        excess=noise - agreement if noise is not None and agreement is not None else None,
        loss=loss.trip if loss is not None else None,
        promotion=loss.promotion if loss is not None else None,
        likelihood_gap=gap.mean_nats if gap is not None else None,
        parts=_parts(found),
        candidate_failure=pair.candidate.failure,
        baseline_failure=pair.baseline.failure,
        ttft_baseline_s=pair.baseline.ttft_s,
        ttft_candidate_s=pair.candidate.ttft_s,
        total_baseline_s=pair.baseline.total_s,
        total_candidate_s=pair.candidate.total_s,
        capped_by=found.capped_by.value if found.capped_by is not None else "",
        unscored=found.unscored.value,
        noise_failure=pair.noise.failure if pair.noise is not None else "",
        noise_parts=_parts(scores.noise),
        likelihood=orjson.dumps(msgspec.to_builtins(gap)).decode() if gap is not None else "{}",
    )


def size_of(pair: Pair) -> int:
    """Bytes of texts."""
    noise = len(pair.noise.answer) if pair.noise is not None else 0
    return len(pair.request) + len(pair.baseline.answer) + len(pair.candidate.answer) + noise


def _parts(agreement: Agreement | None) -> str:
    parts = agreement.parts if agreement is not None else ()
    return orjson.dumps({part.value: round(value, 4) for part, value in parts}).decode()
