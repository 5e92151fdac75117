"""A client's connection: whole requests one at a time to the handler, and the framing of its answers.

Owns keep-alive, pipelining order, slow-client deadlines and lingering close. Knows nothing of language models. The
handler answers through the connection it was given; while it works, the connection tells it about a client that left
(``gone``) or that reads too slowly (``pause`` and ``resume``).
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Final, Protocol

from gateway.errors import ApiError
from gateway.wire.http import DateHeader, Headers, Request, status_line
from gateway.wire.reading import ReadLimits, RequestReader
from gateway.wire.wheel import Alarm, Wheel

IDLE_S: Final = 75.0  # longer than the common load balancers' 60 s, so that they close first
STALLED_S: Final = 60.0  # a client that reads nothing while an answer waits for it
AHEAD_BYTES: Final = 64 * 1024  # read behind a waiting request, for the client's end: only a reader hears of it
LINGER_S: Final = 2.0  # after a refusal: read on, or unread bytes turn our answer into a reset (RFC 9112 §9.6)


class Work(Protocol):
    """What a handler returns for a request in progress."""

    def gone(self) -> None:
        """The client's connection is lost; the answer has no reader any more."""
        ...

    def pause(self) -> None:
        """The client reads slower than the answer comes."""
        ...

    def resume(self) -> None:
        """The client has caught up."""
        ...


class Handler(Protocol):
    """The application behind the wire."""

    def handle(self, connection: "ServerConnection", request: Request) -> Work | None:
        """Start to answer; may answer at once and return None."""
        ...

    def allow(self, headers: Headers) -> None:
        """May the client send the long body that belongs to this head? Raises ``ApiError`` if not."""
        ...

    def refuse(self, connection: "ServerConnection", error: ApiError, headers: Headers) -> None:
        """A request that the wire itself refused; must answer with ``connection.answer``. ``headers``: so far."""
        ...


class ServerContext:
    """What all connections of a worker share. ``soon`` runs a call in the loop's next turn."""

    __slots__ = ("clock", "connections", "date", "draining", "handler", "limits", "soon", "stalled_s", "wall", "wheel")

    def __init__(
        self,
        handler: Handler,
        wheel: Wheel,
        *,
        clock: Callable[[], float],
        wall: Callable[[], float],
        soon: Callable[[Callable[[], None]], object],
    ) -> None:
        self.soon = soon
        self.handler = handler
        self.wheel = wheel
        self.limits = ReadLimits()
        self.clock = clock
        self.wall = wall
        self.stalled_s = STALLED_S
        self.date = DateHeader()
        self.connections: set[ServerConnection] = set()
        self.draining = False

    def drain(self) -> None:
        """Close idle connections now; the busy ones close after their answer."""
        self.draining = True
        for connection in list(self.connections):
            connection.close_if_idle()


class ServerConnection(asyncio.Protocol):
    """One client connection. ``answering`` is the request in progress, ``bytes_out`` what its answer has sent."""

    __slots__ = (
        "_ahead_bytes",
        "_alarm",
        "_chunked",
        "_close_after",
        "_context",
        "_queue",
        "_reader",
        "_refused",
        "_work",
        "_writing_paused",
        "answering",
        "bytes_out",
        "peer",
        "transport",
    )

    def __init__(self, context: ServerContext) -> None:
        self._context = context
        self._reader = RequestReader(
            context.limits, context.clock, whole=self._whole, go_on=self._go_on, leave=context.handler.allow
        )
        self._queue: deque[Request] | None = None
        self._ahead_bytes = 0  # beyond ``AHEAD_BYTES`` the socket is not read until the queue is empty
        self._work: Work | None = None
        self._refused = False
        self._writing_paused = False
        self._chunked = False
        self._close_after = False
        self.answering: Request | None = None
        self.bytes_out = 0
        self._alarm = Alarm(self._on_due)
        self.peer = ""
        self.transport: Any = None

    @property
    def work(self) -> Work | None:
        """What the handler made of the request in progress."""
        return self._work

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client dialled in."""
        self.transport = transport
        peer = transport.get_extra_info("peername")
        self.peer = peer[0] if isinstance(peer, tuple) else ""
        self._context.connections.add(self)
        self._expect_within(self._context.limits.head_s)

    def connection_lost(self, exc: Exception | None) -> None:
        """The client left or we closed: tell the work, whatever it is waiting for."""
        self._context.connections.discard(self)
        self._context.wheel.discard(self._alarm)
        self._alarm.drop()
        self.transport = None
        self._queue = None
        self._reader.close()
        work, self._work = self._work, None
        if work is not None:
            work.gone()

    def eof_received(self) -> bool:
        """A half-closed client counts as gone: no OpenAI client half-closes, and a vanished one must free its slot."""
        return False

    def data_received(self, data: bytes) -> None:
        """Parse one read."""
        if self._refused:
            return
        reader = self._reader
        request = reader.again(data)
        if request is not None:
            if self.answering is None and not self._queue and self.transport is not None:
                self._begin(request)  # a closing transport reads no more, so this one is open
            else:
                self._whole(request)
            return
        behind = bool(self._queue)
        try:
            reader.feed(data)
        except ApiError as error:
            self._refuse(error)
            return
        if behind:
            self._came_behind(len(data))
        if reader.partial and self.answering is None and self.transport is not None:
            limits = self._context.limits
            if reader.in_body:
                self._expect_within(limits.body_s)
            else:
                self._expect_by(reader.received_at + limits.head_s)

    def pause_writing(self) -> None:
        """Our write buffer is full: stop the source, and give the client a limited time to read."""
        self._writing_paused = True
        self._expect_within(self._context.stalled_s)
        if self._work is not None:
            self._work.pause()

    def resume_writing(self) -> None:
        """The client reads again."""
        self._writing_paused = False
        if self._work is not None:
            self._work.resume()

    # what handlers call

    def answer(self, status: int, fields: bytes, body: bytes, *, close: bool = False) -> None:
        """One whole answer. ``fields`` are finished header lines with CRLF; Date, length and framing are added here."""
        transport = self.transport
        if transport is None:
            return
        request = self.answering
        context = self._context
        closing = close or context.draining or request is None or not request.head.keep_alive
        line, date, option = status_line(status), context.date.at(context.wall()), _connection_field(request, closing)
        sent = b"" if request is not None and request.head.method == b"HEAD" else body
        if status == 204:  # has no length (RFC 9110 §8.6)
            data = b"%s%s%s%s\r\n%s" % (line, fields, date, option, sent)
        else:
            data = b"%s%s%sContent-Length: %d\r\n%s\r\n%s" % (line, fields, date, len(body), option, sent)
        self.bytes_out = len(data)
        transport.write(data)
        self._done(closing)

    def begin(self, status: int, fields: bytes, length: int | None, first: bytes) -> None:
        """Start a streamed answer of ``length`` bytes, or chunked if None. ``first`` is body that is already here."""
        transport = self.transport
        request = self.answering
        if transport is None or request is None:
            return
        context = self._context
        head = request.head
        self._chunked = length is None and head.http11
        self._close_after = context.draining or not head.keep_alive or (length is None and not head.http11)
        framing = b""
        if length is not None:
            framing = b"Content-Length: %d\r\n" % length
        elif self._chunked:
            framing = b"Transfer-Encoding: chunked\r\n"
            first = b"%x\r\n%b\r\n" % (len(first), first) if first else b""
        data = b"%s%s%s%s%s\r\n%s" % (
            status_line(status),
            fields,
            context.date.at(context.wall()),
            framing,
            _connection_field(request, self._close_after),
            first,
        )
        self.bytes_out = len(data)
        transport.write(data)
        if self._writing_paused and self._work is not None:
            self._work.pause()  # an earlier answer is still unread, so no pause will be announced for this one

    def send(self, data: bytes) -> None:
        """More body of a streamed answer."""
        if self.transport is not None and data:
            self.bytes_out += len(data)
            self.transport.write(b"%x\r\n%b\r\n" % (len(data), data) if self._chunked else data)

    def pass_on(self, data: bytes, frame: bytes) -> None:
        """More body of a streamed answer, which lies here framed as one chunk too."""
        transport = self.transport
        if transport is not None:
            sent = frame if self._chunked else data
            self.bytes_out += len(data)
            transport.write(sent)

    def end(self, last: bytes = b"") -> None:
        """End of a streamed answer, with its last bytes."""
        if self.transport is None:
            return
        if self._chunked:
            last = b"%x\r\n%b\r\n0\r\n\r\n" % (len(last), last) if last else b"0\r\n\r\n"
        if last:
            self.bytes_out += len(last)
            self.transport.write(last)
        self._done(self._close_after)

    def abort(self) -> None:
        """Break the connection off: the answer cannot be finished and must not look finished."""
        self._work = None
        if self.transport is not None:
            self.transport.abort()

    def cut(self) -> None:
        """End now, whatever is under way; the work hears ``gone`` before this returns."""
        if self.transport is not None:
            self.transport.abort()
            self.connection_lost(None)

    def close_if_idle(self) -> None:
        """Close unless a request is being read, worked on or answered."""
        if self.transport is not None and self.answering is None and not self._reader.partial and not self._queue:
            self._close()

    # inside

    def _whole(self, request: Request) -> None:
        """The reader has a request: work on it, or queue it behind the one in progress (pipelining keeps order)."""
        if self.transport is None or self.transport.is_closing():
            return  # behind an answer that closes the connection: the client has been told to ask again
        if self.answering is None and not self._queue:
            self._begin(request)
            return
        if self._queue is None:
            self._queue = deque()
        elif self._queue:
            self._came_behind(len(request.body))
        self._queue.append(request)

    def _came_behind(self, size: int) -> None:
        """Read on behind a waiting request, or a client that leaves would keep its pool busy; but not without end."""
        paused = self._ahead_bytes > AHEAD_BYTES
        self._ahead_bytes += size
        if not paused and self._ahead_bytes > AHEAD_BYTES and self.transport is not None:
            self.transport.pause_reading()

    def _begin(self, request: Request) -> None:
        self._occupy(request)
        work = self._context.handler.handle(self, request)
        if self.answering is request:  # not answered yet
            self._work = work
            if work is not None and self._writing_paused:
                work.pause()

    def _occupy(self, request: Request) -> None:
        self.answering = request
        self.bytes_out = 0

    def _done(self, closing: bool) -> None:
        self._work = None
        self.answering = None
        if self._refused and (closing or not self._queue):
            self._linger()
        elif closing:
            self._close()
        elif self._queue:
            self._context.soon(self._next)  # not at once: a long pipeline would nest as deep as it is long
        elif self._context.draining and not self._reader.partial:
            self._close()  # the drain came after this answer's head, which could not announce the end
        else:
            self._expect_within(IDLE_S)  # later than the deadline before: costs no more than the assignment

    def _next(self) -> None:
        if self._queue and self.answering is None and self.transport is not None:
            request = self._queue.popleft()
            if not self._queue:
                if self._ahead_bytes > AHEAD_BYTES:
                    self.transport.resume_reading()
                self._ahead_bytes = 0
            self._begin(request)

    def _close(self) -> None:
        """Close once what was written has gone out, and do not wait for that for ever."""
        self.transport.close()
        self._expect_within(self._context.stalled_s)

    def _expect_within(self, seconds: float) -> None:
        self._expect_by(self._context.clock() + seconds)

    def _expect_by(self, due: float) -> None:
        alarm = self._alarm
        sooner = due < alarm.due
        alarm.due = due
        if sooner or not alarm.wheel_slot:
            self._context.wheel.add(alarm)

    def _on_due(self, now: float) -> None:
        """A deadline passed: a reader that stalls, a request that does not arrive, an idle connection."""
        if self.transport is None:
            return
        if self._writing_paused or self.transport.is_closing():
            self.transport.abort()  # the client does not read what is left of its answer
        elif self.answering is not None:
            self._expect_within(IDLE_S)  # the work has deadlines of its own
        elif self._reader.partial and not self._refused:
            self._refuse(ApiError(408, "request_timeout", "The request did not arrive in time.", close=True))
        else:
            self._close()

    def _go_on(self) -> None:
        if self.transport is not None and self.answering is None:
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def _refuse(self, error: ApiError) -> None:
        """Refuse a request that cannot be read; nothing after it on this connection can be trusted."""
        self._refused = True
        if self.transport is not None and self.answering is None:
            self._context.handler.refuse(self, error, self._reader.headers)
        # Else earlier requests are still to be answered: no answer is cut, and the connection closes after the last.

    def _linger(self) -> None:
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._expect_within(LINGER_S)


def _connection_field(request: Request | None, closing: bool) -> bytes:
    if closing:
        return b"Connection: close\r\n"
    return b"" if request is None or request.head.http11 else b"Connection: keep-alive\r\n"
