"""Bytes of what the gateway says: its own errors, its headers, and which of a pool's fields reach the client."""

from typing import Final

import orjson

from gateway.core.retry import of_status, status_of_error
from gateway.errors import ApiError, error_body
from gateway.model.enums import Api
from gateway.wire.http import HOP_BY_HOP, AnswerHead, Headers, named_by_connection

JSON = b"Content-Type: application/json\r\n"
SSE_FIELDS = b"Cache-Control: no-cache\r\nX-Accel-Buffering: no\r\n"
DONE = b"data: [DONE]\n\n"
ENDS_WITH_DONE: Final = frozenset({Api.CHAT, Api.COMPLETIONS})

_ANTHROPIC: Final = b"/v1/messages"

# What a pool says about itself or its framing; Date and framing are made anew, and Server is not ours to repeat.
_NOT_FROM_POOL = HOP_BY_HOP | {b"date", b"server"}

# What only the policy may say: which origins may read an answer, what is left of the caller's limits, what was decided.
# A pool may be a gateway itself, and its limits are those of our key.
_OURS: Final = (b"access-control-", b"x-ratelimit-", b"x-quantgate-")

# What a client says that is meant for the gateway or for one connection. Cookies and credentials never leave it.
_NOT_TO_POOL = HOP_BY_HOP | {
    b"host",
    b"authorization",
    b"x-api-key",
    b"api-key",
    b"cookie",
    b"expect",
    b"accept-encoding",  # answers are looked at, so they are asked for uncompressed
    b"content-encoding",  # the body is decoded before it is read
    b"forwarded",
    b"origin",
    b"referer",
    b"x-request-id",  # goes on as a part of ours
}


def clean(value: str) -> bytes:
    """A header value from text that may hold anything: printable ASCII without line ends."""
    return "".join(c if " " <= c <= "~" else "?" for c in value).encode()


def error_fields(error: ApiError) -> bytes:
    """Header lines of one of the gateway's own errors."""
    return JSON + b"".join(b"%s: %s\r\n" % (name.encode(), clean(value)) for name, value in error.headers)


def error_for(target: bytes, body: bytes) -> bytes:
    """The error ``body``, in OpenAI's shape, as clients of this request target read it. Anthropic's go by a ``type``
    beside the error, and some of them show no message without it."""
    return _typed(body) if target.startswith(_ANTHROPIC) else body


def _typed(body: bytes) -> bytes:
    return b'{"type":"error",%b' % body[1:]


def fields_to_client(headers: Headers, *, sse: bool) -> bytes:
    """A pool's fields as header lines for the client, without hop-by-hop, framing, Date, Server and ours."""
    dropped = _NOT_FROM_POOL
    lines = []
    for name, value in headers:
        if name == b"connection":
            dropped = dropped | named_by_connection(headers)
        if name in dropped or name.startswith(_OURS):
            continue
        if sse and name in (b"cache-control", b"x-accel-buffering"):
            continue
        lines.append(b"%b: %b\r\n" % (name, value))
    if sse:
        lines.append(SSE_FIELDS)
    return b"".join(lines)


def fields_to_pool(headers: Headers) -> bytes:
    """A client's fields as header lines for a pool, without credentials, hop-by-hop and the gateway's own."""
    dropped = _NOT_TO_POOL
    lines = []
    for name, value in headers:
        if name in dropped:
            if name == b"connection":
                named = named_by_connection(headers)
                if named:
                    return fields_to_pool([(n, v) for n, v in headers if n not in named and n != b"connection"])
            continue
        if name.startswith((b"x-quantgate-", b"x-forwarded-")):
            continue
        lines.append(b"%b: %b\r\n" % (name, value))
    return b"".join(lines)


def told_error(target: bytes, error: dict[str, object]) -> tuple[int, bytes]:
    """Status and JSON body of an error that a pool sent under a 200; no body where it cannot be written again (half a
    surrogate pair, an integer beyond 64 bits): the client gets the status in our words."""
    status = status_of_error(error)
    try:
        return status, error_for(target, orjson.dumps({"error": error}))
    except TypeError:
        return status, b""


def broken_event(api: Api, message: str) -> bytes:
    """What a stream that breaks off after output says last. Clients of the Messages and Responses APIs go by an event's
    name and type, and pass over one that has neither: to them the answer would just end."""
    body = error_body(502, "upstream_truncated", message)
    if api is Api.MESSAGES:
        return b"event: error\ndata: %b\n\n" % _typed(body)
    if api is Api.RESPONSES:
        flat = orjson.dumps({"type": "error", "code": "upstream_truncated", "message": message, "param": None})
        return b"event: error\ndata: %b,%b\n\n" % (flat[:-1], body[1:])
    event = b"data: %b\n\n" % body
    return event + DONE if api in ENDS_WITH_DONE else event


class Passed:
    """What an answer's head comes to; answers with the same head share it. ``opaque``: compressed, or no text by its
    type (some embeddings), so nothing is expected of its bytes."""

    __slots__ = ("failure", "fields", "opaque", "streamed")

    def __init__(self, head: AnswerHead) -> None:
        content_type = b""
        encoded = False
        for name, value in head.headers:
            if name == b"content-type":
                content_type = value.lower()
            elif name == b"content-encoding":
                encoded = value.lower() != b"identity"
        self.failure = of_status(head.status)
        self.streamed = content_type[:17] == b"text/event-stream"
        self.opaque = encoded or not (not content_type or content_type[:5] == b"text/" or b"json" in content_type)
        self.fields = fields_to_client(head.headers, sse=self.streamed)


def passed_of(head: AnswerHead) -> Passed:
    """What this head comes to, made once."""
    passed = head.derived
    if not isinstance(passed, Passed):
        passed = head.derived = Passed(head)
    return passed
