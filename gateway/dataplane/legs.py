"""What a shadow leg is made of: a client without a socket, a request without its sender, and the result."""

from collections.abc import Callable

from gateway.core.mirror import Event
from gateway.dataplane.exchange import Exchange, Taking, first_to_last_s
from gateway.model.decision import Decision
from gateway.model.enums import Result
from gateway.model.facts import Profile
from gateway.model.pair import Leg
from gateway.model.proving import Shadow
from gateway.wire.http import Head, Request

TOO_LONG = "too_long"

# How a client's request may end for its pair to say something: answered, or failed by the pool.
_TELLING = frozenset({Result.OK, Result.UPSTREAM_ERROR, Result.UPSTREAM_TRUNCATED, Result.UPSTREAM_TIMEOUT})


class Sink:
    """The client of a leg: takes whatever is said and keeps none of it; the leg's capture has the answer.

    ``over`` is called once more than ``most`` bytes have come: an answer that never ends must not be read for ever.
    """

    __slots__ = ("_left", "_over", "bytes_out")

    def __init__(self, most: int, over: Callable[[], object]) -> None:
        self.bytes_out = 0
        self._left = most
        self._over: Callable[[], object] | None = over

    def answer(self, status: int, fields: bytes, body: bytes, *, close: bool = False) -> None:
        """A whole answer."""

    def begin(self, status: int, fields: bytes, length: int | None, first: bytes) -> None:
        """The start of a stream."""
        self.send(first)

    def send(self, data: bytes) -> None:
        """More of it."""
        self._left -= len(data)
        if self._left < 0 and self._over is not None:
            over, self._over = self._over, None
            over()

    def pass_on(self, data: bytes, frame: bytes) -> None:
        """More of it."""
        self.send(data)

    def end(self, last: bytes = b"") -> None:
        """Its end."""

    def abort(self) -> None:
        """Its break; nobody is called any more."""
        self._over = None


def leg_exchange(
    origin: Exchange,
    rule: Shadow,
    pool: str,
    kind: str,
    *,
    body: bytes,
    profile: Profile,
    now: float,
    over: Callable[[Exchange], object],
    on_finish: Callable[[Exchange, Result, int], None],
) -> Exchange:
    """A leg of ``origin``, ready to be launched: one attempt, in one pool, until the rule's time is over."""
    most = origin.generation.table.evidence.answer_bytes
    request_id = f"{origin.request_id}.{kind}"
    leg = Exchange(
        Sink(most, lambda: over(leg)),
        request_of(origin, now),
        api=origin.api,
        request_id=request_id,
        generation=origin.generation,
        wall_at=origin.wall_at,
        on_finish=on_finish,
    )
    leg.body = body
    leg.facts, leg.profile, leg.caller = origin.facts, profile, origin.caller
    leg.conversation = origin.conversation
    leg.attempts_most = 1
    leg.capture = Taking(b"", most)
    leg.decision = Decision(f"shadow:{rule.name}", (pool,))
    leg.pool_fields = fields_of(origin, rule, request_id)
    leg.due = now + rule.timeout_s
    leg.mirrored = True
    return leg


def end_leg(leg: Exchange, failure: str) -> None:
    """End a leg that runs, with this failure unless it has one of its own."""
    if not leg.finished:
        leg.failure = leg.failure or failure
        leg.gone()


def leg_of(exchange: Exchange, result: Result, pool: str) -> Leg:
    """What an ended exchange, a client's or a leg's, gave; ``pool`` was asked, if it came to that."""
    last = exchange.attempts[-1] if exchange.attempts else None
    capture = exchange.capture.taken() if exchange.capture is not None else None
    failure = "" if result is Result.OK else exchange.failure or result.value
    if capture is not None and capture.cut:
        failure = TOO_LONG
    usage = exchange.usage
    return Leg(
        last.pool if last else pool,
        last.endpoint if last else "",
        last.status if last else 0,
        failure,
        capture.answer if capture is not None and not failure else b"",
        exchange.content_at - exchange.started_at - last.started_s if last and exchange.content_at else -1.0,
        first_to_last_s(exchange),
        last.took_s if last else -1.0,
        usage.prompt_tokens,
        usage.completion_tokens,
        exchange.longest_gap_s,
    )


def never_ran(pool: str) -> Leg:
    """A leg that was not sent: nothing is known of the pool."""
    return Leg(pool, "", 0, "busy", b"", -1.0, -1.0, -1.0, -1, -1)


def baseline_of(exchange: Exchange, result: Result, baseline: str) -> Leg | Event:
    """What the baseline gave a client, or why the pair says nothing.

    Only the client's own request may rule a pair out, never what a leg gave: candidate and noise leg must have equal
    chances. A baseline that failed over to another pool has failed, whatever the client got in the end.
    """
    if result is Result.CLIENT_CANCELLED:
        return Event.CLIENT_GONE
    if result not in _TELLING or not exchange.attempts:
        return Event.NOT_SERVED
    first = exchange.attempts[0]
    if first.pool != baseline:
        return Event.SERVED_ELSEWHERE
    if exchange.attempts[-1].pool != baseline:
        return Leg(baseline, first.endpoint, first.status, first.failure, b"", -1.0, -1.0, first.took_s, -1, -1)
    leg = leg_of(exchange, result, baseline)
    return Event.TOO_LONG if leg.failure == TOO_LONG else leg


def request_of(origin: Exchange, now: float) -> Request:
    """A request that the forwarder can send again: the client's line without its query, none of its fields."""
    head = Head(origin.request.method, origin.request.target.partition(b"?")[0], [])
    return Request(head, b"", now)


def fields_of(origin: Exchange, rule: Shadow, request_id: str) -> bytes:
    """The header lines of a leg: the content type and the mark, nothing that names or bills the tenant."""
    content_type = origin.request.fields.get(b"content-type", b"application/json")
    version = origin.request.fields.get(b"anthropic-version")
    lines = b"content-type: %b\r\nx-quantgate-shadow: %b\r\nx-request-id: %b\r\n" % (
        content_type,
        rule.name.encode(),
        request_id.encode(),
    )
    return lines + (b"anthropic-version: %b\r\n" % version if version is not None else b"")
