"""An answer that is collected before any of it goes on: a whole one, an error, or a page that somebody else sent.

The base of ``relay.Relay``, which passes on what cannot wait. Load balancers and relays say 200 over an empty body or a
page of HTML, errors come under a 200 too, and where the connection's close is the end, half an answer has a whole one's
framing: none of these is an answer, and as long as nothing has reached the client another endpoint may give one.
"""

from typing import TYPE_CHECKING, Final

from gateway.core.answer import AnswerInfo, answer_info, is_document
from gateway.core.retry import is_own_fault, of_status
from gateway.dataplane.answers import ENDS_WITH_DONE, Passed, told_error
from gateway.dataplane.attempt import Attempt
from gateway.dataplane.exchange import Exchange
from gateway.dataplane.fleet import EndpointView, PoolView
from gateway.model.enums import Api, Failure, Result
from gateway.wire.http import AnswerHead, Headers
from gateway.wire.listener import answer

if TYPE_CHECKING:
    from gateway.dataplane.forward import Forwarder

COLLECT_MOST: Final = 256 * 1024  # a whole answer up to this size is held, so that a broken one can be tried again

# Where ``stream: true`` is a promise. Audio models may ignore it.
_STREAMED: Final = ENDS_WITH_DONE | {Api.RESPONSES, Api.MESSAGES}
_GIVEN_UP: Final = ("abort", "error")  # as reasons to finish; runtimes send them under a 200 when an engine stops
_SSE_STARTS: Final = (b"data:", b"event")  # a stream under a wrong type: clients that asked for one can read it


class Collected(Attempt):
    """One try at one endpoint, as far as its answer is held. ``failure``: what its status stands for."""

    __slots__ = ("_length", "_passed", "body", "body_bytes", "failure", "headers")

    def __init__(self, forwarder: "Forwarder", exchange: Exchange, pool: PoolView, view: EndpointView) -> None:
        super().__init__(forwarder, exchange, pool, view)
        self.headers: Headers = []
        self.body: list[bytes] = []
        self.body_bytes = 0
        self.failure: Failure | None = None
        self._length: int | None = None
        self._passed: Passed | None = None

    def _commit(self, length: int | None, now: float) -> None:
        """From here on the answer is this endpoint's."""
        raise NotImplementedError

    def _read_head(self, head: AnswerHead, passed: Passed) -> None:
        self._passed = passed
        self.status, self.headers = head.status, head.headers
        self.failure = passed.failure

    def _collect(self, data: bytes) -> None:
        self.body_bytes += len(data)
        now = self.forwarder.clock()
        if self.failure is not None and self.body_bytes > COLLECT_MOST:
            self._end_collected()  # nobody needs a longer error text, and some never end
            return
        self.body.append(data)
        if self.body_bytes > COLLECT_MOST:
            self._commit(self._length, now)
        else:
            self.expect_bytes(now)

    def _end_collected(self) -> None:
        if self.failure is not None:
            if self.failure is Failure.STATUS_4XX and is_own_fault(self.status, b"".join(self.body)):
                self.failure = Failure.STATUS_5XX
            self.forwarder.failed(self, self.failure, "")
            return
        exchange = self.exchange
        body = self.body[0] if len(self.body) == 1 else b"".join(self.body)
        passed, info = self._passed, answer_info(body, chat=exchange.api in ENDS_WITH_DONE)
        assert passed is not None  # noqa: S101 - the head came first
        if info.error is not None and is_error(info, exchange.api):
            self._error_event(info.error)  # an error is one however it is dressed
            return
        if not info.done or exchange.facts.stream:
            fault = fault_of(body, info, passed, exchange.api, stream=exchange.facts.stream)
            if fault:
                self.failed(Failure.BAD_ANSWER, fault)
                return
        exchange.usage = info
        if exchange.capture is not None:
            exchange.capture.add(body)
        fields = self._fields()
        result = self._ended(info)
        answer(exchange.connection, self.status, fields, body)
        exchange.finish(result, self.status)

    def _ended(self, info: AnswerInfo) -> Result:
        """The answer is whole: give the endpoint its due. What it calls aborted is its failure, although the client
        gets it as it is."""
        if gave_up(info):
            self.forwarder.record(self, Failure.ERROR_EVENT)
            return Result.UPSTREAM_ERROR
        self.forwarder.succeeded(self)
        return Result.OK

    def _error_event(self, error: dict[str, object]) -> None:
        """The first word is an error: the client gets its real status, or another endpoint is tried."""
        self.status, body = told_error(self.exchange.request.head.target, error)
        failure = of_status(self.status)
        self.failure = Failure.ERROR_EVENT if failure is Failure.STATUS_5XX else failure
        self.headers = [(b"content-type", b"application/json")]
        self.body = [body]
        self._end_collected()

    def _fields(self) -> bytes:
        theirs = self._passed.fields if self._passed is not None else b""
        return self.forwarder.own_fields(self.exchange, self.pool, theirs)


def is_error(info: AnswerInfo, api: Api) -> bool:
    """Whether a whole answer of the 2xx class that names an error is nothing else. A response that failed can be read
    by its client; what audio models answer is no matter of ours."""
    return info.error is not None and (api in ENDS_WITH_DONE or (api is not Api.AUDIO and not info.finish_reason))


def fault_of(body: bytes, info: AnswerInfo, passed: Passed, api: Api, *, stream: bool) -> str:
    """Why a whole answer of the 2xx class is none, or ""."""
    if api is Api.AUDIO or passed.opaque:
        return ""
    if stream and api in _STREAMED and info.done:
        return "The pool gave a whole answer although a stream was asked for."
    if info.done or is_document(body) or (stream and body.lstrip()[:5] in _SSE_STARTS):
        return ""
    return "The pool's answer is no JSON document."


def gave_up(info: AnswerInfo) -> bool:
    """Whether the pool says itself that it did not come to the end: an error, or an engine that stopped in between."""
    return info.error is not None or info.finish_reason in _GIVEN_UP


def cut_off(tail: bytes, passed: Passed | None, api: Api) -> bool:
    """Whether a long answer that ends so, by the close of its connection, is not whole."""
    if api is Api.AUDIO or passed is None or passed.opaque:
        return False
    return not tail.rstrip().endswith((b"}", b"]"))
