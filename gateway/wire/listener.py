"""The two ends of an answer: who hears it from a pool's connection, and who it is for.

Nearly always that is a client's own connection, which compiled code reaches directly once it knows; ``answer`` and
``pass_on`` look.
"""

from typing import Protocol

from gateway.wire.http import AnswerHead
from gateway.wire.server import ServerConnection


class Listener(Protocol):
    """Who waits for an answer."""

    def on_head(self, head: AnswerHead, length: int | None) -> None:
        """``length`` is the body's, None = not said. 1xx answers are not reported."""
        ...

    def on_body(self, data: bytes) -> None:
        """Decoded body bytes of one read, joined."""
        ...

    def on_chunk(self, data: bytes, frame: bytes) -> None:
        """As ``on_body``, for a read that was one whole chunk: ``frame`` is the read, framed as we would frame it."""
        ...

    def on_whole(self, head: AnswerHead, body: bytes) -> bool:
        """A whole answer in one read; the connection is free again. False, and nothing done: tell it in pieces."""
        ...

    def on_end(self) -> None:
        """The answer is complete by its framing."""
        ...

    def on_lost(self, answered: bool, reason: str) -> None:
        """The connection ended before the answer did; ``answered`` = at least one byte of it had come."""
        ...

    def on_writable(self, writable: bool) -> None:
        """The request's bytes flow (True) or wait for the pool to read them (False)."""
        ...


class Audience(Protocol):
    """Who an answer goes to: a client's ``ServerConnection``, or whatever stands in a client's place."""

    bytes_out: int

    def answer(self, status: int, fields: bytes, body: bytes, *, close: bool = False) -> None:
        """One whole answer."""
        ...

    def begin(self, status: int, fields: bytes, length: int | None, first: bytes) -> None:
        """Start a streamed answer."""
        ...

    def send(self, data: bytes) -> None:
        """More of it."""
        ...

    def pass_on(self, data: bytes, frame: bytes) -> None:
        """More of it, which lies here framed as one chunk too."""
        ...

    def end(self, last: bytes = b"") -> None:
        """Its end."""
        ...

    def abort(self) -> None:
        """Its break."""
        ...


def answer(audience: Audience, status: int, fields: bytes, body: bytes) -> None:
    """One whole answer."""
    if isinstance(audience, ServerConnection):
        audience.answer(status, fields, body)
    else:
        audience.answer(status, fields, body)


def pass_on(audience: Audience, data: bytes, frame: bytes) -> None:
    """More of a streamed answer, which lies here framed as one chunk too."""
    if isinstance(audience, ServerConnection):
        audience.pass_on(data, frame)
    else:
        audience.pass_on(data, frame)
