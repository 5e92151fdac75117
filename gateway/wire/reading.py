"""Bytes of a client's connection → whole requests within limits. No socket: the connection feeds it and obeys it.

Strict by llhttp: a request with two lengths, a length and a transfer coding, or an unknown coding is refused
(RFC 9112 §6.1, §6.3). Bodies are buffered whole, because routing needs them and because a re-framed body cannot
smuggle a request to a pool.
"""

from collections.abc import Callable
from typing import Final

import httptools

from gateway.errors import ApiError
from gateway.wire.http import Head, Headers, Request
from gateway.wire.repeats import Learning

_FRAMING = frozenset((b"content-length", b"transfer-encoding"))
LONG_BYTES: Final = 256 * 1024  # a longer body, or one that does not say how long it is, needs leave to be sent


class ReadLimits:
    """Limits of what a client may send, each with its reason. ``max_body_bytes`` follows the policy in force."""

    __slots__ = ("body_s", "head_s", "max_body_bytes", "max_head_bytes", "max_headers", "max_target_bytes")

    def __init__(self) -> None:
        self.max_target_bytes = 8 * 1024  # RFC 9112 §3 recommends at least 8000
        self.max_head_bytes = 64 * 1024  # as Node and Envoy: room for large trace baggage
        self.max_headers = 100  # as Apache; a real SDK sends about 20
        self.max_body_bytes = 32 * 1024 * 1024  # several base64 images
        self.head_s = 15.0  # from its first byte to its last, or heads that trickle in would hold all descriptors
        self.body_s = 120.0  # between two reads of a body: large uploads on thin lines go on


class RequestReader:
    """Parser state of one connection. ``partial`` tells whether a request has begun and is not whole yet.

    ``leave`` is asked with the head of a long body before any of it is kept, and raises ``ApiError`` to refuse it.
    """

    __slots__ = (
        "_body",
        "_body_bytes",
        "_clock",
        "_data",
        "_framed_by_length",
        "_go_on",
        "_head",
        "_head_bytes",
        "_headers",
        "_learning",
        "_leave",
        "_limits",
        "_offers_upgrade",
        "_parser",
        "_target",
        "_whole",
        "in_body",
        "partial",
        "received_at",
    )

    def __init__(
        self,
        limits: ReadLimits,
        clock: Callable[[], float],
        *,
        whole: Callable[[Request], None],
        go_on: Callable[[], None],
        leave: Callable[[Headers], None],
    ) -> None:
        self._limits = limits
        self._clock = clock
        self._whole = whole
        self._go_on = go_on
        self._leave = leave
        self._parser = httptools.HttpRequestParser(self)
        self._learning = Learning(secret=True)
        self._head: Head | None = None  # the one that the template was made of
        self._data = b""
        self._clear()

    def _clear(self) -> None:
        self._target = b""
        self._headers: Headers = []
        self._head_bytes = 0
        self._body: list[bytes] = []
        self._body_bytes = 0
        self._offers_upgrade = False
        self._framed_by_length = False
        self.received_at = 0.0
        self.partial = False
        self.in_body = False

    @property
    def headers(self) -> Headers:
        """Those of the request that is being read, as far as they have come."""
        return self._headers

    def close(self) -> None:
        """The connection is over: let go of it, and of the parser. Both hold this object, and such a cycle would wait
        for the collector, which runs rarely."""
        self._parser = self._whole = self._go_on = self._leave = None  # type: ignore[assignment]  # nothing comes any more

    def again(self, data: bytes) -> Request | None:
        """The request that this read is, if its head is the last one's again; else None, and ``feed`` must have it."""
        template, head = self._learning.template, self._head
        if template is None or head is None or self.partial:
            return None
        at = template.body_at(data)
        size = len(data) - at
        if at < 0 or size > LONG_BYTES or size > self._limits.max_body_bytes:
            return None
        self._learning.hit()
        return Request(head, data[at:], self._clock())

    def feed(self, data: bytes) -> None:
        """Parse one read; whole requests go to ``whole`` in order. Raises ``ApiError`` for what must be refused."""
        self._data = b"" if self.partial else data
        while data:
            try:
                self._parser.feed_data(data)
                return
            except httptools.HttpParserUpgrade as upgrade:
                # No upgrade is on offer here, and a server may ignore the field (RFC 9110 §7.8). The parser would take
                # the body for the other protocol's, so a fresh one reads the head again without the offer.
                data = self._head_without_offer() + data[upgrade.args[0] :]
                self._parser = httptools.HttpRequestParser(self)
                self._data = b""
                self._clear()
            except httptools.HttpParserCallbackError as error:
                cause = error.__context__
                if isinstance(cause, ApiError):
                    raise cause from None
                raise
            except httptools.HttpParserError as error:
                raise ApiError(400, "bad_request", f"Malformed HTTP request: {error}.", close=True) from None
            finally:
                self._data = b""

    # httptools callbacks

    def on_message_begin(self) -> None:
        """First byte of a request."""
        self.received_at = self._clock()
        self.partial = True

    def on_url(self, url: bytes) -> None:
        """A part of the request target."""
        self._target += url
        if len(self._target) > self._limits.max_target_bytes:
            limit = self._limits.max_target_bytes
            raise ApiError(414, "uri_too_long", f"The request target is longer than {limit} bytes.", close=True)

    def on_header(self, name: bytes, value: bytes) -> None:
        """One field, as it came. Those behind the body (trailers) are dropped: taken for the head's they would pass by
        whatever a front made of that (RFC 9110 §6.5.1)."""
        if not self.in_body:
            self._headers.append((name.lower(), value))
        self._head_bytes += len(name) + len(value) + 4
        limits = self._limits
        if self._head_bytes > limits.max_head_bytes or len(self._headers) > limits.max_headers:
            message = f"The head is over {limits.max_head_bytes} bytes or {limits.max_headers} fields."
            raise ApiError(431, "headers_too_large", message, close=True)

    def on_headers_complete(self) -> None:
        """The head is whole: refuse what can be refused before its body."""
        if self._parser.should_upgrade():
            self._offers_upgrade = True
            return
        expect = b""
        long = named = False
        for name, value in self._headers:
            if name == b"host":
                if named:  # RFC 9112 §3.2: what stands in front may have gone by the other one
                    raise ApiError(400, "bad_request", "The request has two Host fields.", close=True)
                named = True
            elif name == b"content-length":
                length = int(value)
                if length > self._limits.max_body_bytes:
                    raise self._too_large()
                long = length > LONG_BYTES
                self._framed_by_length = True
            elif name == b"transfer-encoding":
                if value.strip().lower() != b"chunked":  # the parser looks at the last coding alone
                    raise ApiError(400, "bad_request", "The only transfer coding here is 'chunked'.", close=True)
                long = True
            elif name == b"expect":
                expect = value.strip().lower()
        old = self._parser.get_http_version() == "1.0"
        if not named and not old:  # the same section: without it nobody can say whom the request is meant for
            raise ApiError(400, "bad_request", "A request of HTTP/1.1 needs a Host field.", close=True)
        if long:
            self._leave(self._headers)
        if expect and old:
            pass  # an older client does not know interim answers (RFC 9110 §10.1.1)
        elif expect == b"100-continue":
            self._go_on()
        elif expect:
            raise ApiError(417, "expectation_failed", "Only 'Expect: 100-continue' is supported.", close=True)
        self.in_body = True

    def on_body(self, data: bytes) -> None:
        """A part of the body."""
        self._body_bytes += len(data)
        if self._body_bytes > self._limits.max_body_bytes:
            raise self._too_large()
        self._body.append(data)

    def on_message_complete(self) -> None:
        """A whole request."""
        if self._offers_upgrade:
            return
        parser = self._parser
        head = Head(
            parser.get_method(),
            self._target if self._target.startswith(b"/") else _origin_form(self._target),
            [pair for pair in self._headers if pair[0] not in _FRAMING],
            http11=parser.get_http_version() == "1.1",
            keep_alive=parser.should_keep_alive(),
        )
        request = Request(head, self._body[0] if len(self._body) == 1 else b"".join(self._body), self.received_at)
        plain = self._framed_by_length and head.keep_alive and head.http11 and b"expect" not in head.fields
        data, self._data = self._data, b""
        self._clear()
        # Only a message that begins the read, or what is taken for its head would be another's.
        if plain and data and self._learning.learn(data):
            self._head = head
        elif not head.keep_alive:
            self._head = None  # nothing may follow
        self._whole(request)

    def _head_without_offer(self) -> bytes:
        """The head as it came, less the offer to upgrade."""
        method = self._parser.get_method()
        if method == b"CONNECT":
            raise ApiError(405, "method_not_allowed", "This is no forward proxy.", close=True)
        lines = [b"%b %b HTTP/%b\r\n" % (method, self._target, self._parser.get_http_version().encode())]
        for name, value in self._headers:
            if name == b"connection":
                kept = b", ".join(token for token in value.split(b",") if token.strip().lower() != b"upgrade")
                lines.append(b"Connection: %b\r\n" % kept)
            elif name != b"upgrade":
                lines.append(b"%b: %b\r\n" % (name, value))
        return b"".join((*lines, b"\r\n"))

    def _too_large(self) -> ApiError:
        limit = self._limits.max_body_bytes
        return ApiError(413, "request_too_large", f"The request body is larger than {limit} bytes.", close=True)


def _origin_form(target: bytes) -> bytes:
    """Path and query of a target in absolute form, which a server must take too (RFC 9112 §3.2.2); any other as it is.
    Whom it names does not count: like the Host field it is the client's word."""
    scheme, found, rest = target.partition(b"://")
    if not found or scheme.lower() not in (b"http", b"https"):
        return target
    ends = [at for at in (rest.find(b"/"), rest.find(b"?")) if at >= 0]
    path = rest[min(ends) :] if ends else b""
    return path if path.startswith(b"/") else b"/" + path
