"""The reader gives the same requests however the bytes are cut, and refuses at its limits to the byte."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import ApiError
from gateway.wire.http import Headers, Request
from gateway.wire.reading import LONG_BYTES, ReadLimits, RequestReader

MESSAGES = (
    b"POST /a HTTP/1.1\r\nHost: g\r\nX-A: 1\r\nContent-Length: 5\r\n\r\nhello"
    b"POST /b HTTP/1.1\r\nHost: g\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
    b"GET /c?x=1 HTTP/1.1\r\nHost: g\r\nConnection: close\r\n\r\n"
)


def reader(limits: ReadLimits | None = None) -> tuple[RequestReader, list[Request]]:
    got: list[Request] = []
    return RequestReader(
        limits or ReadLimits(), lambda: 1.0, whole=got.append, go_on=lambda: None, leave=lambda _: None
    ), got


@given(st.lists(st.integers(1, 40), max_size=60))
def test_any_cutting_gives_the_same_requests(sizes: list[int]) -> None:
    """Boundaries between reads mean nothing."""
    subject, got = reader()
    at = 0
    for size in [*sizes, len(MESSAGES)]:
        subject.feed(MESSAGES[at : at + size])
        at += size
    assert [(request.method, request.target, request.body, request.head.keep_alive) for request in got] == [
        (b"POST", b"/a", b"hello", True),
        (b"POST", b"/b", b"abc", True),
        (b"GET", b"/c?x=1", b"", False),
    ]
    assert not subject.partial


def test_trailers_are_no_headers() -> None:
    """What comes behind a body says nothing of the request: no key, no second host; but it counts against the limit."""
    subject, got = reader()
    head = (
        b"POST / HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n"
    )
    subject.feed(head + b"Authorization: Bearer b\r\nHost: other\r\nX-Quantgate-Task: code\r\n\r\n")
    subject.feed(head + b"\r\n")
    assert [request.headers for request in got] == [[(b"host", b"g"), (b"authorization", b"Bearer a")]] * 2
    with pytest.raises(ApiError) as refused:
        subject.feed(head + b"X: 1\r\n" * 20_000)
    assert refused.value.status == 431


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


OFFER = b"Host: g\r\nConnection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\nHTTP2-Settings: AAM\r\n"


@pytest.mark.parametrize(
    "framed", [b"Content-Length: 5\r\n\r\nhello", b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"]
)
@pytest.mark.parametrize("cut", [1, 7, 1000])
def test_an_offer_to_upgrade_does_not_cost_the_body(framed: bytes, cut: int) -> None:
    """Java's HTTP client offers h2c with its first POST: the body is this request's, and no request of its own."""
    subject, got = reader()
    data = b"POST /a HTTP/1.1\r\n" + OFFER + framed
    for at in range(0, len(data), cut):
        subject.feed(data[at : at + cut])
    (request,) = got
    assert (request.body, request.head.keep_alive) == (b"hello", False)
    assert b"upgrade" not in request.fields
    assert b"HTTP2-Settings" in request.fields[b"connection"]
    assert not subject.partial


def test_an_offer_to_upgrade_does_not_lift_limits() -> None:
    """What is refused without the offer is refused with it, and an interim answer is promised once."""
    limits = ReadLimits()
    limits.max_body_bytes = 4
    promised: list[None] = []
    subject = RequestReader(
        limits, lambda: 1.0, whole=lambda _: None, go_on=lambda: promised.append(None), leave=lambda _: None
    )
    subject.feed(b"POST /a HTTP/1.1\r\n" + OFFER + b"Expect: 100-continue\r\nContent-Length: 4\r\n\r\n")
    assert len(promised) == 1
    with pytest.raises(ApiError) as refused:
        reader(limits)[0].feed(b"POST /a HTTP/1.1\r\n" + OFFER + b"Content-Length: 5\r\n\r\nhello")
    assert refused.value.status == 413


def test_tunnels_are_refused() -> None:
    """CONNECT is answered once, and what follows it is not taken for requests."""
    subject, got = reader()
    with pytest.raises(ApiError) as refused:
        subject.feed(b"CONNECT h:1 HTTP/1.1\r\nHost: g\r\n\r\nGET / HTTP/1.1\r\nHost: g\r\n\r\n")
    assert (refused.value.status, refused.value.close, got) == (405, True, [])


@pytest.mark.parametrize(
    ("framing", "asks"),
    [
        (b"Content-Length: %d" % LONG_BYTES, False),
        (b"Content-Length: %d" % (LONG_BYTES + 1), True),
        (b"Transfer-Encoding: chunked", True),
    ],
)
def test_a_long_body_needs_leave(framing: bytes, asks: bool) -> None:
    """Before any of it is kept, and before the client is told to go on."""
    said: list[str] = []

    def leave(headers: Headers) -> None:
        said.append("asked")
        raise ApiError(401, "invalid_api_key", dict(headers)[b"authorization"].decode())

    subject = RequestReader(ReadLimits(), lambda: 1.0, whole=print, go_on=lambda: said.append("go on"), leave=leave)
    head = b"POST / HTTP/1.1\r\nHost: g\r\nAuthorization: k\r\nExpect: 100-continue\r\n" + framing + b"\r\n\r\n"
    if asks:
        with pytest.raises(ApiError) as refused:
            subject.feed(head)
        assert (refused.value.status, refused.value.message) == (401, "k")
    else:
        subject.feed(head)
    assert said == (["asked"] if asks else ["go on"])


@pytest.mark.parametrize(
    "coding", [b"gzip, chunked", b"identity, chunked", b",chunked", b"gzip\r\nTransfer-Encoding: chunked"]
)
def test_a_coding_that_is_not_taken_off_is_refused(coding: bytes) -> None:
    """Read as if it were not there, the body would be another than the one that was sent."""
    subject, got = reader()
    with pytest.raises(ApiError) as refused:
        subject.feed(b"POST /a HTTP/1.1\r\nHost: g\r\nTransfer-Encoding: %b\r\n\r\n1\r\nx\r\n0\r\n\r\n" % coding)
    assert (refused.value.status, refused.value.close, got) == (400, True, [])


@pytest.mark.parametrize(
    ("target", "path"),
    [
        (b"http://g/v1/models?x=1", b"/v1/models?x=1"),
        (b"HTTPS://g:8443/v1/models", b"/v1/models"),
        (b"http://g", b"/"),
        (b"http://g?x=/1", b"/?x=/1"),
        (b"/http://g/a", b"/http://g/a"),
        (b"*", b"*"),
        (b"ftp://g/a", b"ftp://g/a"),
    ],
)
def test_absolute_targets(target: bytes, path: bytes) -> None:
    """A client that takes the gateway for its proxy means the same path."""
    subject, got = reader()
    subject.feed(b"OPTIONS %b HTTP/1.1\r\nHost: g\r\n\r\n" % target)
    assert [request.target for request in got] == [path]


@pytest.mark.parametrize(("version", "interim"), [(b"1.1", 1), (b"1.0", 0)])
def test_an_older_client_gets_no_interim_answer(version: bytes, interim: int) -> None:
    """It would take 100 for the answer, so its expectation is ignored (RFC 9110 §10.1.1)."""
    promised: list[bool] = []
    got: list[Request] = []
    subject = RequestReader(
        ReadLimits(), lambda: 1.0, whole=got.append, go_on=lambda: promised.append(True), leave=lambda _: None
    )
    subject.feed(b"POST /a HTTP/%b\r\nHost: g\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nhi" % version)
    assert (len(promised), [request.body for request in got]) == (interim, [b"hi"])


def test_a_request_says_whom_it_is_meant_for() -> None:
    """HTTP/1.1 needs a Host field (RFC 9112 §3.2), an older client has none; a known head had one."""
    subject, got = reader()
    subject.feed(b"GET /old HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
    assert [request.target for request in got] == [b"/old"]
    with pytest.raises(ApiError) as refused:
        subject.feed(b"GET / HTTP/1.1\r\nX-Host: g\r\n\r\n")
    assert (refused.value.status, "Host" in refused.value.message) == (400, True)
