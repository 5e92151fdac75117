"""Checks on answers, in processes of their own: takes outcomes with texts, gives them back with what was found.

Owns the scorer processes and the queue before them, which is bounded in bytes: what does not fit goes on unchecked and
is counted. Every outcome comes out exactly once: those without texts, most of all, as the batch that they are in, at
once and untouched; the others one by one, checked or not. Subscribers are called on the loop. A scorer that dies
(memory, a fault in a parser) is replaced, and its batch goes on unchecked.
"""

import asyncio
import multiprocessing
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import NamedTuple, TypeVar

import structlog

from gateway.control import scorer_process
from gateway.control.series import Counter
from gateway.core.batch import Batch
from gateway.core.consequence import Trace
from gateway.core.quality import Inspection
from gateway.model.enums import Result
from gateway.model.outcome import Capture, Outcome

BATCH = 24
BATCH_BYTES = 512 * 1024
WAITING_BYTES = 64 * 1024 * 1024
SCORE_S = 60.0  # for a batch, which takes a fraction of a second: beyond it a check hangs

T = TypeVar("T")

_log = structlog.get_logger("control.scoring")


class ScorerDiedError(Exception):
    """The process that worked on a batch is gone; the batch has no result."""


class Scored(NamedTuple):
    """A finished request that came with texts, and what the checks found. Both None: nothing was checked."""

    outcome: Outcome
    inspection: Inspection | None = None
    trace: Trace | None = None


Subscriber = Callable[[Sequence[Scored]], None]
PlainSubscriber = Callable[[Batch], None]


class Scoring:
    """The stage between recording and everything that wants checked outcomes. ``processes`` 0 = check nothing."""

    def __init__(self, processes: int, waiting_bytes: int = WAITING_BYTES, score_s: float = SCORE_S) -> None:
        self.skipped = Counter(
            "quantgate_checks_skipped_total", "Answers that were to be checked and were not, by why.", ("why",)
        )
        self._processes = processes
        self._waiting_most = waiting_bytes
        self._score_s = score_s
        self._waiting: deque[Outcome] = deque()
        self._waiting_bytes = 0
        self._under_way: dict[asyncio.Task[None], list[Outcome]] = {}
        self._pool: ProcessPoolExecutor | None = None
        self._subscribers: list[tuple[str, Subscriber]] = []
        self._plain_subscribers: list[tuple[str, PlainSubscriber]] = []
        self._idle = asyncio.Event()
        self._idle.set()

    def subscribe(self, name: str, subscriber: Subscriber, plain: PlainSubscriber | None = None) -> None:
        """Hand every outcome with texts to ``subscriber`` once it is checked, or will not be; others to ``plain``."""
        self._subscribers.append((name, subscriber))
        if plain is not None:
            self._plain_subscribers.append((name, plain))

    def take_batch(self, batch: Batch) -> None:
        """Outcomes from the recorder."""
        if not any(batch.capture):
            _publish(self._plain_subscribers, batch)
            return
        plain = batch.only(capture is None for capture in batch.capture)
        if plain.kind:
            _publish(self._plain_subscribers, plain)
        unchecked: list[Scored] = []
        for outcome in batch.only(batch.capture).outcomes():
            if outcome.capture is not None and not self._waits(outcome, outcome.capture):
                unchecked.append(Scored(outcome))
        if unchecked:
            _publish(self._subscribers, unchecked)
        self._feed()

    def take_lost(self, number: int) -> None:
        """Texts that workers gave up for room."""
        if number:
            self.skipped.add(("worker_full",), number)

    def _waits(self, outcome: Outcome, capture: Capture) -> bool:
        """Let it wait for a scorer, if it can be checked and there is room."""
        why = ""
        if outcome.kind.result == Result.CLIENT_CANCELLED:
            why = "cancelled"  # torn where the client left: what is missing says nothing about the pool
        elif capture.cut:
            why = "answer_too_long"
        elif self._processes == 0:
            why = "off"
        elif self._waiting_bytes + _size(capture) > self._waiting_most:
            why = "queue_full"
        if why:
            self.skipped.add((why,))
            return False
        self._waiting.append(outcome)
        self._waiting_bytes += _size(capture)
        return True

    async def run(self, work: Callable[[bytes], bytes], data: bytes) -> bytes:
        """Let a scorer process do other work of its kind. Raises ``ScorerDiedError``."""
        if self._processes == 0:
            raise ScorerDiedError
        pool = self._executor()
        try:
            return await asyncio.get_running_loop().run_in_executor(pool, work, data)
        except BrokenProcessPool:
            self._broke(pool)
            _log.error("scorer_died")
            raise ScorerDiedError from None

    @property
    def waiting(self) -> int:
        """Answers that wait for a scorer."""
        return len(self._waiting)

    async def stop(self, within_s: float) -> None:
        """Let what is waiting be checked, within a time; then end the processes."""
        try:
            async with asyncio.timeout(within_s):
                await self._idle.wait()
        except TimeoutError:
            left = [*self._waiting, *(outcome for batch in self._under_way.values() for outcome in batch)]
            for task in self._under_way:
                task.cancel()
            self._waiting.clear()
            self._waiting_bytes = 0
            self._under_way.clear()
            self._give_up(left, "stopping")
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=False, cancel_futures=True)

    def _feed(self) -> None:
        """Keep every process busy with one batch running and one waiting."""
        while self._waiting and len(self._under_way) < 2 * self._processes:
            batch: list[Outcome] = []
            size = 0
            while self._waiting and len(batch) < BATCH and size < BATCH_BYTES:
                outcome = self._waiting.popleft()
                batch.append(outcome)
                size += _size(outcome.capture)
            self._waiting_bytes -= size
            self._idle.clear()
            task = asyncio.get_running_loop().create_task(self._score(batch), name="score")
            self._under_way[task] = batch
            task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        batch = self._under_way.pop(task, None)
        if not task.cancelled() and task.exception() is not None:
            _log.error("scoring_failed", error=type(task.exception()).__name__)
            self._give_up(batch or [], "failed")
        self._feed()
        if not self._under_way and not self._waiting:
            self._idle.set()

    async def _score(self, batch: list[Outcome]) -> None:
        texts = [(capture.request, capture.answer) for outcome in batch if (capture := outcome.capture) is not None]
        pool = self._executor()
        try:
            async with asyncio.timeout(self._score_s):
                data = await asyncio.get_running_loop().run_in_executor(pool, scorer_process.score_batch, texts)
            scored = [
                Scored(outcome, scores.inspection, scores.trace)
                for outcome, scores in zip(batch, scorer_process.decode(data), strict=True)
            ]
        except BrokenProcessPool:
            self._broke(pool)
            _log.error("scorer_died", batch=len(batch))
            self._give_up(batch, "scorer_died")
            return
        except TimeoutError:
            self._broke(pool)
            for process in list((pool._processes or {}).values()):  # nothing else ends a check that hangs
                process.kill()
            _log.error("scorer_hangs", batch=len(batch))
            self._give_up(batch, "too_slow")
            return
        _publish(self._subscribers, scored)

    def _give_up(self, batch: Sequence[Outcome], why: str) -> None:
        """These go on unchecked."""
        if batch:
            self.skipped.add((why,), len(batch))
            _publish(self._subscribers, [Scored(outcome) for outcome in batch])

    def _executor(self) -> ProcessPoolExecutor:
        if self._pool is None:
            self._pool = ProcessPoolExecutor(
                self._processes, mp_context=multiprocessing.get_context("spawn"), initializer=scorer_process.start
            )
        return self._pool

    def _broke(self, pool: ProcessPoolExecutor) -> None:
        """The next batch gets new processes; several batches may find the same pool broken."""
        if self._pool is pool:
            self._pool = None


def _publish(subscribers: Sequence[tuple[str, Callable[[T], None]]], found: T) -> None:
    for name, subscriber in subscribers:
        try:
            subscriber(found)
        except Exception:
            _log.exception("scored_part_failed", part=name)


def _size(capture: Capture | None) -> int:
    return len(capture.request) + len(capture.answer) if capture is not None else 0
