"""Shadow pairs in control: compared in the scorer processes, counted, stored, and handed to whoever judges.

Owns the queue of pairs, bounded in bytes; what does not fit is dropped and counted, never silently. Gives each pair out
once as ``ScoredPair``. Holds texts only until they are compared.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import NamedTuple

import msgspec
import orjson
import structlog

from gateway.control import pair_process
from gateway.control.pair_process import PairScores
from gateway.control.scoring import ScorerDiedError, Scoring
from gateway.control.series import Counter, Family, Histogram, Key, gauge
from gateway.core.evidence.intervals import MeanInterval
from gateway.core.mirror import Event
from gateway.model.pair import Pair, Pairs
from gateway.store.pairs import PairRow

WAITING_BYTES = 32 * 1024 * 1024
BATCH = 8
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


class Pairing:
    """The stage that turns mirrored requests into evidence. ``scoring`` lends its processes."""

    def __init__(self, scoring: Scoring, keep: Callable[[PairRow], None], waiting_bytes: int = WAITING_BYTES) -> None:
        self.events = Counter(
            "quantgate_shadow_requests_total",
            "Requests that a shadow rule matched, by what became of them.",
            ("bucket", "rule", "event"),
            most=4_000,
        )
        self.compared = Counter(
            "quantgate_pairs_total", "Compared pairs by verdict.", ("bucket", "candidate", "verdict"), most=4_000
        )
        self.agreement = Histogram(
            "quantgate_pair_agreement",
            "Agreement of the candidate's answer with the baseline's, 0 to 1.",
            ("bucket", "candidate"),
            (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0),
        )
        self.excess = Histogram(
            "quantgate_pair_excess",
            "Disagreement of the candidate beyond the baseline's own noise, -1 to 1; above 0 is worse.",
            ("bucket", "candidate"),
            EXCESS_BOUNDS,
        )
        self.standings: dict[tuple[str, str], Standing] = {}
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

    def take(self, message: Pairs) -> None:
        """Pairs and counts of a worker."""
        for count in message.counts:
            self.events.add((count.bucket, count.rule, count.event), count.number)
        for pair in message.batch:
            size = _size(pair)
            if self._bytes + size > self._most:
                self.events.add((pair.bucket, pair.rule, Event.BUFFER_FULL.value))
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
            interval = standing.mean.loss_interval()
            low[key], high[key] = interval.lower, interval.upper
            mean[key] = standing.total / standing.number
        labels = ("bucket", "candidate")
        yield gauge("quantgate_excess_mean", "Mean excess difference of the candidate.", labels, mean)
        yield gauge("quantgate_excess_low", "Lower end of its 95 % anytime-valid interval.", labels, low)
        yield gauge("quantgate_excess_high", "Upper end of its 95 % anytime-valid interval.", labels, high)

    async def stop(self, within_s: float) -> None:
        """Let what is waiting be compared, within a time."""
        try:
            async with asyncio.timeout(within_s):
                await self._idle.wait()
        except TimeoutError:
            for pair in self._waiting:
                self.events.add((pair.bucket, pair.rule, Event.BUFFER_FULL.value))
            self._waiting.clear()

    def _feed(self) -> None:
        while self._waiting and self._running < 2:
            batch = [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]
            self._bytes -= sum(map(_size, batch))
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
            data = await self._scoring.run(pair_process.score_pairs, msgspec.msgpack.encode(batch))
        except ScorerDiedError:
            for pair in batch:
                self.compared.add((pair.bucket, pair.candidate.pool, "scorer_died"))
            return
        for pair, scores in zip(batch, pair_process.decode(data), strict=True):
            self._found(ScoredPair(pair, scores))

    def _found(self, scored: ScoredPair) -> None:
        pair, scores = scored
        candidate = pair.candidate.pool
        key = (pair.bucket, candidate)
        self.compared.add((pair.bucket, candidate, scores.agreement.verdict.value))
        if scores.agreement.score is not None:
            self.agreement.observe(self.agreement.row(key), scores.agreement.score)
        if scores.loss is not None and scores.loss.trip is not None:
            self.excess.observe(self.excess.row(key), scores.loss.trip)
            if key in self.standings or len(self.standings) < 1000:
                self.standings.setdefault(key, Standing()).add(scores.loss.trip)
        self._keep(row_of(scored))
        for subscriber in self._subscribers:
            try:
                subscriber(scored)
            except Exception:
                _log.exception("pair_part_failed")


def row_of(scored: ScoredPair) -> PairRow:
    """The pair as it is stored: scores and parts."""
    pair, scores = scored
    agreement, noise, loss = scores.agreement.score, scores.noise.score if scores.noise else None, scores.loss
    return PairRow(
        pair.request_id,
        pair.at,
        pair.rule,
        pair.tenant,
        pair.bucket,
        pair.task,
        pair.baseline.pool,
        pair.candidate.pool,
        scores.agreement.verdict.value,
        scores.agreement.kind.value,
        agreement,
        noise,
        noise - agreement if noise is not None and agreement is not None else None,
        loss.trip if loss is not None else None,
        loss.promotion if loss is not None else None,
        None,
        orjson.dumps({part.value: round(value, 4) for part, value in scores.agreement.parts}).decode(),
        pair.candidate.failure,
        pair.baseline.failure,
        pair.baseline.ttft_s,
        pair.candidate.ttft_s,
        pair.baseline.total_s,
        pair.candidate.total_s,
    )


def _size(pair: Pair) -> int:
    noise = len(pair.noise.answer) if pair.noise is not None else 0
    return len(pair.request) + len(pair.baseline.answer) + len(pair.candidate.answer) + noise
