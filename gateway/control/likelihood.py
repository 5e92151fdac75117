"""Teacher-forced scoring of shadow pairs: each answer under both pools, for a share of the pairs.

Asked from control and not from the workers: it is late work on texts that only the scorer processes have read, each
answer takes several calls to a runtime's own API, and none of it may cost a worker's loop. Owns its queue, bounded in
number and bytes, and its few calls at a time; asks nothing of an endpoint whose requests wait, and nothing that
``control.likelihood_caution`` objects to. What is not scored is counted by why.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import aiohttp
import msgspec
import structlog

from gateway.control import pair_process
from gateway.control.likelihood_calls import Calls
from gateway.control.likelihood_caution import Caution, tokens_at_once
from gateway.control.scoring import ScorerDiedError
from gateway.control.series import Counter, Family, Histogram
from gateway.core.assemble import JsonProblemError, parse_envelope
from gateway.core.assemble.parts import as_object
from gateway.core.comparison import (
    Call,
    Gap,
    Reply,
    Scoring,
    ScoringError,
    TokenScores,
    likelihood_gap,
    score_answer,
    scoring_of,
)
from gateway.core.comparison.scoring import Steps
from gateway.core.mirror import sampled
from gateway.model.enums import Api
from gateway.model.pair import Leg, Pair
from gateway.model.proving import Shadow
from gateway.model.table import Pool, Table

RUNNING_MOST = 2
WAITING_MOST = 32
REQUEST_MOST_BYTES = 256 * 1024  # a prompt over this costs the pools more than its score is worth
PAIR_S = 60.0
BUSY_WAITS = 20
GAP_BOUNDS = (-0.1, -0.01, 0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
APIS = frozenset({Api.CHAT.value, Api.COMPLETIONS.value})

_log = structlog.get_logger("control.likelihood")


class PairGap(msgspec.Struct, frozen=True):
    """How much less likely each answer is under the other pool, in nats per token; > 0 = the pools differ.

    ``mean_nats``: the mean of the two sides that could be scored.
    """

    mean_nats: float
    baseline_answer: Gap | None
    candidate_answer: Gap | None


class ScoredGap(NamedTuple):
    """A pair with its gap. ``pair`` still has its texts: subscribers must not keep it."""

    pair: Pair
    gap: PairGap


class _BusyError(Exception):
    """Requests wait at the endpoint: clients go first."""


class _ObjectedError(Exception):
    """The pool must not be asked any more; the message is why, in a word."""


_WORDS: dict[type[Exception], str] = {
    TimeoutError: "timeout",
    _BusyError: "busy",
    aiohttp.ClientError: "unreachable",
    OSError: "unreachable",
    ScorerDiedError: "scorer_died",
}


class _Job(NamedTuple):
    pair: Pair
    done: Callable[[PairGap | None], None]


Run = Callable[[Callable[[bytes], bytes], bytes], Awaitable[bytes]]


class Likelihood:
    """The stage. ``run`` lends a scorer process; ``overloaded`` tells whether requests wait at an endpoint."""

    def __init__(
        self,
        run: Run,
        caution: Caution,
        overloaded: Callable[[str], bool] = lambda _: False,
        busy_pause_s: float = 1.0,
    ) -> None:
        self.counted = Counter(
            "quantgate_likelihood_total",
            "Pairs chosen for teacher-forced scoring, by what became of them; scored, or why not.",
            ("bucket", "candidate", "outcome"),
            most=2_000,
        )
        self.gaps = Histogram(
            "quantgate_pair_likelihood_gap",
            "How much less likely the pools find each other's answers, in nats per token; 0 is the same model.",
            ("bucket", "candidate"),
            GAP_BOUNDS,
        )
        self.caution = caution
        self._calls = Calls(caution)
        self.overloaded = overloaded
        self._run = run
        self._busy_pause_s = busy_pause_s
        self._rules: dict[str, Shadow] = {}
        self._pools: Mapping[str, Pool] = {}
        self._names: Mapping[str, tuple[str, str | None]] = {}
        self._waiting: deque[_Job] = deque()
        self._tasks: set[asyncio.Task[tuple[str, PairGap | None]]] = set()
        self._subscribers: list[Callable[[ScoredGap], None]] = []

    def subscribe(self, subscriber: Callable[[ScoredGap], None]) -> None:
        """Hear every gap from now on."""
        self._subscribers.append(subscriber)

    def configure(self, table: Table) -> None:
        """A policy came into force."""
        self._rules = {rule.name: rule for rule in table.shadows if rule.likelihood > 0}
        self._pools = table.pools
        self._names = table.names

    def families(self) -> list[Family]:
        """The histogram of this moment."""
        return [self.gaps.family()]

    def wants(self, pair: Pair) -> bool:
        """Whether the pair is in its rule's share and can be scored at all."""
        rule = self._rules.get(pair.rule)
        if rule is None or pair.api not in APIS or pair.baseline.failure or pair.candidate.failure:
            return False
        key = bytes.fromhex(pair.conversation) or pair.request_id.encode()
        if not sampled(pair.rule, "likelihood", key, rule.likelihood):
            return False
        objection = self._objection(pair, rule)
        if objection:
            self._count(pair, objection)
        return not objection

    def _objection(self, pair: Pair, rule: Shadow) -> str:
        """Why the pair cannot or must not be scored, in a word."""
        legs = (pair.baseline, pair.candidate)
        if any(self._capability(leg.pool) is Scoring.NONE for leg in legs):
            return "unsupported_runtime"
        for leg in legs:
            scoring = self._capability(leg.pool)
            found = self.caution.objection(self._pools[leg.pool], scoring)
            if found:
                return found
            if tokens_at_once(scoring, pair.request, legs) > rule.likelihood_tokens:
                return "too_long"
        return "too_long" if len(pair.request) > REQUEST_MOST_BYTES else ""

    def take(self, pair: Pair, done: Callable[[PairGap | None], None]) -> None:
        """Score a pair; ``done`` hears the gap, or None if there is none, exactly once."""
        if len(self._waiting) >= WAITING_MOST:
            self._count(pair, "queue_full")
            done(None)
            return
        self._waiting.append(_Job(pair, done))
        self._feed()

    async def stop(self) -> None:
        """Give up what is not scored yet."""
        while self._waiting:
            job = self._waiting.popleft()
            self._count(job.pair, "stopping")
            job.done(None)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._calls.close()

    def _feed(self) -> None:
        while self._waiting and len(self._tasks) < RUNNING_MOST:
            job = self._waiting.popleft()
            task = asyncio.get_running_loop().create_task(self._work(job.pair), name="likelihood")
            self._tasks.add(task)
            task.add_done_callback(partial(self._ended, job))

    def _ended(self, job: _Job, task: "asyncio.Task[tuple[str, PairGap | None]]") -> None:
        self._tasks.discard(task)
        outcome, gap = ("stopping", None) if task.cancelled() else task.result()
        self._count(job.pair, outcome)
        if gap is not None:
            self.gaps.observe(self.gaps.row((job.pair.bucket, job.pair.candidate.pool)), gap.mean_nats)
            for subscriber in self._subscribers:
                try:
                    subscriber(ScoredGap(job.pair, gap))
                except Exception:
                    _log.exception("likelihood_part_failed")
        job.done(gap)
        self._feed()

    async def _work(self, pair: Pair) -> tuple[str, PairGap | None]:
        """The outcome in a word, and the gap if there is one."""
        try:
            async with asyncio.timeout(PAIR_S):
                gap = await self._gap(pair)
        except ScoringError as error:
            return error.problem.value, None
        except _ObjectedError as error:
            return str(error), None
        except tuple(_WORDS) as error:
            return next(word for kind, word in _WORDS.items() if isinstance(error, kind)), None
        except Exception as error:  # a fault of ours costs a score, and the log has its kind
            _log.error("likelihood_failed", error=type(error).__name__)
            return "fault", None
        return "misaligned" if gap is None else "scored", gap

    async def _gap(self, pair: Pair) -> PairGap | None:
        texts = pair_process.decode_texts(await self._run(pair_process.answer_texts, msgspec.msgpack.encode(pair)))
        try:
            request = as_object(await asyncio.to_thread(parse_envelope, pair.request))
        except JsonProblemError:
            return None
        sides: list[Gap | None] = []
        for text, own, other in (
            (texts.baseline, pair.baseline, pair.candidate),
            (texts.candidate, pair.candidate, pair.baseline),
        ):
            under_own = await self._score(pair, own, request, text)
            sides.append(likelihood_gap(under_own, await self._score(pair, other, request, text)))
        known = [side.mean_nats for side in sides if side is not None]
        return PairGap(sum(known) / len(known), *sides) if known else None

    async def _score(self, pair: Pair, leg: Leg, request: dict[str, Any], text: str) -> TokenScores:
        """One answer under one pool, at the endpoint that answered before."""
        pool = self._pools[leg.pool]
        endpoint = next((item for item in pool.endpoints if item.name == leg.endpoint), pool.endpoints[0])
        steps = score_answer(self._capability(leg.pool), request, text, self._served_name(pool, request))
        found = await asyncio.to_thread(_step, steps, None)
        while isinstance(found, Call):
            await self._until_calm(endpoint.name)
            if objection := self.caution.objection(pool, self._capability(leg.pool)):
                raise _ObjectedError(objection)  # it broke under another pair while this one waited
            reply = await self._calls.post(pair, pool, endpoint, found)
            found = await asyncio.to_thread(_step, steps, reply)
        return found

    async def _until_calm(self, endpoint: str) -> None:
        """Clients first. Raises ``_BusyError`` where they leave no gap for long."""
        for _ in range(BUSY_WAITS):
            if not self.overloaded(endpoint):
                return
            await asyncio.sleep(self._busy_pause_s)
        raise _BusyError

    def _served_name(self, pool: Pool, request: Mapping[str, Any]) -> str:
        """What the pool calls the model or the adapter that the client asked for."""
        _, adapter = self._names.get(str(request.get("model")), ("", None))
        if adapter is not None:
            return pool.adapters.get(adapter, adapter)
        return pool.upstream_model or pool.model

    def _capability(self, pool: str) -> Scoring:
        known = self._pools.get(pool)
        return Scoring.NONE if known is None else scoring_of(known.runtime)

    def _count(self, pair: Pair, outcome: str) -> None:
        self.counted.add((pair.bucket, pair.candidate.pool, outcome))


def _step(steps: Steps, reply: Reply | None) -> Call | TokenScores:
    """One turn of the scoring, in a thread: replies may be long, and are parsed here."""
    try:
        return next(steps) if reply is None else steps.send(reply)
    except StopIteration as done:
        found: TokenScores = done.value
        return found
