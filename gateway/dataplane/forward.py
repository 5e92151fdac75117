"""Attempts of one request: choose an endpoint inside the constraint set, try it, and go on to another if that may help.

The set of pools is the decision's and never grows: failover and overflow stay inside it. Health fails open (if no
endpoint is healthy, any that is not quarantined is tried), constraints fail closed.
"""

from collections.abc import Callable
from typing import Final

import orjson

from gateway.core.breaker import RetryBudget
from gateway.core.edit import rewrite, rewrite_form, wants_usage
from gateway.core.retry import MEANINGS, parse_retry_after
from gateway.dataplane.answers import JSON, error_for, fields_to_client
from gateway.dataplane.attempt import Attempt
from gateway.dataplane.board import Board
from gateway.dataplane.exchange import Exchange
from gateway.dataplane.fleet import EndpointView, PoolView
from gateway.dataplane.outcomes import Tried
from gateway.dataplane.relay import Relay
from gateway.dataplane.starts import StartCounts
from gateway.dataplane.trials import Trials
from gateway.errors import ApiError, error_body
from gateway.model.enums import Api, Failure, Result
from gateway.model.table import Pool
from gateway.wire.wheel import Wheel

JOINED_MOST: Final = 16_384  # a body up to here goes out in one piece with its head; copying a longer one costs more
BUSY_RETRY_S = 1  # what a client is told to wait when all pools are busy and say nothing themselves


class Forwarder:
    """Starts attempts and judges how they ended. One per worker."""

    def __init__(
        self,
        *,
        wheel: Wheel,
        board: Board,
        clock: Callable[[], float],
        rand: Callable[[], float],
    ) -> None:
        self.wheel = wheel
        self.board = board
        self.clock = clock
        self._rand = rand
        self.on_release: Callable[[], None] = lambda: None
        self.on_fault: Callable[[Exchange, Exception], None] = lambda _exchange, _error: None
        self.starts = StartCounts()
        self.trials = Trials()
        self.budget = RetryBudget(0.2)

    def launch(self, exchange: Exchange) -> bool:
        """Start an attempt; False if every endpoint that could be tried is at its limit."""
        now = self.clock()
        pool, view, full = self._target(exchange, now)
        if pool is None or view is None:
            if full:
                return False
            self._unserved(exchange)
            return True
        tried = self.trials.take(exchange, pool, now)
        if tried is not None:
            exchange.trial = True
            exchange.attempts_most += 1
            pool, view = tried, tried.pick(tried.failing(), exchange.conversation, now, self._rand)
        if not exchange.admitted_at:
            exchange.admitted_at = now
            if not exchange.mirrored:
                self.budget.request(now)
        exchange.tried.append(view)
        if exchange.decision is not None and exchange.decision.rollout is not None and exchange.profile is not None:
            self.starts.note(exchange.wall_at, exchange.profile.bucket, pool.name)
        head, payload = _request(exchange, pool, view)  # may fail, and then nothing has been taken yet
        relay = exchange.relay = Relay(self, exchange, pool, view)
        relay.start(head, payload)
        return True

    def _target(self, exchange: Exchange, now: float) -> tuple[PoolView | None, EndpointView | None, bool]:
        """Where to try next; else whether that is for want of room.

        First the healthy endpoints in the decision's order, then, if there are none, whatever may still answer: room in
        a pool that works is worth waiting for.
        """
        pool, view, full = self._first(exchange, now, healthy=True)
        if view is None and not full:
            return self._first(exchange, now, healthy=False)
        return pool, view, full

    def _first(
        self, exchange: Exchange, now: float, *, healthy: bool
    ) -> tuple[PoolView | None, EndpointView | None, bool]:
        decision, pools, tried = exchange.decision, exchange.generation.pools, exchange.tried
        assert decision is not None  # noqa: S101 - launched after the decision only
        full = False
        for name in decision.pools:
            pool = pools[name]
            allowed = pool.healthy(now, tried) if healthy else pool.possible(tried)
            if allowed:
                if not pool.full():
                    return pool, pool.pick(allowed, exchange.conversation, now, self._rand), False
                full = True
        return None, None, full

    # how attempts end

    def succeeded(self, attempt: Attempt) -> None:
        """A whole answer of the 2xx class (or 3xx) came."""
        if _moves_breaker(attempt.exchange):
            attempt.view.breaker.success()
        self._note(attempt, "", keep=True)

    def record(self, attempt: Attempt, failure: Failure) -> None:
        """An attempt that had reached the client failed: count it; nothing else can be tried."""
        if MEANINGS[failure].blame and _moves_breaker(attempt.exchange):
            attempt.view.breaker.failure(self.clock())
        attempt.exchange.failure = failure.value
        self._note(attempt, failure.value, keep=failure is Failure.ERROR_EVENT)

    def abandoned(self, attempt: Attempt) -> Result | None:
        """The client left: the connection closes now, and nobody is to blame, unless the answer had come to its end:
        then what came of it."""
        result = attempt.on_left() if isinstance(attempt, Relay) else None
        if result is None:
            self._note(attempt, "", keep=False)
        return result

    def failed(self, relay: Attempt, failure: Failure, message: str) -> None:
        """An attempt failed before anything reached the client: try elsewhere, or tell the client."""
        assert isinstance(relay, Relay)  # noqa: S101 - the only kind of attempt
        exchange, meaning = relay.exchange, MEANINGS[failure]
        now = self.clock()
        if meaning.blame and _moves_breaker(exchange):
            relay.view.breaker.failure(now)
        clean = relay.connection is not None and relay.connection.reusable
        self._note(relay, failure.value, keep=clean)
        exchange.relay = None
        exchange.failure = failure.value
        trial, exchange.trial = exchange.trial, False
        if (
            (meaning.again or (trial and meaning.blame))
            and len(exchange.attempts) < exchange.attempts_most
            and self._target(exchange, now)[0] is not None
            and (trial or self.budget.allow(now, exchange.admitted_at))
        ):
            try:
                self.launch(exchange)
            except Exception as error:  # this is called by sockets and deadlines, which would not answer the client
                self.on_fault(exchange, error)
            return
        self._tell(relay, failure, message)

    def _note(self, attempt: Attempt, failure: str, *, keep: bool) -> None:
        exchange, now = attempt.exchange, self.clock()
        exchange.attempts.append(
            Tried(
                attempt.pool.name,
                attempt.view.name,
                attempt.status,
                failure,
                attempt.began_at - exchange.started_at,
                now - attempt.began_at,
            )
        )
        attempt.release(now, keep=keep)
        self.on_release()

    # what the client is told

    def _tell(self, relay: Relay, failure: Failure, message: str) -> None:
        exchange, meaning = relay.exchange, MEANINGS[failure]
        exchange.error_code = meaning.code
        if not relay.failure:
            extra = b"Retry-After: %d\r\n" % BUSY_RETRY_S if meaning.status in (429, 503) else b""
            body = error_for(exchange.request.head.target, error_body(meaning.status, meaning.code, message))
            exchange.connection.answer(meaning.status, self.own_fields(exchange, relay.pool, JSON + extra), body)
            exchange.finish(meaning.result, meaning.status)
            return
        # The pool's own words. Where a status of the 4xx class is the pool's fault, as with those that speak of the
        # gateway's credentials, it is no answer to a client.
        least = 500 if MEANINGS[relay.failure].blame else 400
        status = relay.status if least <= relay.status < 600 else 502
        body = b"".join(relay.body)
        headers = [
            (name, value)
            for name, value in relay.headers
            if name not in (b"retry-after", b"www-authenticate", b"location")
        ]
        encoded = any(name == b"content-encoding" for name, _ in relay.headers)
        shaped = None if status != relay.status else body if encoded else _openai_shaped(body)
        if shaped is None:
            shaped = error_body(status, meaning.code, f"The pool answered with status {relay.status}.")
            headers = [pair for pair in headers if pair[0] != b"content-encoding"]
        if shaped is not body:
            shaped = error_for(exchange.request.head.target, shaped)
            headers = [pair for pair in headers if pair[0] != b"content-type"] + [
                (b"content-type", b"application/json")
            ]
        extra = self._retry_after(relay, status)
        fields = fields_to_client(headers, sse=False) + extra
        exchange.connection.answer(status, self.own_fields(exchange, relay.pool, fields), shaped)
        exchange.finish(meaning.result, status)

    def _retry_after(self, relay: Relay, status: int) -> bytes:
        said = next((value for name, value in relay.headers if name == b"retry-after"), None)
        seconds = parse_retry_after(said.decode("latin-1"), relay.exchange.wall_at) if said is not None else None
        if seconds is None and status in (429, 503):
            seconds = BUSY_RETRY_S
        return b"" if seconds is None else b"Retry-After: %d\r\n" % seconds

    def _unserved(self, exchange: Exchange) -> None:
        """Eligible pools exist, but all their endpoints are quarantined or were tried."""
        error = ApiError(
            503,
            "no_endpoint_available",
            "Every endpoint of the pools that may serve this request is quarantined.",
            headers=(("Retry-After", "10"),),
        )
        exchange.refuse(error, Result.NO_POOL)

    def own_fields(self, exchange: Exchange, pool: PoolView, theirs: bytes) -> bytes:
        """The pool's header lines and then the gateway's own: what was decided, and how much of the limits is left."""
        if not exchange.generation.table.settings.response_headers:
            return theirs + exchange.extra_fields
        profile, decision = exchange.profile, exchange.decision
        return b"%b%bx-quantgate-request-id: %b\r\n%b" % (
            theirs,
            exchange.extra_fields,
            exchange.request_id.encode(),
            pool.told(
                profile.bucket if profile is not None else "",
                decision.rule if decision is not None else "",
            ),
        )


def _moves_breaker(exchange: Exchange) -> bool:
    """Whether the attempt tells whom to offer requests: not where it was made for the sake of evidence alone."""
    return not exchange.mirrored and not exchange.trial


def _request(exchange: Exchange, pool: PoolView, view: EndpointView) -> tuple[bytes, bytes]:
    """The request as this pool gets it: our own head, the body with the pool's model name, in one piece or in two."""
    declared: Pool = pool.pool
    facts, profile = exchange.facts, exchange.profile
    assert profile is not None  # noqa: S101 - launched after classification only
    body = exchange.body
    if profile.adapter:
        wanted = declared.adapters.get(profile.adapter, profile.adapter)
    else:
        wanted = declared.upstream_model or declared.model
    ask_usage = exchange.strips_usage = declared.stream_usage and wants_usage(facts)
    renamed = wanted if facts.model and wanted != facts.model else None
    known = exchange.known
    if renamed is not None and exchange.api is Api.AUDIO and known is not None and known.is_form:
        body = rewrite_form(body, known.content_type, model=renamed)
    elif ask_usage or renamed is not None:
        body = rewrite(body, model=renamed, ask_usage=ask_usage)
    fields = exchange.pool_fields
    if fields is None:
        fields, named = (known.pool_fields, known.named) if known is not None else (b"", b"")
        fields = b"%bx-request-id: %b%b\r\n" % (fields, named, exchange.request_id.encode())
        exchange.pool_fields = fields
    joined = len(body) < JOINED_MOST
    head = b"%b %b%b HTTP/1.1\r\n%b%b%bContent-Length: %d\r\n\r\n%b" % (
        exchange.request.head.method,
        view.base,
        exchange.path,
        view.head,
        fields,
        pool.credentials,
        len(body),
        body if joined else b"",
    )
    return head, b"" if joined else body


def _openai_shaped(body: bytes) -> bytes | None:
    """The body if it already has OpenAI's error shape; the same message re-shaped; None if there is nothing to keep."""
    try:
        parsed = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(parsed, dict):
        return None
    error = parsed.get("error")
    if isinstance(error, dict):
        return body
    flat = error if isinstance(error, str) else parsed.get("message", parsed.get("detail"))
    if flat is None:
        return None
    message = flat if isinstance(flat, str) else orjson.dumps(flat).decode()
    kind = parsed.get("type") if isinstance(parsed.get("type"), str) else "invalid_request_error"
    return orjson.dumps(
        {"error": {"message": message, "type": kind, "param": parsed.get("param"), "code": parsed.get("code")}}
    )
