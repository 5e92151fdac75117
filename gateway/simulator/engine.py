"""The simulated engine: which requests run, which wait, and when each token leaves.

Owns the slots, the queue, the prefix cache and all timing. It knows no HTTP: a job is told when to step and when it is
done. ``service`` submits and aborts jobs; the loop and its clock are arguments.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from random import Random

from gateway.simulator.config import Config
from gateway.simulator.meters import Meters

_BLOCK_TOKENS = 16  # prefix hits come in whole blocks, as in vLLM
_PREFIXES_KEPT = 8192


class Job:
    """One request in the engine.

    ``step`` sends the next token and says whether more follow; None = nothing is sent before ``done``. ``ttft`` and
    ``tpot`` are seconds at an idle engine. ``freeze_after``: no token leaves after that many (None: never freezes; 0:
    not even the first); the slot stays taken until the job is aborted.
    """

    __slots__ = (
        "arrived",
        "blocked",
        "cached_tokens",
        "done",
        "first_at",
        "freeze_after",
        "last_at",
        "prompt_tokens",
        "started",
        "state",
        "step",
        "stepped",
        "steps",
        "timer",
        "tpot",
        "ttft",
    )

    def __init__(
        self,
        *,
        prompt_tokens: int,
        cached_tokens: int,
        steps: int,
        ttft: float,
        tpot: float,
        step: Callable[[], bool] | None,
        done: Callable[[], None],
        freeze_after: int | None = None,
    ) -> None:
        self.prompt_tokens = prompt_tokens
        self.cached_tokens = cached_tokens
        self.steps = steps
        self.ttft = ttft
        self.tpot = tpot
        self.step = step
        self.done = done
        self.freeze_after = freeze_after
        self.state = "new"  # new | waiting | running | over
        self.stepped = 0
        self.blocked = False  # the client does not read; the next step waits for it
        self.arrived = self.started = self.first_at = self.last_at = 0.0
        self.timer: asyncio.Handle | None = None


class PrefixCache:
    """Which prompt prefixes the engine has seen, oldest forgotten first."""

    def __init__(self) -> None:
        self._seen: OrderedDict[bytes, None] = OrderedDict()

    def hit(self, prefixes: Sequence[tuple[bytes, int]]) -> int:
        """Tokens of the longest known prefix, in whole blocks; all given prefixes are known from then on."""
        found = 0
        for digest, tokens in prefixes:
            if digest in self._seen:
                found = tokens
                self._seen.move_to_end(digest)
            else:
                self._seen[digest] = None
        while len(self._seen) > _PREFIXES_KEPT:
            self._seen.popitem(last=False)
        return found // _BLOCK_TOKENS * _BLOCK_TOKENS


class Engine:
    """Runs jobs within the capacity of the configuration. ``random`` spreads single tokens only."""

    def __init__(self, config: Config, loop: asyncio.AbstractEventLoop, random: Random) -> None:
        self.config = config
        self.loop = loop
        self.random = random
        self.meters = Meters()
        self.prefixes = PrefixCache()
        self.running: set[Job] = set()
        self.waiting: deque[Job] = deque()

    @property
    def kv_usage(self) -> float:
        """Share of the KV cache that running requests hold, 0..1."""
        held = sum(job.prompt_tokens + job.stepped for job in self.running)
        return min(1.0, held / self.config.capacity.kv_tokens)

    @property
    def has_room(self) -> bool:
        """Whether one more job may run or wait."""
        capacity = self.config.capacity
        return len(self.running) < capacity.running or capacity.queue is None or len(self.waiting) < capacity.queue

    def submit(self, job: Job) -> None:
        """Start the job, or let it wait for a slot."""
        job.arrived = self.loop.time()
        if len(self.running) < self.config.capacity.running:
            self._start(job)
        else:
            job.state = "waiting"
            self.waiting.append(job)

    def abort(self, job: Job, *, counted: bool = True) -> None:
        """Stop the job at once and give its slot to the next; jobs that are over are left alone.

        ``counted``: the client left; a fault that ends the answer is no abort.
        """
        if job.state == "over":
            return
        self.meters.aborts += counted
        if job.state == "waiting":
            self.waiting.remove(job)
        self._leave(job)

    def unblock(self, job: Job) -> None:
        """The client reads again: send the token that waited for it."""
        if job.blocked and job.state == "running":
            job.blocked = False
            self._step(job)

    def slowdown(self) -> float:
        """The current load's multiplier of all latencies."""
        return self.config.slowdown.factor(len(self.running) / self.config.capacity.running)

    def _start(self, job: Job, *, from_queue: bool = False) -> None:
        job.state = "running"
        job.started = self.loop.time()
        self.running.add(job)
        self.meters.queue_time.add(job.started - job.arrived)
        if job.freeze_after == 0:
            return
        delay = job.ttft * self.slowdown()
        if delay > 0:
            job.timer = self.loop.call_later(delay, self._first, job)
        elif from_queue:  # in its own turn of the loop: a long queue must not become a deep call stack
            job.timer = self.loop.call_soon(self._first, job)
        else:
            self._first(job)

    def _first(self, job: Job) -> None:
        job.first_at = job.last_at = self.loop.time()
        if job.step is not None:
            self._step(job)
            return
        if job.freeze_after is not None:
            job.timer = None
            return
        delay = job.tpot * (job.steps - 1) * self.slowdown()
        if delay > 0:
            job.timer = self.loop.call_later(delay, self._finish, job)
        else:
            self._finish(job)

    def _step(self, job: Job) -> None:
        now = self.loop.time()
        if job.stepped:
            self.meters.inter_token.add(now - job.last_at)
        job.last_at = now
        job.stepped += 1
        more = job.step is not None and job.step()
        if job.state != "running":  # the step itself ended the connection
            return
        if not more:
            self._finish(job)
        elif job.freeze_after is not None and job.stepped >= job.freeze_after:
            job.timer = None
        elif not job.blocked:
            self._schedule(job)

    def _schedule(self, job: Job) -> None:
        delay = job.tpot * self.slowdown()
        if self.config.tpot_jitter:
            delay *= 1 + self.config.tpot_jitter * (2 * self.random.random() - 1)
        # Without a delay each token still leaves in its own turn of the loop, as from a very fast engine.
        job.timer = self.loop.call_later(delay, self._step, job) if delay > 0 else self.loop.call_soon(self._step, job)

    def _finish(self, job: Job) -> None:
        now = self.loop.time()
        meters, decode = self.meters, now - job.first_at
        meters.ttft.add(job.first_at - job.arrived)
        meters.end_to_end.add(now - job.arrived)
        meters.inference_time.add(now - job.started)
        meters.prefill_time.add(job.first_at - job.started)
        meters.decode_time.add(decode)
        meters.request_prompt_tokens.add(job.prompt_tokens)
        meters.request_generation_tokens.add(job.steps)
        if job.steps > 1:
            meters.per_output_token.add(decode / (job.steps - 1))
            if job.step is None:
                meters.inter_token.add(decode / (job.steps - 1), job.steps - 1)
        meters.prompt_tokens += job.prompt_tokens
        meters.cached_tokens += job.cached_tokens
        meters.generation_tokens += job.steps
        self._leave(job)
        job.done()

    def _leave(self, job: Job) -> None:
        job.state = "over"
        if job.timer is not None:
            job.timer.cancel()
            job.timer = None
        self.running.discard(job)
        while self.waiting and len(self.running) < self.config.capacity.running:
            self._start(self.waiting.popleft(), from_queue=True)
