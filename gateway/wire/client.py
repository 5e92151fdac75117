"""A connection to one endpoint of a pool: send one request, report its answer as it comes.

The listener hears ``on_head`` once, ``on_body`` for every read with body bytes, then exactly one of ``on_end`` and
``on_lost``; of a whole answer in one read ``on_whole`` alone, if it takes that. After the end the connection may be
used again if ``reusable``. ``close`` ends it at once and silently.
"""

import asyncio
from typing import Any

import httptools

from gateway.wire.http import AnswerHead, Headers, chunk_at
from gateway.wire.listener import Listener
from gateway.wire.repeats import KnownAnswers

_FRAMING = frozenset((b"content-length", b"transfer-encoding"))
MAX_HEAD_BYTES = 128 * 1024  # a pool's answer head beyond this is broken, and must not eat memory


class ClientConnection(asyncio.Protocol):
    """One kept-alive connection to an endpoint."""

    __slots__ = (
        "_between_chunks",
        "_complete",
        "_data",
        "_fed",
        "_head_bytes",
        "_headers",
        "_keep_alive",
        "_known",
        "_length",
        "_listener",
        "_parser",
        "_parts",
        "_paused",
        "_started",
        "_status",
        "_until_close",
        "idle_since",
        "on_idle_lost",
        "transport",
        "used",
    )

    def __init__(self, known: KnownAnswers | None = None) -> None:
        self._known = known if known is not None else KnownAnswers()
        self.transport: Any = None
        self.idle_since = 0.0
        self.used = 0
        self.on_idle_lost: Any = None
        self._listener: Listener | None = None
        self._reset()

    def _reset(self) -> None:
        self._parser: Any = httptools.HttpResponseParser(self)
        self._headers: Headers = []
        self._parts: list[bytes] = []
        self._data = b""  # the read in hand, if it begins an answer
        self._head_bytes = 0
        self._length: int | None = None
        self._status = 0
        self._fed = False  # the parser has seen a byte of this answer
        self._between_chunks = False
        self._started = False
        self._complete = False
        self._keep_alive = False
        self._until_close = False
        self._paused = False

    @property
    def alive(self) -> bool:
        """Connected and not closing."""
        return self.transport is not None and not self.transport.is_closing()

    @property
    def reusable(self) -> bool:
        """The last answer ended cleanly, the whole request was sent, and the server keeps the connection open.

        An answer may come before the request is out (413 at the sight of the head). Whether the server then reads the
        rest as that request's body or as the next request is not ours to find out.
        """
        if not self._complete or not self._keep_alive or self.transport is None:
            return False
        return not self.transport.get_write_buffer_size()

    def send(self, head: bytes, body: bytes, listener: Listener) -> None:
        """Send one whole request, of which ``head`` may be all; the answer goes to ``listener``."""
        self._listener = listener
        self._fed = self._between_chunks = self._started = self._complete = False
        self.used += 1
        if not body:
            self.transport.write(head)
        else:
            self.transport.writelines((head, body))

    def close(self) -> None:
        """Close now, without a word to the listener: the pool sees the request abandoned."""
        self._listener = None
        self._keep_alive = False
        if self.transport is not None:
            self.transport.abort()

    def pause(self) -> None:
        """Stop reading: the client behind us is slower than the pool."""
        if self.alive:
            self._paused = True
            self.transport.pause_reading()

    def resume(self) -> None:
        """Read again."""
        self._paused = False
        if self.alive:
            self.transport.resume_reading()

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Connected."""
        self.transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        """The endpoint closed, or we did."""
        self.transport = None
        self._parser = None  # it holds this object's methods: a cycle, which only the collector would free
        listener, self._listener = self._listener, None
        if listener is None:
            if self.on_idle_lost is not None:
                self.on_idle_lost(self)
            return
        if self._until_close and self._started and exc is None:
            self._complete = True
            listener.on_end()  # RFC 9112 §6.3 (8): without length or chunks the close is the end
        else:
            listener.on_lost(self._started, "reset" if exc is not None else "closed")

    def eof_received(self) -> bool:
        """Close our side too."""
        return False

    def data_received(self, data: bytes) -> None:
        """Parse one read and report it in order: head, body, end."""
        listener = self._listener
        if listener is None:
            self.close()  # bytes nobody asked for: the connection is out of step
            return
        if self._between_chunks:
            at = chunk_at(data)
            if at > 0:  # between two chunks the parser need not see a whole one
                listener.on_chunk(data[at:-2], data)
                return
        elif not self._fed and self._whole_answer(listener, data):
            return
        fresh = not self._started
        self._data = b"" if self._fed else data
        self._fed = True
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._fail("upgraded without being asked")
            return
        except httptools.HttpParserError as error:
            if not self._complete:
                self._report(fresh)  # what came before the fault in this read is as good as in a read of its own
                self._fail(f"not HTTP: {error.__context__ or error}")  # where we refused it, why
                return
            self._keep_alive = False  # the answer is whole; what follows it is out of step, and so is the connection
        self._report(fresh)

    def pause_writing(self) -> None:
        """The pool reads slower than we send."""
        if self._listener is not None:
            self._listener.on_writable(False)

    def resume_writing(self) -> None:
        """The pool has caught up."""
        if self._listener is not None:
            self._listener.on_writable(True)

    def _whole_answer(self, listener: Listener, data: bytes) -> bool:
        """A read that is one whole answer with the head that this endpoint's answers had last."""
        known = self._known
        template, head = known.learning.template, known.head
        if template is None or head is None:
            return False
        at = template.body_at(data)
        if at < 0:
            return False
        known.learning.hit()
        self._fed = self._started = self._complete = self._keep_alive = True
        self._until_close = False
        body = data[at:]
        self._listener = None  # what the listener does at the end may send the next request here
        if listener.on_whole(head, body):
            return True
        self._listener = listener
        listener.on_head(head, len(body))
        if body and self._listener is listener:
            listener.on_body(body)
        if self._listener is listener:
            self._end(listener)
        return True

    def _report(self, fresh: bool) -> None:
        listener = self._listener
        if listener is None or self._status == 0:
            return
        if fresh and self._started:
            listener.on_head(self._head(), self._length)
        if self._parts and self._listener is listener:
            parts, self._parts = self._parts, []
            listener.on_body(parts[0] if len(parts) == 1 else b"".join(parts))
        if self._complete and self._listener is listener:
            self._end(listener)

    def _head(self) -> AnswerHead:
        """The head that the parser has read; remembered if this read is a whole answer that framed itself by length."""
        head = AnswerHead(self._status, [pair for pair in self._headers if pair[0] not in _FRAMING])
        if self._complete and self._keep_alive and self._length is not None and self._data:
            known = self._known
            if known.learning.learn(self._data):
                known.head = head
        return head

    def _end(self, listener: Listener) -> None:
        self._listener = None
        self._headers = []
        self._head_bytes = 0
        self._status = 0
        if self._paused:
            self.resume()  # or the next answer on this connection would never be read
        listener.on_end()

    def _fail(self, reason: str) -> None:
        listener, self._listener = self._listener, None
        self._keep_alive = False
        if self.transport is not None:
            self.transport.abort()
        if listener is not None:
            listener.on_lost(True, reason)

    # httptools callbacks

    def on_message_begin(self) -> None:
        """First byte of an answer; a second message behind a finished one is out of step."""
        if self._complete:
            raise ValueError("unsolicited message")

    def on_header(self, name: bytes, value: bytes) -> None:
        """One field of the head, or a trailer (dropped: it comes after the head was reported)."""
        self._head_bytes += len(name) + len(value) + 4
        if self._head_bytes > MAX_HEAD_BYTES:
            raise ValueError("answer head too large")
        if not self._started:
            self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        """The head is whole."""
        status = self._parser.get_status_code()
        if 100 <= status < 200:
            self._headers = []
            return
        if status < 100:
            raise ValueError("no such status")
        self._status = status
        self._started = True
        framed = status in (204, 304)
        self._length = None
        chunked = False
        for name, value in self._headers:
            if name == b"content-length":
                self._length = int(value)
            elif name == b"transfer-encoding":
                chunked = True
        if chunked or framed:
            self._length = None
        framed = framed or chunked or self._length is not None
        self._until_close = not framed
        self._keep_alive = self._parser.should_keep_alive() and framed

    def on_body(self, data: bytes) -> None:
        """A piece of body."""
        self._parts.append(data)

    def on_chunk_header(self) -> None:
        """A chunk begins."""
        self._between_chunks = False

    def on_chunk_complete(self) -> None:
        """A chunk has ended, and another one is to come."""
        self._between_chunks = True

    def on_message_complete(self) -> None:
        """End by framing; an interim 1xx answer ends here too and does not count."""
        self._between_chunks = False
        if self._started:
            self._complete = True
