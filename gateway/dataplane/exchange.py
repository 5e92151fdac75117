"""One request from its arrival to its end: the state that the stages share, and the one place where it ends.

Stages read and fill the fields in file order. ``finish`` runs exactly once for every request that was begun, whatever
happened to it; it gives back every permit and leaves one ``Outcome``.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from gateway.core.answer import AnswerInfo
from gateway.core.arms import rolled_back_words
from gateway.core.sse import came_at_once
from gateway.core.tokens import Estimate
from gateway.dataplane.answers import error_fields, error_for
from gateway.dataplane.fleet import EndpointView, Generation
from gateway.dataplane.identity import Caller
from gateway.dataplane.known import Known
from gateway.dataplane.outcomes import Ended, Tried
from gateway.dataplane.sizing import Sizes
from gateway.errors import ApiError
from gateway.model.decision import Decision
from gateway.model.enums import Api, Result
from gateway.model.facts import Facts, Profile
from gateway.model.outcome import Attempt, Capture
from gateway.wire.http import Request
from gateway.wire.listener import Audience
from gateway.wire.wheel import Due

if TYPE_CHECKING:
    from gateway.dataplane.mirrored import Job
    from gateway.dataplane.relay import Relay

NO_FACTS: Final = Facts(Api.OTHER, "")
NO_INFO: Final = AnswerInfo()


class Taking:
    """The texts of one exchange while it runs, for the checks: the request's body, and the answer up to a bound."""

    __slots__ = ("_answer", "_cut", "_left", "_request")

    def __init__(self, request: bytes, most: int) -> None:
        self._request = request
        self._answer: list[bytes] = []
        self._left = most
        self._cut = False

    def add(self, data: bytes) -> None:
        """More of the answer, as the pool sent it."""
        if len(data) > self._left:
            self._cut = True
            data = data[: self._left]
        self._left -= len(data)
        if data:
            self._answer.append(data)

    def taken(self) -> Capture:
        """What was kept."""
        return Capture(self._request, b"".join(self._answer), self._cut)


class Exchange(Due):
    """State of one request. Times without a unit suffix are readings of the monotonic clock."""

    __slots__ = (
        "admitted",
        "admitted_at",
        "api",
        "attempts",
        "attempts_most",
        "began_at",
        "body",
        "bytes_in",
        "caller",
        "capture",
        "capture_for_pair",
        "charged_tokens",
        "connection",
        "content_at",
        "content_events",
        "content_last_at",
        "conversation",
        "decision",
        "error_code",
        "estimate",
        "events",
        "extra_fields",
        "facts",
        "failure",
        "finished",
        "generation",
        "job",
        "known",
        "longest_gap_s",
        "mirrored",
        "on_finish",
        "path",
        "pool_fields",
        "profile",
        "queued_at",
        "relay",
        "request",
        "request_id",
        "sizes",
        "started_at",
        "strips_usage",
        "tenant_row",
        "trace_id",
        "trial",
        "tried",
        "usage",
        "wall_at",
    )

    def __init__(
        self,
        connection: Audience,
        request: Request,
        *,
        api: Api,
        request_id: str,
        generation: Generation,
        wall_at: float,
        on_finish: Callable[["Exchange", Result, int], None],
    ) -> None:
        super().__init__()
        self.connection = connection
        self.request = request
        self.api = api
        self.request_id = request_id
        self.generation = generation
        self.wall_at = wall_at
        self.on_finish = on_finish
        self.started_at = request.received_at
        self.path = request.target
        self.body = request.body
        self.bytes_in = len(request.body)
        self.caller: Caller | None = None
        self.known: Known | None = None
        self.capture: Taking | None = None
        self.capture_for_pair = False  # kept for a shadow pair only: the checks did not ask for it
        self.job: Job | None = None
        self.mirrored = False  # a shadow leg: ``due`` ends it while an attempt runs, and it moves no client's breaker
        self.facts = NO_FACTS
        self.conversation = b""
        self.profile: Profile | None = None
        self.decision: Decision | None = None
        self.relay: Relay | None = None
        self.tried: list[EndpointView] = []
        self.attempts: list[Tried] = []
        self.attempts_most = generation.table.settings.attempts
        self.usage = NO_INFO
        self.began_at = self.queued_at = self.admitted_at = 0.0
        self.content_at = self.content_last_at = 0.0
        self.content_events = 0  # of the stream, when its first content had come
        self.longest_gap_s = -1.0
        self.estimate: Estimate | None = None
        self.sizes: Sizes | None = None  # which the estimate was made by
        self.events = 0
        self.admitted = False  # counts against the worker's own limit
        self.tenant_row = -1
        self.charged_tokens = 0
        self.failure = ""
        self.error_code = ""
        self.trace_id = ""
        self.extra_fields = b""
        self.pool_fields: bytes | None = None
        self.strips_usage = False
        self.trial = False  # its attempt is at a candidate that is ejected, for the evidence
        self.finished = False

    # wire.server.Work

    def gone(self) -> None:
        """The client left: the pool's connection is closed at once, whatever it was doing."""
        relay, self.relay = self.relay, None
        result = None if relay is None else relay.forwarder.abandoned(relay)
        if relay is None or result is None:
            self.finish(Result.CLIENT_CANCELLED, 499)
        else:
            self.finish(result, relay.status)

    def pause(self) -> None:
        """Backpressure: the pool's connection stops being read."""
        if self.relay is not None:
            self.relay.pause()

    def resume(self) -> None:
        """The client has caught up."""
        if self.relay is not None:
            self.relay.resume()

    def refuse(self, error: ApiError, result: Result) -> None:
        """Answer with one of the gateway's own errors, and end."""
        self.error_code = error.code
        fields = error_fields(error) + self.extra_fields + b"x-quantgate-request-id: %b\r\n" % self.request_id.encode()
        try:
            body = error_for(self.request.head.target, error.body())
            self.connection.answer(error.status, fields, body, close=error.close)
        finally:
            self.finish(result, error.status)

    def on_due(self, now: float) -> None:
        """The time in the admission queue is over, or a shadow leg has run too long."""
        if self.mirrored:
            self.failure = self.failure or "timeout"
            self.gone()
        elif self.relay is None and not self.finished:
            error = ApiError(
                429,
                "capacity_exceeded",
                "Every pool that may serve this request is at its limit. Try again shortly."
                + rolled_back_words(self.decision),
                headers=(("Retry-After", "1"),),
            )
            self.refuse(error, Result.SHED)

    def finish(self, result: Result, status: int) -> None:
        """End of the request; further calls do nothing."""
        if not self.finished:
            self.finished = True
            self.relay = None
            self.on_finish(self, result, status)


def _capture_of(exchange: Exchange) -> Capture | None:
    """The texts for the checks, where they asked for them and an attempt was made."""
    if exchange.capture is None or exchange.capture_for_pair or not exchange.attempts:
        return None
    return exchange.capture.taken()


def first_to_last_s(exchange: Exchange) -> float:
    """From the first content on to the last arrival; -1 where it would say nothing of the pace of tokens.

    Several choices come side by side: divided by the tokens of all, they would make any pool look fast, as an answer
    in one piece would.
    """
    facts = exchange.facts
    if not exchange.content_at or facts.sampling.n > 1 or facts.longest_bytes:
        return -1.0
    if came_at_once(exchange.events - exchange.content_events, exchange.usage.completion_tokens):
        return -1.0
    return exchange.content_last_at - exchange.content_at


def outcome_of(exchange: Exchange, kind: bytes, status: int, now: float) -> Ended:
    """The record of a finished request. Fields that a stage never reached stay empty."""
    profile, usage, facts, tried = exchange.profile, exchange.usage, exchange.facts, exchange.attempts
    attempts: tuple[Attempt, ...] | None = None
    started_s = took_s = 0.0
    if len(tried) == 1 and tried[0].status == status and not tried[0].failure:
        started_s, took_s = tried[0].started_s, tried[0].took_s
    else:
        attempts = tuple(
            [Attempt(one.pool, one.endpoint, one.status, one.failure, one.started_s, one.took_s) for one in tried]
        )
    started = exchange.admitted_at or now
    queue_s = started - exchange.queued_at if exchange.queued_at else 0.0
    temperature = facts.sampling.temperature
    return Ended(
        kind,
        exchange.request_id,
        exchange.wall_at,
        started_s,
        took_s,
        attempts,
        queue_s,
        max(0.0, started - exchange.began_at - queue_s) if exchange.began_at and exchange.admitted_at else -1.0,
        exchange.content_at - exchange.started_at if exchange.content_at else -1.0,
        first_to_last_s(exchange),
        exchange.longest_gap_s,
        now - exchange.started_at,
        profile.prompt_tokens if profile is not None else -1,
        usage.prompt_tokens,
        usage.cached_tokens,
        usage.completion_tokens,
        exchange.events,
        exchange.bytes_in,
        exchange.connection.bytes_out,
        temperature if temperature is not None else -1.0,
        exchange.conversation.hex(),
        _capture_of(exchange),
        exchange.trace_id,
    )
