"""The reader gives the same requests however the bytes are cut, and refuses at its limits to the byte."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import ApiError
from gateway.wire.http import Request
from gateway.wire.reading import ReadLimits, RequestReader

MESSAGES = (
    b"POST /a HTTP/1.1\r\nHost: g\r\nX-A: 1\r\nContent-Length: 5\r\n\r\nhello"
    b"POST /b HTTP/1.1\r\nHost: g\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
    b"GET /c?x=1 HTTP/1.1\r\nHost: g\r\nConnection: close\r\n\r\n"
)


def reader(limits: ReadLimits | None = None) -> tuple[RequestReader, list[Request]]:
    got: list[Request] = []
    return RequestReader(limits or ReadLimits(), lambda: 1.0, whole=got.append, go_on=lambda: None), got


@given(st.lists(st.integers(1, 40), max_size=60))
def test_any_cutting_gives_the_same_requests(sizes: list[int]) -> None:
    """Boundaries between reads mean nothing."""
    subject, got = reader()
    at = 0
    for size in [*sizes, len(MESSAGES)]:
        subject.feed(MESSAGES[at : at + size])
        at += size
    assert [(request.method, request.target, request.body, request.keep_alive) for request in got] == [
        (b"POST", b"/a", b"hello", True),
        (b"POST", b"/b", b"abc", True),
        (b"GET", b"/c?x=1", b"", False),
    ]
    assert not subject.partial


@pytest.mark.parametrize(("size", "fits"), [(1000, True), (1001, False)])
@pytest.mark.parametrize("chunked", [True, False])
def test_the_body_limit_is_exact(size: int, fits: bool, chunked: bool) -> None:
    """A body of the limit is read; one byte more is 413, declared or not (B49)."""
    limits = ReadLimits()
    limits.max_body_bytes = 1000
    subject, got = reader(limits)
    body = b"x" * size
    framed = b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (size, body)
    if not chunked:
        framed = b"Content-Length: %d\r\n\r\n%b" % (size, body)
    data = b"POST / HTTP/1.1\r\nHost: g\r\n" + framed
    if fits:
        subject.feed(data)
        assert len(got[0].body) == size
    else:
        with pytest.raises(ApiError) as refused:
            subject.feed(data)
        assert refused.value.status == 413
        assert got == []


@given(st.binary(max_size=200))
def test_any_bytes_are_requests_or_a_refusal(data: bytes) -> None:
    """Whatever arrives: whole requests, a partial one, or an ApiError; never another exception."""
    subject, _ = reader()
    try:
        subject.feed(data)
    except ApiError as error:
        assert 400 <= error.status < 500
