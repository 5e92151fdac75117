"""Checks on answers, in processes of their own: takes outcomes with texts, gives them back with what was found.

Owns the scorer processes and the queue before them, which is bounded in bytes: what does not fit goes on unchecked and
is counted. Every outcome comes out exactly once, checked or not; subscribers are called on the loop in batches. A
scorer that dies (memory, a fault in a parser) is replaced, and its batch goes on unchecked.
"""

import asyncio
import multiprocessing
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import NamedTuple

import structlog

from gateway.control import scorer_process
from gateway.control.series import Counter
from gateway.core.consequence import Trace
from gateway.core.quality import Inspection
from gateway.model.messages import Outcomes
from gateway.model.outcome import Capture, Outcome

BATCH = 24
BATCH_BYTES = 512 * 1024
WAITING_BYTES = 64 * 1024 * 1024

_log = structlog.get_logger("control.scoring")


class ScorerDiedError(Exception):
    """The process that worked on a batch is gone; the batch has no result."""


class Scored(NamedTuple):
    """A finished request with what the checks found. Both None: nothing was checked."""

    outcome: Outcome
    inspection: Inspection | None = None
    trace: Trace | None = None


Subscriber = Callable[[Sequence[Scored]], None]


class Scoring:
    """The stage between recording and everything that wants checked outcomes. ``processes`` 0 = check nothing."""

    def __init__(self, processes: int, waiting_bytes: int = WAITING_BYTES) -> None:
        self.skipped = Counter(
            "quantgate_checks_skipped_total", "Answers that were to be checked and were not, by why.", ("why",)
        )
        self._processes = processes
        self._waiting_most = waiting_bytes
        self._waiting: deque[Outcome] = deque()
        self._waiting_bytes = 0
        self._running = 0
        self._pool: ProcessPoolExecutor | None = None
        self._subscribers: list[tuple[str, Subscriber]] = []
        self._idle = asyncio.Event()
        self._idle.set()

    def subscribe(self, name: str, subscriber: Subscriber) -> None:
        """Hand every outcome to ``subscriber`` once it is checked, or will not be."""
        self._subscribers.append((name, subscriber))

    def take_batch(self, message: Outcomes) -> None:
        """Outcomes from the recorder."""
        if message.captures_dropped:
            self.skipped.add(("worker_full",), message.captures_dropped)
        unchecked: list[Scored] = []
        for outcome in message.batch:
            capture = outcome.capture
            if capture is None or capture.cut or self._processes == 0:
                if capture is not None:
                    self.skipped.add(("answer_too_long" if capture.cut else "off",))
                unchecked.append(Scored(outcome))
            elif self._waiting_bytes + _size(capture) > self._waiting_most:
                self.skipped.add(("queue_full",))
                unchecked.append(Scored(outcome))
            else:
                self._waiting.append(outcome)
                self._waiting_bytes += _size(capture)
        if unchecked:
            self._publish(unchecked)
        self._feed()

    async def run(self, work: Callable[[bytes], bytes], data: bytes) -> bytes:
        """Let a scorer process do other work of its kind. Raises ``ScorerDiedError``."""
        if self._processes == 0:
            raise ScorerDiedError
        try:
            return await asyncio.get_running_loop().run_in_executor(self._executor(), work, data)
        except BrokenProcessPool:
            self._pool = None
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
            left = [Scored(outcome) for outcome in self._waiting]
            self._waiting.clear()
            self.skipped.add(("stopping",), len(left))
            self._publish(left)
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=False, cancel_futures=True)

    def _feed(self) -> None:
        """Keep every process busy with one batch running and one waiting."""
        while self._waiting and self._running < 2 * self._processes:
            batch: list[Outcome] = []
            size = 0
            while self._waiting and len(batch) < BATCH and size < BATCH_BYTES:
                outcome = self._waiting.popleft()
                batch.append(outcome)
                size += _size(outcome.capture)
            self._waiting_bytes -= size
            self._running += 1
            self._idle.clear()
            task = asyncio.get_running_loop().create_task(self._score(batch), name="score")
            task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._running -= 1
        if not task.cancelled() and task.exception() is not None:
            _log.error("scoring_failed", error=repr(task.exception()))
        self._feed()
        if self._running == 0 and not self._waiting:
            self._idle.set()

    async def _score(self, batch: list[Outcome]) -> None:
        texts = [(capture.request, capture.answer) for outcome in batch if (capture := outcome.capture) is not None]
        try:
            data = await asyncio.get_running_loop().run_in_executor(self._executor(), scorer_process.score_batch, texts)
            scored = [
                Scored(outcome, scores.inspection, scores.trace)
                for outcome, scores in zip(batch, scorer_process.decode(data), strict=True)
            ]
        except BrokenProcessPool:
            self._pool = None
            self.skipped.add(("scorer_died",), len(batch))
            _log.error("scorer_died", batch=len(batch))
            scored = [Scored(outcome) for outcome in batch]
        self._publish(scored)

    def _executor(self) -> ProcessPoolExecutor:
        if self._pool is None:
            self._pool = ProcessPoolExecutor(
                self._processes, mp_context=multiprocessing.get_context("spawn"), initializer=scorer_process.start
            )
        return self._pool

    def _publish(self, scored: Sequence[Scored]) -> None:
        for name, subscriber in self._subscribers:
            try:
                subscriber(scored)
            except Exception:
                _log.exception("scored_part_failed", part=name)


def _size(capture: Capture | None) -> int:
    return len(capture.request) + len(capture.answer) if capture is not None else 0
