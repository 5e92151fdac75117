"""One client connection: HTTP/1.1 in, whole answers or chunked streams out.

Owns the socket's bytes. It knows no API: every complete request goes to the ``handle`` callable it was given, one at a
time. It reports a gone client at once. ``server`` makes connections; ``service`` and ``routes`` answer on them.
"""

import asyncio
import struct
from collections import deque
from collections.abc import Callable, Sequence
from socket import SO_LINGER, SOL_SOCKET
from typing import cast

import httptools

_REASONS = {
    200: "OK", 204: "No Content", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 405: "Method Not Allowed",
    413: "Content Too Large", 429: "Too Many Requests", 500: "Internal Server Error", 502: "Bad Gateway",
    503: "Service Unavailable", 504: "Gateway Timeout",
}  # fmt: skip
_STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\nserver: simulator\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
    b"cache-control: no-cache\r\ntransfer-encoding: chunked\r\n"
)


class Request:
    """A complete request. Header names are lower case; of repeated headers the last is kept."""

    __slots__ = ("body", "headers", "method", "path", "query")

    def __init__(self, method: str, path: str, query: str, headers: dict[str, str], body: bytes) -> None:
        self.method = method
        self.path = path
        self.query = query
        self.headers = headers
        self.body = body


class Connection(asyncio.Protocol):
    """The protocol of one connection.

    While a request is being answered further ones wait. ``on_gone`` is called once if the client leaves before the
    answer is complete; ``on_writable`` when a client that had stopped reading reads again.
    """

    def __init__(
        self, handle: Callable[["Connection", Request], None], registry: "set[Connection]", max_body_bytes: int
    ) -> None:
        self.handle = handle
        self.registry = registry
        self.max_body_bytes = max_body_bytes
        self.transport: asyncio.Transport | None = None
        self.paused = False
        self.on_gone: Callable[[], None] | None = None
        self.on_writable: Callable[[], None] | None = None
        self.idle_since: float | None = None
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpRequestParser(self)
        self._pending: deque[tuple[Request, bool]] = deque()
        self._busy = False
        self._keep = True
        self._reset_head()

    def _reset_head(self) -> None:
        self._url = b""
        self._headers: dict[str, str] = {}
        self._body: list[bytes] = []
        self._size = 0

    # -- asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Join the registry."""
        self.transport = cast(asyncio.Transport, transport)
        self.registry.add(self)
        self.idle_since = self._loop.time()

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell whoever answers that the client is gone."""
        self.registry.discard(self)
        self.transport = None
        self._pending.clear()
        gone, self.on_gone, self.on_writable = self.on_gone, None, None
        if gone is not None:
            gone()

    def data_received(self, data: bytes) -> None:
        """Feed the parser; bytes that are not HTTP get a 400 and the door."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self.close()
        except httptools.HttpParserError:
            if self.transport is not None and not self._busy:
                self._keep = False
                self.respond(400, b"Invalid HTTP request received.", "text/plain")

    def pause_writing(self) -> None:
        """The client does not read."""
        self.paused = True

    def resume_writing(self) -> None:
        """The client reads again."""
        self.paused = False
        if self.on_writable is not None:
            self.on_writable()

    # -- httptools callbacks

    def on_message_begin(self) -> None:
        """Start of a request."""
        self._reset_head()
        self.idle_since = None

    def on_url(self, url: bytes) -> None:
        """A part of the target."""
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header."""
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """Answer an Expect so that the client sends its body."""
        if self._headers.get("expect", "").lower() == "100-continue" and self.transport is not None:
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        """A part of the body; above the limit the rest is counted but not kept."""
        self._size += len(body)
        if self._size <= self.max_body_bytes:
            self._body.append(body)

    def on_message_complete(self) -> None:
        """Queue the request, and start on it if nothing else is being answered."""
        path, _, query = self._url.decode("latin-1").partition("?")
        body = b"".join(self._body) if self._size <= self.max_body_bytes else b""
        method = self._parser.get_method().decode()
        if self._size > self.max_body_bytes:
            path = "/too-large"
        self._pending.append((Request(method, path, query, self._headers, body), self._parser.should_keep_alive()))
        if not self._busy:
            self._next()

    # -- answering

    def respond(
        self, status: int, body: bytes, content_type: str = "application/json", headers: Sequence[tuple[str, str]] = ()
    ) -> None:
        """A whole answer; then the next request, or the end of the connection."""
        if self.transport is None:
            return
        self.transport.write(self._head(status, len(body), content_type, headers) + body)
        self._answered()

    def respond_partly(self, body: bytes, share: float) -> None:
        """The head of a whole answer and only a share of its body; the caller decides what becomes of the rest."""
        if self.transport is not None:
            cut = int(len(body) * share)
            self.transport.write(self._head(200, len(body), "application/json", ()) + body[:cut])

    def begin_stream(self, headers: Sequence[tuple[str, str]] = ()) -> bytes:
        """The head of an event stream, to be sent with its first event."""
        more = "".join(f"{name}: {value}\r\n" for name, value in headers).encode("latin-1")
        return _STREAM_HEAD + more + (b"" if self._keep else b"connection: close\r\n") + b"\r\n"

    def write(self, data: bytes) -> None:
        """Raw bytes of a running answer."""
        if self.transport is not None:
            self.transport.write(data)

    def end_stream(self, last: bytes = b"") -> None:
        """The last bytes and the terminating chunk; then the next request."""
        if self.transport is not None:
            self.transport.write(last + b"0\r\n\r\n")
            self._answered()

    def close(self) -> None:
        """Close in an orderly way, whatever has been sent."""
        self.on_gone = self.on_writable = None
        if self.transport is not None:
            self.transport.close()

    def reset(self) -> None:
        """Close with a TCP reset; what the client has not read is lost."""
        self.on_writable = None
        if self.transport is None:
            return
        sock = self.transport.get_extra_info("socket")
        if sock is not None:
            sock.setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()

    @property
    def idle(self) -> bool:
        """Whether no request is being read or answered."""
        return self.idle_since is not None

    def _head(self, status: int, size: int, content_type: str, headers: Sequence[tuple[str, str]]) -> bytes:
        more = "".join(f"{name}: {value}\r\n" for name, value in headers)
        if not self._keep:
            more += "connection: close\r\n"
        reason = _REASONS.get(status, "Status")
        return (
            f"HTTP/1.1 {status} {reason}\r\nserver: simulator\r\ncontent-type: {content_type}\r\n"
            f"content-length: {size}\r\n{more}\r\n"
        ).encode("latin-1")

    def _next(self) -> None:
        request, self._keep = self._pending.popleft()
        self._busy = True
        self.handle(self, request)

    def _answered(self) -> None:
        self.on_gone = self.on_writable = None
        self._busy = False
        if not self._keep:
            self.close()
        elif self._pending:
            self._loop.call_soon(self._continue)
        else:
            self.idle_since = self._loop.time()

    def _continue(self) -> None:
        if self._pending and not self._busy and self.transport is not None:
            self._next()


def chunk(data: bytes) -> bytes:
    """One chunk of a chunked body."""
    return b"%x\r\n%b\r\n" % (len(data), data)
