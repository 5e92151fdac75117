"""Values and byte-level constants that the server and the client side share.

A ``Request`` is a whole message: the body is complete and within its limit, header names are lower-case. Nothing of a
client's framing survives in it, so nothing of it can reach a pool.
"""

from email.utils import formatdate
from http import HTTPStatus
from typing import Final

Headers = list[tuple[bytes, bytes]]

# Fields that belong to one connection (RFC 9110 §7.6.1) or to the framing, which each side makes anew.
HOP_BY_HOP = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-connection",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
        b"content-length",
    }
)

STATUS_LINES = {status.value: b"HTTP/1.1 %d %s\r\n" % (status.value, status.phrase.encode()) for status in HTTPStatus}
_OK: Final = STATUS_LINES[200]
_CHUNK_DIGITS_MOST: Final = 4
_ZERO: Final = 48
_NINE: Final = 57
_A: Final = 97
_F: Final = 102
_CR: Final = 13
_LF: Final = 10


def status_line(status: int) -> bytes:
    """Status line with CRLF, for any three-digit status."""
    if status == 200:
        return _OK
    return STATUS_LINES.get(status) or b"HTTP/1.1 %d Status\r\n" % status


class Head:
    """The head of a message, names lower-case, without its framing. Requests of one connection may share it.

    ``derived`` belongs to the handler: what it made of this head and wants to find again with the next message that
    has the same.
    """

    __slots__ = ("derived", "fields", "headers", "http11", "keep_alive", "method", "target")

    def __init__(
        self, method: bytes, target: bytes, headers: Headers, *, http11: bool = True, keep_alive: bool = True
    ) -> None:
        self.method = method
        self.target = target
        self.headers = headers
        self.fields = dict(headers)  # of a repeated field the last value
        self.http11 = http11
        self.keep_alive = keep_alive
        self.derived: object = None


class Request:
    """One request as a client sent it, body complete. ``received_at``: the loop's clock at the head's first byte."""

    __slots__ = ("body", "head", "received_at")

    def __init__(self, head: Head, body: bytes, received_at: float) -> None:
        self.head = head
        self.body = body
        self.received_at = received_at

    @property
    def method(self) -> bytes:
        """As it came."""
        return self.head.method

    @property
    def target(self) -> bytes:
        """Path and query, as they came."""
        return self.head.target

    @property
    def headers(self) -> Headers:
        """Fields in order."""
        return self.head.headers

    @property
    def fields(self) -> dict[bytes, bytes]:
        """By lower-case name; of a repeated field the last value."""
        return self.head.fields


class AnswerHead:
    """The head of a pool's answer, names lower-case, without its framing. ``derived`` as in ``Head``."""

    __slots__ = ("derived", "headers", "status")

    def __init__(self, status: int, headers: Headers) -> None:
        self.status = status
        self.headers = headers
        self.derived: object = None


def named_by_connection(headers: Headers) -> frozenset[bytes]:
    """Lower-case field names that the Connection field declares hop-by-hop; empty in the usual case."""
    names: set[bytes] = set()
    for key, value in headers:
        if key == b"connection":
            names.update(part.strip().lower() for part in value.split(b","))
    return frozenset(names - {b"close", b"keep-alive", b""})


def chunk_at(data: bytes) -> int:
    """Where the payload begins if ``data`` is one whole chunk, framed as we would frame it; else -1."""
    end = len(data)
    at, size = 0, 0
    while at < _CHUNK_DIGITS_MOST and at < end:
        byte = data[at]
        if _ZERO <= byte <= _NINE:
            size = 16 * size + byte - _ZERO
        elif _A <= byte <= _F:
            size = 16 * size + byte - _A + 10
        else:
            break
        at += 1
    at += 2
    if size == 0 or end != at + size + 2 or data[0] == _ZERO:
        return -1
    framed = data[at - 2] == _CR and data[at - 1] == _LF and data[end - 2] == _CR and data[end - 1] == _LF
    return at if framed else -1


class DateHeader:
    """The Date field as bytes, rendered once a second. ``wall`` gives seconds since the epoch."""

    __slots__ = ("_second", "_text")

    def __init__(self) -> None:
        self._second = -1
        self._text = b""

    def at(self, wall_s: float) -> bytes:
        """``Date: …`` with CRLF for that wall-clock time."""
        second = int(wall_s)
        if second != self._second:
            self._second = second
            self._text = b"Date: %s\r\n" % formatdate(second, usegmt=True).encode()
        return self._text
