"""One attempt's answer on its way to the client.

Until something has reached the client the attempt may fail without a trace and another endpoint may be tried; from the
first content on, the answer is this endpoint's for good (routers that switch later repeat or lose text). A stream that
breaks then ends in an error event, never in an invented finish reason.

SSE is looked at beside the path. Only before the first content are events parsed; afterwards bytes are passed on as
they come, and the scanner keeps what the outcome needs.
"""

from typing import TYPE_CHECKING, Final

from gateway.core import sse
from gateway.core.answer import TAIL, AnswerInfo, end_info
from gateway.dataplane.answers import DONE, ENDS_WITH_DONE, broken_event, passed_of
from gateway.dataplane.attempt import State
from gateway.dataplane.collected import COLLECT_MOST, Collected, cut_off, gave_up
from gateway.dataplane.exchange import Exchange
from gateway.dataplane.fleet import EndpointView, PoolView
from gateway.model.enums import Failure, Result
from gateway.wire.http import AnswerHead
from gateway.wire.listener import pass_on

if TYPE_CHECKING:
    from gateway.dataplane.forward import Forwarder

HOLD_MOST: Final = 64 * 1024  # role-only events and comments held before the first content …
HOLD_S: Final = 1.0  # … and for how long: then the client gets its keep-alives


class Relay(Collected):
    """The listener of one attempt's connection."""

    __slots__ = ("_scanner", "_stripper")

    def __init__(self, forwarder: "Forwarder", exchange: Exchange, pool: PoolView, view: EndpointView) -> None:
        super().__init__(forwarder, exchange, pool, view)
        self._scanner: sse.Scanner | None = None
        self._stripper: sse.UsageStripper | None = None

    # wire.client.Listener

    def on_head(self, head: AnswerHead, length: int | None) -> None:
        """The answer begins: what kind of answer it is decides how it is passed on."""
        passed = passed_of(head)
        self._read_head(head, passed)
        self._length = length
        if passed.failure is None and passed.streamed:
            facts = self.exchange.facts
            if not facts.stream:
                self.failed(Failure.BAD_ANSWER, "The pool streamed although a whole answer was asked for.")
                return
            self.state = State.HOLDING
            self._scanner = sse.Scanner()
            if self.exchange.strips_usage:
                self._stripper = sse.UsageStripper()
        else:
            self.state = State.COLLECTING
            self.expect_bytes(self.forwarder.clock())

    def on_whole(self, head: AnswerHead, body: bytes) -> bool:
        """The usual answer of a request without a stream: nothing is waited for any more, so no deadline is set."""
        passed = passed_of(head)
        if len(body) > COLLECT_MOST or (passed.failure is None and passed.streamed):
            return False
        self._read_head(head, passed)
        self.state = State.COLLECTING
        self.body.append(body)
        self._end_collected()
        return True

    def on_body(self, data: bytes) -> None:
        """Bytes of the answer, as they come."""
        if self.state is State.FLOWING:
            self._flow(data, b"")
        elif self.state is State.HOLDING:
            self._hold(data)
        elif self.state is State.COLLECTING:
            self._collect(data)

    def on_chunk(self, data: bytes, frame: bytes) -> None:
        """The usual piece of a stream: it goes on as it is framed."""
        if self.state is State.FLOWING:
            self._flow(data, frame)
        else:
            self.on_body(data)

    def on_end(self) -> None:
        """The answer is complete by its framing."""
        if self.state is State.COLLECTING:
            self._end_collected()
        elif self.state is State.HOLDING:
            self._end_held()
        elif self.state is State.FLOWING:
            self._end_flowing()

    def on_lost(self, answered: bool, reason: str) -> None:
        """The connection ended before the answer did."""
        connection, self.connection = self.connection, None
        if not answered and connection is not None and connection.used > 1 and self.state is State.WAITING:
            # The server closed a kept-alive connection just as it was taken (RFC 9112 §9.3.1). No byte of an answer
            # was seen, so the request goes once more, on a fresh connection.
            self.dial()
        elif self.state is State.FLOWING:
            self._break(Failure.BROKEN_STREAM, "The pool's connection broke off in the middle of the answer.")
        elif self.state is not State.OVER:
            bad = reason.startswith("not HTTP")
            failure = Failure.BAD_ANSWER if bad else Failure.BROKEN_STREAM
            self.failed(failure, f"The pool's answer ended early ({reason}).")

    def on_left(self) -> Result | None:
        """The client left: what was passed on until then was output. What came of the answer, if its last word was
        said: SDKs hang up at the terminator, or at an error, and do not wait for the end of its framing."""
        if self._scanner is None or self.state is not State.FLOWING:
            return None
        info = self._read_usage(self._scanner)
        return self._ended(info) if info.done or gave_up(info) else None

    def on_writable(self, writable: bool) -> None:
        """The pool reads slower than we sent: the body is whole in memory already, so there is nothing to stop."""

    def on_due(self, now: float) -> None:
        """A deadline of the attempt passed."""
        if self.state is State.DIALLING:
            self.failed(Failure.CONNECT, "The pool's endpoint did not accept a connection in time.")
        elif self.state is State.HOLDING and self.body and now < self.first_byte_due:
            self._commit(None, now)  # the client has waited long enough; proxies on its way want to see keep-alives
        elif self.state in (State.WAITING, State.HOLDING):
            self.failed(Failure.FIRST_BYTE_TIMEOUT, "The pool did not begin to answer in time.")
        elif self.state is State.COLLECTING:
            self.failed(self.stalled(now), "The pool stopped in the middle of its answer.")
        elif self.state is State.FLOWING and self._begun():
            self._break(self.stalled(now), "The pool stopped in the middle of its answer.")
        elif self.state is State.FLOWING:
            self._break(Failure.FIRST_BYTE_TIMEOUT, "The pool did not begin to answer in time.")

    # on the way

    def _hold(self, data: bytes) -> None:
        scanner = self._scanner
        assert scanner is not None  # noqa: S101 - set together with the state
        now = self.forwarder.clock()
        scanner.feed(data)
        if not self.body:
            self.expect(min(self.first_byte_due, now + HOLD_S))
        self.body.append(data)
        self.body_bytes += len(data)
        if scanner.error is not None:
            self._error_event(scanner.error)
        elif scanner.content or self.body_bytes > HOLD_MOST:
            if scanner.content:
                self._content_began(scanner, now)
            self._commit(None, now)

    def _commit(self, length: int | None, now: float) -> None:
        """From here on the answer is this endpoint's: send the head and what was held."""
        exchange = self.exchange
        self.state = State.FLOWING
        if self._begun():
            self.expect_bytes(now)
        else:
            self.expect(self.first_byte_due)
        held, self.body = b"".join(self.body), []
        if exchange.capture is not None:
            exchange.capture.add(held)
        self.forget_request()
        if self._scanner is None:
            self.body = [held[-TAIL:]]
        if self._stripper is not None:
            held = self._stripper.feed(held)
        exchange.connection.begin(self.status, self._fields(), length, held)

    def _flow(self, data: bytes, frame: bytes) -> None:
        scanner, exchange = self._scanner, self.exchange
        now = self.forwarder.clock()
        moved = True
        passed = data
        if scanner is not None:
            moved = scanner.feed(data) > 0 or not scanner.at_rest
            if self._stripper is not None:
                passed = self._stripper.feed(data, one_event=scanner.one_event)
            if not moved:
                pass  # comments: the connection lives, which says nothing of the engine behind it
            elif exchange.content_at:
                gap_s = now - exchange.content_last_at
                if gap_s > exchange.longest_gap_s:  # noqa: PLR1730 - once per event; a call of max costs four times this
                    exchange.longest_gap_s = gap_s
                exchange.content_last_at = now
            elif scanner.content:
                self._content_began(scanner, now)
        else:
            end = data if len(data) >= TAIL else self.body[0] + data
            self.body[0] = end[-TAIL:]
        if moved:
            self.due = min(now + self.idle_s, self.total_due)
        if exchange.capture is not None:
            exchange.capture.add(data)
        if frame and passed is data:
            pass_on(exchange.connection, data, frame)
        else:
            exchange.connection.send(passed)

    def _content_began(self, scanner: sse.Scanner, now: float) -> None:
        exchange = self.exchange
        exchange.content_at = exchange.content_last_at = now
        exchange.content_events = scanner.events

    # the end

    def _end_held(self) -> None:
        """A stream that ended before any content."""
        scanner = self._scanner
        assert scanner is not None  # noqa: S101 - set together with the state
        info = scanner.info()
        if info.error is not None:
            self._error_event(info.error)
        elif gave_up(info):
            self.failed(Failure.ERROR_EVENT, "The pool gave the request up before its answer began.")
        elif info.finish_reason or info.done:
            self._commit(None, self.forwarder.clock())
            self._end_flowing()
        else:
            self.failed(Failure.BROKEN_STREAM, "The pool's stream ended before it began.")

    def _end_flowing(self) -> None:
        exchange, scanner = self.exchange, self._scanner
        last = b""
        if scanner is not None:
            info = self._read_usage(scanner)
            if not info.done and not info.finish_reason and info.error is None:
                self._break(Failure.BROKEN_STREAM, "The pool's stream ended without a finish reason.")
                return
            last = self._stripper.flush() if self._stripper is not None else b""
            if not scanner.at_boundary:
                last += b"\n\n"  # an event exists only at its blank line, the last one too
            if not info.done and exchange.api in ENDS_WITH_DONE:
                last += DONE  # some runtimes forget it, and clients wait for it
        else:
            exchange.usage = end_info(self.body[0])
            if self._length is None and cut_off(self.body[0], self._passed, exchange.api):
                self._break(Failure.BROKEN_STREAM, "The pool's answer ended early.")
                return
        result = self._ended(exchange.usage)
        exchange.connection.end(last)
        exchange.finish(result, self.status)

    def _break(self, failure: Failure, message: str) -> None:
        """The answer breaks off after content reached the client: say so in the stream, and end it."""
        exchange, scanner = self.exchange, self._scanner
        if scanner is not None and scanner.info().done:
            self._end_flowing()  # its last word was said: what lacks is the end of the framing
            return
        self.forwarder.record(self, failure)
        if scanner is None:
            exchange.connection.abort()
        else:
            self._read_usage(scanner)
            last = self._stripper.flush() if self._stripper is not None else b""
            # An event that the pool left open is closed first, or a client would read it and the error as one.
            opening = b"" if scanner.at_boundary else b"\n\n"
            exchange.connection.end(last + opening + broken_event(exchange.api, message))
        exchange.finish(Result.UPSTREAM_TRUNCATED, self.status)

    def _begun(self) -> bool:
        """Whether anything but comments has come."""
        scanner = self._scanner
        return scanner is None or scanner.events > 0 or not scanner.at_rest

    def _read_usage(self, scanner: sse.Scanner) -> AnswerInfo:
        info = self.exchange.usage = scanner.info()
        self.exchange.events = scanner.events
        return info
