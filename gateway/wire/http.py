"""Values and byte-level constants that the server and the client side share.

A ``Request`` is a whole message: the body is complete and within its limit, header names are lower-case. Nothing of a
client's framing survives in it, so nothing of it can reach a pool.
"""

from email.utils import formatdate
from http import HTTPStatus

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


def status_line(status: int) -> bytes:
    """Status line with CRLF, for any three-digit status."""
    return STATUS_LINES.get(status) or b"HTTP/1.1 %d Status\r\n" % status


class Request:
    """One request as a client sent it, body complete. ``received_at``: the loop's clock at the head's first byte."""

    __slots__ = ("body", "fields", "headers", "http11", "keep_alive", "method", "received_at", "target")

    method: bytes
    target: bytes
    headers: Headers
    fields: dict[bytes, bytes]  # by lower-case name; of a repeated field the last value
    body: bytes
    http11: bool
    keep_alive: bool
    received_at: float


def named_by_connection(headers: Headers) -> frozenset[bytes]:
    """Lower-case field names that the Connection field declares hop-by-hop; empty in the usual case."""
    names: set[bytes] = set()
    for key, value in headers:
        if key == b"connection":
            names.update(part.strip().lower() for part in value.split(b","))
    return frozenset(names - {b"close", b"keep-alive", b""})


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
