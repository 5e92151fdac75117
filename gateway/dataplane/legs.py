"""What a shadow leg is made of: a client without a socket, a request without its sender, and the result."""

from gateway.dataplane.exchange import Exchange
from gateway.model.enums import Result
from gateway.model.pair import Leg
from gateway.model.proving import Shadow
from gateway.wire.http import Request


class Sink:
    """The client of a leg: takes whatever is said and keeps none of it; the leg's capture has the answer."""

    bytes_out = 0
    transport = None

    def answer(self, status: int, fields: bytes, body: bytes, *, close: bool = False) -> None:
        """A whole answer."""

    def begin(self, status: int, fields: bytes, length: int | None, first: bytes) -> None:
        """The start of a stream."""

    def send(self, data: bytes) -> None:
        """More of it."""

    def end(self, last: bytes = b"") -> None:
        """Its end."""

    def abort(self) -> None:
        """Its break."""


def leg_of(exchange: Exchange, result: Result, now: float) -> Leg:
    """What an ended exchange, a client's or a leg's, gave."""
    last = exchange.attempts[-1] if exchange.attempts else None
    capture = exchange.capture.taken() if exchange.capture is not None else None
    failure = "" if result is Result.OK else exchange.failure or result.value
    if capture is not None and capture.cut:
        failure = "too_long"
    usage = exchange.usage
    return Leg(
        last.pool if last else "",
        last.endpoint if last else "",
        last.status if last else 0,
        failure,
        capture.answer if capture is not None and not failure else b"",
        exchange.content_at - exchange.started_at if exchange.content_at else -1.0,
        exchange.content_last_at - exchange.content_at if exchange.content_at else -1.0,
        now - exchange.started_at,
        usage.prompt_tokens,
        usage.completion_tokens,
    )


def request_of(origin: Exchange, now: float) -> Request:
    """A request that the forwarder can send again: the client's line, none of its fields."""
    request = Request()
    request.method, request.target = origin.request.method, origin.request.target
    request.headers, request.fields = [], {}
    request.body, request.http11, request.keep_alive = b"", True, True
    request.received_at = now
    return request


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
