"""Mirrored traffic: candidate and noise legs beside a client's request, never at its cost.

A leg is an exchange of its own whose client is a ``Sink``: it has no socket, so nothing of it can reach anybody. Legs
go through the same forwarder and relay as clients' requests, with the pool's own credentials and names. They start
after the client's request was sent, wait in a bounded queue per rule, are the first thing shed under pressure, and
count against no tenant. A pair is complete when the client's answer and all legs have ended.
"""

from collections import deque
from collections.abc import Callable

from gateway.core.mirror import Event, keeps_out, matching, sampled, shadow_body
from gateway.dataplane.exchange import Exchange, Taking
from gateway.dataplane.forward import Forwarder
from gateway.dataplane.legs import Sink, fields_of, leg_of, request_of
from gateway.dataplane.pairs import PairBuffer
from gateway.model.decision import Decision
from gateway.model.enums import Result
from gateway.model.facts import Profile
from gateway.model.pair import Leg, Pair
from gateway.model.proving import Shadow
from gateway.wire.wheel import Wheel

# How a client's request may end for its pair to say something: answered, or failed by the pool.
_TELLING = frozenset({Result.OK, Result.UPSTREAM_ERROR, Result.UPSTREAM_TRUNCATED, Result.UPSTREAM_TIMEOUT})


class Job:
    """One mirrored request until all its legs have ended."""

    __slots__ = ("body", "exchange", "left", "legs", "mirror", "primary", "rule")

    def __init__(self, mirror: "Mirror", rule: Shadow, exchange: Exchange, body: bytes) -> None:
        self.mirror = mirror
        self.rule = rule
        self.exchange = exchange
        self.body = body
        self.legs: dict[str, Leg] = {}
        self.left = 1  # the client's own
        self.primary: tuple[Result, Leg] | None = None

    def primary_ended(self, exchange: Exchange, result: Result, now: float) -> None:
        """The client's request ended, however."""
        self.primary = (result, leg_of(exchange, result, now))
        self.ended()

    def ended(self) -> None:
        """One leg fewer to wait for."""
        self.left -= 1
        if self.left == 0:
            self.mirror.complete(self)


class RuleState:
    """What a rule has under way in this worker. The policy's limits are divided over the workers of the host."""

    __slots__ = ("allowance", "allowed_at", "inflight", "waiting")

    def __init__(self) -> None:
        self.inflight = 0
        self.waiting: deque[tuple[Job, str, tuple[str, ...]]] = deque()
        self.allowance = 1.0
        self.allowed_at = 0.0


class Mirror:
    """All shadow traffic of one worker. ``busy`` tells whether clients are waiting for room."""

    def __init__(
        self,
        *,
        forwarder: Forwarder,
        wheel: Wheel,
        buffer: PairBuffer,
        clock: Callable[[], float],
        soon: Callable[[Callable[[], None]], object],
        busy: Callable[[], bool],
        workers: int,
    ) -> None:
        self._forwarder = forwarder
        self._wheel = wheel
        self._buffer = buffer
        self._clock = clock
        self._soon = soon
        self._busy = busy
        self._workers = workers
        self._rules: dict[str, RuleState] = {}

    def consider(self, exchange: Exchange, profile: Profile) -> None:
        """Called once per request, after its decision, where the policy has shadow rules."""
        table = exchange.generation.table
        for rule in matching(table.shadows, profile, exchange.api):
            key = exchange.conversation or exchange.request_id.encode()
            if not sampled(rule.name, "sample", key, rule.sample):
                continue
            self._count(rule, exchange, Event.ELIGIBLE)
            refused = self._refusal(rule, exchange)
            if refused is not None:
                self._count(rule, exchange, refused)
                continue
            self._mirror(rule, exchange, key)
            return  # one pair per request is evidence enough, and load enough

    def complete(self, job: Job) -> None:
        """All legs ended: hand the pair over, if it says anything."""
        assert job.primary is not None  # noqa: S101 - it is one of the legs
        result, baseline = job.primary
        exchange, profile = job.exchange, job.exchange.profile
        lost = _unusable(job, result, baseline)
        if lost is not None or profile is None:
            self._count(job.rule, exchange, lost or Event.CLIENT_GONE)
            return
        candidate = job.legs["candidate"]
        if candidate.failure:
            self._count(job.rule, exchange, Event.FAILED)
        pair = Pair(
            exchange.request_id,
            exchange.wall_at,
            job.rule.name,
            exchange.caller.tenant.name if exchange.caller else "",
            profile.model,
            profile.bucket,
            profile.task,
            exchange.api.value,
            exchange.facts.stream,
            exchange.conversation.hex(),
            job.body,
            baseline,
            candidate,
            job.legs.get("noise"),
        )
        self._count(job.rule, exchange, Event.COMPARED if self._buffer.add(pair) else Event.BUFFER_FULL)

    # admission of legs

    def _refusal(self, rule: Shadow, exchange: Exchange) -> Event | None:
        decision, caller = exchange.decision, exchange.caller
        assert decision is not None and caller is not None  # noqa: S101 - decided before
        kept_out = keeps_out(exchange.facts, exchange.body, tenant_agrees=caller.tenant.shadow)
        if kept_out is not None:
            return kept_out
        if decision.pools[0] != rule.baseline:
            return Event.NOT_BASELINE
        if self._busy():
            return Event.PRESSURE
        state = self._rules.setdefault(rule.name, RuleState())
        if not self._rate_allows(rule, state):
            return Event.RATE
        full = state.inflight >= self._share(rule.inflight) and len(state.waiting) >= self._share(rule.queue)
        return Event.QUEUE_FULL if full else None

    def _rate_allows(self, rule: Shadow, state: RuleState) -> bool:
        if rule.rate is None:
            return True
        now, rate = self._clock(), rule.rate / self._workers
        state.allowance = min(max(rate, 1.0), state.allowance + (now - state.allowed_at) * rate)
        state.allowed_at = now
        if state.allowance < 1.0:
            return False
        state.allowance -= 1.0
        return True

    def _share(self, limit: int) -> int:
        return max(1, limit // self._workers)

    def _mirror(self, rule: Shadow, exchange: Exchange, key: bytes) -> None:
        most = exchange.generation.table.evidence.answer_bytes
        if exchange.capture is None:
            exchange.capture = Taking(exchange.body, most)
            exchange.capture_for_pair = True
        job = Job(self, rule, exchange, shadow_body(exchange.body))
        exchange.job = job
        wanted = [("candidate", (rule.candidate,))]
        if sampled(rule.name, "noise", key, rule.noise):
            wanted.append(("noise", (rule.baseline,)))
        job.left += len(wanted)
        self._count(rule, exchange, Event.MIRRORED)
        state = self._rules[rule.name]
        state.waiting.extend((job, kind, pools) for kind, pools in wanted)
        self._soon(lambda: self._start_waiting(rule))

    def _start_waiting(self, rule: Shadow) -> None:
        state = self._rules[rule.name]
        while state.waiting and state.inflight < self._share(rule.inflight):
            job, kind, pools = state.waiting.popleft()
            state.inflight += 1
            self._start(job, kind, pools)

    # legs

    def _start(self, job: Job, kind: str, pools: tuple[str, ...]) -> None:
        origin = job.exchange
        leg = Exchange(
            Sink(),  # type: ignore[arg-type]  # all that an exchange asks of its client's connection
            request_of(origin, self._clock()),
            api=origin.api,
            request_id=f"{origin.request_id}.{kind}",
            generation=origin.generation,
            wall_at=origin.wall_at,
            on_finish=lambda ended, result, status: self._leg_ended(job, kind, ended, result),
        )
        leg.body = job.body
        leg.facts, leg.profile, leg.caller = origin.facts, origin.profile, origin.caller
        leg.conversation = origin.conversation
        leg.attempts_most = 1
        leg.capture = Taking(b"", origin.generation.table.evidence.answer_bytes)
        leg.decision = Decision(f"shadow:{job.rule.name}", pools)
        leg.pool_fields = fields_of(origin, job.rule, leg.request_id)
        leg.due = self._clock() + job.rule.timeout_s
        leg.expires = True
        self._wheel.add(leg)
        if not self._forwarder.launch(leg):
            leg.failure = "busy"
            leg.finish(Result.SHED, 0)

    def _leg_ended(self, job: Job, kind: str, leg: Exchange, result: Result) -> None:
        self._wheel.discard(leg)
        state = self._rules[job.rule.name]
        state.inflight -= 1
        job.legs[kind] = leg_of(leg, result, self._clock())
        job.ended()
        if state.waiting:
            self._soon(lambda: self._start_waiting(job.rule))

    def _count(self, rule: Shadow, exchange: Exchange, event: Event) -> None:
        bucket = exchange.profile.bucket if exchange.profile else ""
        self._buffer.count(rule.name, bucket, event)


def _unusable(job: Job, result: Result, baseline: Leg) -> Event | None:
    """Why a finished pair says nothing about the candidate."""
    if result is Result.CLIENT_CANCELLED:
        return Event.CLIENT_GONE
    if result not in _TELLING:
        return Event.NOT_SERVED
    if baseline.pool and baseline.pool != job.rule.baseline:
        return Event.SERVED_ELSEWHERE
    legs = [baseline, *job.legs.values()]
    return Event.TOO_LONG if any(leg.failure == "too_long" for leg in legs) else None
