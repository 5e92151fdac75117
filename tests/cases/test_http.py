"""Group 6 of the cases: HTTP itself, on both sides of the gateway."""

import contextlib
import gzip
import json
import time
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.cases.client import Client, ClosedError, call, request_bytes
from tests.cases.conftest import MAX_BODY_BYTES, Lane
from tests.cases.gateway import Gateway, simple_policy, wait_for
from tests.cases.messages import DONE, FIN, OK, SSE_HEAD, answer, c, completion, failure, r0, r0s, stream
from tests.cases.upstream import Gate, Upstream

CHAT = "/v1/chat/completions"


def _with_image(model: str, characters: int) -> bytes:
    url = "data:image/png;base64," + "A" * characters
    content = [{"type": "text", "text": "what is this"}, {"type": "image_url", "image_url": {"url": url}}]
    return json.dumps({"model": model, "messages": [{"role": "user", "content": content}]}).encode()


def _padded(model: str, size: int) -> bytes:
    """A valid request of exactly ``size`` bytes."""
    bare = json.dumps(r0(model, metadata={"pad": ""})).encode()
    return bare.replace(b'"pad": ""', b'"pad": "%b"' % (b"x" * (size - len(bare))))


@pytest.mark.parametrize("characters", [1_500_000, 20_000_000])
def test_b47_large_image(lane: Lane, characters: int) -> None:
    """Bodies up to the configured limit are accepted and arrive whole."""
    body = _with_image(lane.model, characters)
    lane.first.play(OK)
    assert lane.request(body).status == 200
    assert len(lane.first.received[0].json["messages"][0]["content"][1]["image_url"]["url"]) == characters + 22


@pytest.mark.parametrize("coding", [None, "gzip"])
def test_b47_byte_order_mark(lane: Lane, coding: str | None) -> None:
    """Editors of Windows put one in front of a file. Runtimes pass over it, so it costs nothing here either, and the
    edits of the body find their places."""
    plain = json.dumps(r0s(lane.model)).encode()
    marked = b"\xef\xbb\xbf" + plain
    lane.first.play(stream(c("a"), FIN, DONE))
    headers = [("Content-Encoding", coding)] if coding else []
    reply = lane.request(gzip.compress(marked) if coding else marked, headers=headers)
    assert reply.status == 200
    assert lane.first.received[0].body.startswith(b'{"')
    assert lane.first.received[0].json["stream_options"] == {"include_usage": True}


def _send_oversized(gateway: Gateway, raw: bytes) -> Any:
    with gateway.connect() as client:
        with contextlib.suppress(ConnectionError):  # the gateway may stop reading; its answer is there all the same
            client.send(raw)
        reply = client.reply()
        reply.read()
        return reply


def test_b47_over_the_limit(lane: Lane) -> None:
    """A body above the limit gets 413 in OpenAI's shape, declared or chunked."""
    body = _with_image(lane.model, MAX_BODY_BYTES)
    declared = _send_oversized(lane.gateway, request_bytes(body))
    assert declared.status == 413
    assert declared.error["type"] == "invalid_request_error"
    chunked = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in _slices(body, 1 << 20)) + b"0\r\n\r\n"
    head = request_bytes(b"", headers=[("Transfer-Encoding", "chunked"), ("Content-Type", "application/json")])
    undeclared = _send_oversized(lane.gateway, head + chunked)
    assert undeclared.status == 413
    assert lane.first.received == []


def _slices(data: bytes, size: int) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)]


def test_b49_never_truncated(lane: Lane) -> None:
    """A body at the limit arrives whole; ten bytes more get 413, never a cut body or "invalid JSON"."""
    exact = _padded(lane.model, MAX_BODY_BYTES)
    lane.first.play(OK)
    assert lane.request(exact).status == 200
    assert len(lane.first.received[0].json["metadata"]["pad"]) == len(json.loads(exact)["metadata"]["pad"])
    over = _send_oversized(lane.gateway, request_bytes(_padded(lane.model, MAX_BODY_BYTES + 10)))
    assert over.status == 413
    assert len(lane.first.received) == 1


@pytest.mark.parametrize("status", [200, 404, 500])
def test_b50_compressed_answers(lane: Lane, status: int) -> None:
    """A compressed answer is either raw with its Content-Encoding or decoded without; the length fits what is sent."""
    payload = (
        completion() if status == 200 else {"error": {"message": "gone", "type": "x", "param": None, "code": status}}
    )
    packed = gzip.compress(json.dumps(payload).encode())
    script = answer(packed, status, headers=[("Content-Encoding", "gzip"), ("Content-Type", "application/json")])
    lane.first.play(script)
    lane.second.play(script)
    with lane.gateway.connect() as client:
        reply = client.request(r0(lane.model), headers=[("Accept-Encoding", "gzip")])
        body = reply.read()
        plain = gzip.decompress(body) if reply.header("content-encoding") == "gzip" else body
        assert reply.status == status
        assert json.loads(plain) == payload
        lane.first.play(OK)
        assert client.request(r0(lane.model)).json["choices"], "the connection is out of step"


def test_b50_compressed_stream(lane: Lane) -> None:
    """A compressed event stream cannot be watched over: it is a broken one, and another endpoint is tried."""
    packed = gzip.compress(c("a") + FIN + DONE)
    head = SSE_HEAD.replace(b"Transfer-Encoding", b"Content-Encoding: gzip\r\nTransfer-Encoding")
    for endpoint in (lane.first, lane.second):
        endpoint.play(stream(packed[:20], packed[20:], head=head))
    reply = lane.request(r0s(lane.model))
    assert (reply.status, reply.error["code"]) == (502, "upstream_closed")
    assert len(lane.second.received) == 1


@pytest.mark.parametrize("coding", ["gzip", "x-gzip", "deflate", "GZIP", "identity"])
def test_b52_compressed_request(lane: Lane, coding: str) -> None:
    """A compressed body is decoded before it is read, and goes to the pool decoded."""
    plain = json.dumps(r0(lane.model)).encode()
    pack: Callable[[bytes], bytes] = zlib.compress if coding == "deflate" else gzip.compress
    body = plain if coding == "identity" else pack(plain)
    lane.first.play(OK)
    assert lane.request(body, headers=[("Content-Encoding", coding)]).status == 200
    received = lane.first.received[0]
    assert received.json == r0("up")
    assert received.header("content-encoding") in (None, "identity")


def test_b52_bomb_and_unknown_codings(lane: Lane) -> None:
    """Inflated size is capped (413) without the memory for it; unknown codings get 415, broken ones a 400 that says
    so."""
    before = lane.gateway.resident_bytes()
    bomb = gzip.compress(b'{"model":"' + b" " * 200_000_000, 9)
    refused = lane.request(bomb, headers=[("Content-Encoding", "gzip")])
    assert (refused.status, refused.error["type"]) == (413, "invalid_request_error")
    assert lane.gateway.resident_bytes() - before < 3 * MAX_BODY_BYTES
    unknown = lane.request(b"\x00\x01", headers=[("Content-Encoding", "br")])
    assert unknown.status == 415
    assert unknown.error["message"]
    for broken in (b"no gzip at all", gzip.compress(json.dumps(r0(lane.model)).encode())[:-9]):
        reply = lane.request(broken, headers=[("Content-Encoding", "gzip")])
        assert (reply.status, "JSON" in reply.error["message"]) == (400, False)
    assert lane.first.received == []


def test_b54_expect_is_answered(lane: Lane) -> None:
    """100 comes before the body; an Expect is not forwarded."""
    body = json.dumps(r0(lane.model)).encode()
    head = request_bytes(b"", headers=[("Content-Length", str(len(body))), ("Expect", "100-continue")])
    lane.first.play(OK)
    with lane.gateway.connect() as client:
        client.send(head)
        assert client.line().startswith(b"HTTP/1.1 100")
        assert client.line() == b""
        assert lane.first.received == []
        client.send(body)
        reply = client.reply()
        assert (reply.status, bool(reply.json["choices"])) == (200, True)
    assert lane.first.received[0].header("expect") is None


def test_b54_expect_with_too_much_to_come(lane: Lane) -> None:
    """A body that would be too large is refused before it is sent."""
    head = request_bytes(b"", headers=[("Content-Length", str(MAX_BODY_BYTES + 1)), ("Expect", "100-continue")])
    with lane.gateway.connect() as client:
        client.send(head)
        line = client.line()
        assert line.startswith(b"HTTP/1.1 413")


def test_b54_unknown_expectation(lane: Lane) -> None:
    """Any other expectation gets 417."""
    reply = lane.request(r0(lane.model), headers=[("Expect", "foo")])
    assert reply.status == 417
    assert reply.error["message"]
    assert lane.first.received == []


PREFLIGHT = [
    ("Origin", "https://app.example"),
    ("Access-Control-Request-Method", "POST"),
    ("Access-Control-Request-Headers", "authorization,content-type"),
]


def test_b55_preflight_needs_no_key(upstream: Upstream, start_gateway: Callable[..., Gateway]) -> None:
    """With origins in the policy a preflight is answered without credentials, and errors carry the CORS headers too."""
    endpoint = upstream.endpoint()
    endpoint.default = OK
    document = simple_policy(endpoint.url, gateway={"cors_origins": ["https://app.example"]})
    document["tenants"] = {"t": {"keys": ["sha256:" + "0" * 64]}}
    gateway = start_gateway(document)
    preflight = call(gateway.port, method="OPTIONS", path=CHAT, headers=PREFLIGHT)
    assert 200 <= preflight.status < 300
    assert preflight.header("access-control-allow-origin") in ("https://app.example", "*")
    assert "POST" in (preflight.header("access-control-allow-methods") or "")
    allowed = (preflight.header("access-control-allow-headers") or "").lower()
    assert "*" in allowed or ("authorization" in allowed and "content-type" in allowed)
    origin = [("Origin", "https://app.example")]
    for headers in ([("Authorization", "Bearer wrong")], []):
        refused = call(gateway.port, r0("m"), headers=[*origin, *headers])
        assert (refused.status, refused.error["type"]) == (401, "authentication_error")
        assert refused.header("access-control-allow-origin") in ("https://app.example", "*")
    for path in ("/v1/nothing", "/v1/models/none"):
        assert call(gateway.port, method="GET", path=path, headers=origin).header("access-control-allow-origin")
    stranger = call(
        gateway.port, method="OPTIONS", path=CHAT, headers=[("Origin", "https://evil.example"), *PREFLIGHT[1:]]
    )
    assert stranger.header("access-control-allow-origin") is None


def test_b55_no_cors_unless_the_policy_says_so(lane: Lane) -> None:
    """Without origins in the policy no answer opens the gateway to browsers, not even with a pool's own header."""
    preflight = lane.request(None, method="OPTIONS", headers=PREFLIGHT)
    assert preflight.status == 204
    assert preflight.header("access-control-allow-origin") is None
    lane.first.play(answer(completion(), headers=[("Access-Control-Allow-Origin", "*")]))
    reply = lane.request(r0(lane.model), headers=[("Origin", "https://app.example")])
    assert reply.header("access-control-allow-origin") is None


@pytest.mark.parametrize("path", ["/v1/models", CHAT, "/v1/embeddings"])
def test_b56_options_tells_the_methods(gateway: Gateway, path: str) -> None:
    """OPTIONS is answered with Allow; a wrong method gets 405 with Allow and a JSON error."""
    options = call(gateway.port, method="OPTIONS", path=path)
    assert options.status == 204
    allow = options.header("allow") or ""
    assert ("GET" if path == "/v1/models" else "POST") in allow
    wrong = call(gateway.port, {}, method="PUT", path=path)
    assert wrong.status == 405
    assert wrong.header("allow")
    assert wrong.error["message"]


def test_b58_length_follows_the_bytes(lane: Lane) -> None:
    """Content-Length is that of the bytes sent, also where an error is put into another shape or becomes JSON."""
    with lane.gateway.connect() as client:
        lane.first.play(answer(completion("x" * 100)))
        assert len(client.request(r0(lane.model)).read()) == len(
            json.dumps(completion("x" * 100), separators=(",", ":"))
        )
        flat = {"object": "error", "message": "bad", "type": "BadRequestError", "param": None, "code": 400}
        lane.first.play(answer(flat, 400))
        reshaped = client.request(r0s(lane.model))
        assert (reshaped.status, reshaped.pool_error["message"]) == (400, "bad")
        error_in_stream = stream(b'data: {"error":{"code":400,"message":"no"}}\n\n')
        lane.first.play(error_in_stream)
        assert client.request(r0s(lane.model)).pool_error["message"] == "no"
        lane.first.play(OK)
        assert client.request(r0(lane.model)).json["choices"], "the connection is out of step"


HOP_HEAD = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: keep-alive, X-Foo\r\nX-Foo: 1\r\n"
    b"Keep-Alive: timeout=5\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nDate: Mon, 01 Jan 2024 00:00:00 GMT\r\n"
    b"Server: pool\r\nProxy-Authenticate: Basic\r\nX-Kept: yes\r\nContent-Type: text/event-stream\r\n\r\n"
)


def test_b60_hop_by_hop_from_the_pool(lane: Lane) -> None:
    """One Transfer-Encoding, one Date, no hop-by-hop field and none that Connection names; both cookies stay."""
    lane.first.play(stream(c("a"), FIN, DONE, head=HOP_HEAD))
    reply = lane.request(r0s(lane.model))
    assert reply.all("transfer-encoding") == ["chunked"]
    for name in ("x-foo", "keep-alive", "proxy-authenticate"):
        assert reply.header(name) is None, name
    assert len(reply.all("date")) == 1
    assert reply.header("date") != "Mon, 01 Jan 2024 00:00:00 GMT"
    assert len(reply.all("server")) <= 1
    assert reply.all("set-cookie") == ["a=1", "b=2"]
    assert reply.header("x-kept") == "yes"
    assert reply.body == c("a") + FIN + DONE


def test_trailers_stop_at_the_gateway(lane: Lane) -> None:
    """Fields behind a chunked body are not taken for the head's, by whatever a front has checked of that."""
    plain = json.dumps(r0(lane.model)).encode()
    headers = [("Transfer-Encoding", "chunked"), ("Trailer", "X-Late"), ("Content-Type", "application/json")]
    with lane.gateway.connect() as client:
        client.send(request_bytes(b"", headers=headers))
        client.send(b"%x;ext=1\r\n%b\r\n0\r\nX-Late: 1\r\nContent-Encoding: gzip\r\n\r\n" % (len(plain), plain))
        assert client.reply().status == 200
    assert lane.first.received[0].header("x-late") is None


def test_request_ids_are_unique_whatever_clients_say(lane: Lane) -> None:
    """Runtimes know requests by this id, and two in flight under one harm each other: it holds the client's, to be
    found in the runtime's log, and ours."""
    for name in ("mine", "mine", None):
        lane.request(r0(lane.model), headers=[("X-Request-Id", name)] if name else [])
    replies = [lane.request(r0(lane.model), headers=[("X-Request-Id", "mine")]) for _ in range(2)]
    told = [received.header("x-request-id") or "" for received in lane.first.received]
    assert len(set(told)) == len(told) == 5
    assert [name.startswith("mine.") for name in told] == [True, True, False, True, True]
    assert told[3:] == [f"mine.{reply.header('x-quantgate-request-id')}" for reply in replies]
    for received in lane.first.received:
        assert [name.lower() for name, _ in received.headers].count("x-request-id") == 1


def test_b60_hop_by_hop_from_the_client(lane: Lane) -> None:
    """Framing and hop-by-hop fields of the client stop at the gateway; its key does too."""
    plain = json.dumps(r0(lane.model)).encode()
    headers = [
        ("Transfer-Encoding", "chunked"),
        ("Connection", "keep-alive, X-Hop"),
        ("X-Hop", "1"),
        ("TE", "trailers"),
        ("Keep-Alive", "timeout=5"),
        ("Proxy-Authorization", "Basic eDp5"),
        ("X-Kept", "yes"),
        ("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
    ]
    lane.first.play(OK)
    with lane.gateway.connect() as client:
        client.send(request_bytes(b"", headers=[*headers, ("Content-Type", "application/json")]))
        client.send(b"%x\r\n%b\r\n0\r\n\r\n" % (len(plain), plain))
        assert client.reply().status == 200
    received = lane.first.received[0]
    for name in ("transfer-encoding", "x-hop", "te", "keep-alive", "proxy-authorization", "authorization"):
        assert received.header(name) is None, name
    assert [name.lower() for name, _ in received.headers].count("content-length") == 1
    assert [name.lower() for name, _ in received.headers].count("host") == 1
    assert received.header("host") == f"127.0.0.1:{lane.first.port}"
    assert received.header("x-kept") == "yes"
    assert "0af7651916cd43dd8448eb211c80319c" in (received.header("traceparent") or "")


def _smuggling(model: str) -> dict[str, bytes]:
    body = json.dumps(r0(model)).encode()
    inner = request_bytes(r0(model, user="smuggled"))
    start = f"POST {CHAT} HTTP/1.1\r\nHost: g\r\nContent-Type: application/json\r\n".encode()
    chunked = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    return {
        "length-and-chunked": start + b"Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nG",
        "length-and-chunked-with-body": start
        + b"Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n" % len(chunked)
        + chunked
        + inner,
        "chunked-and-length": start + b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n" + chunked + inner,
        "two-lengths": start + b"Content-Length: %d\r\nContent-Length: 5\r\n\r\n" % len(body) + body + inner,
        "length-list": start + b"Content-Length: %d, 5\r\n\r\n" % len(body) + body + inner,
        "plus-length": start + b"Content-Length: +%d\r\n\r\n" % len(body) + body,
        "negative-length": start + b"Content-Length: -1\r\n\r\n" + body,
        "hex-length": start + b"Content-Length: 0x10\r\n\r\n" + body,
        "spaced-length": start + b"Content-Length : %d\r\n\r\n" % len(body) + body,
        "xchunked": start + b"Transfer-Encoding: xchunked\r\n\r\n" + chunked,
        "chunked-not-last": start + b"Transfer-Encoding: chunked, identity\r\n\r\n" + chunked,
        "chunked-twice": start + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n" + chunked,
        "folded-header": start + b"Transfer-Encoding:\r\n chunked\r\nContent-Length: 3\r\n\r\n" + chunked,
        "bad-chunk-size": start + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n" + inner,
        "bare-lf": start.replace(b"\r\n", b"\n") + b"Content-Length: %d\n\n" % len(body) + body,
        "nul-in-header": start + b"X-A: a\x00b\r\nContent-Length: %d\r\n\r\n" % len(body) + body,
        "two-hosts": start + b"Host: h\r\nContent-Length: %d\r\n\r\n" % len(body) + body,
        "no-host": start.replace(b"Host: g\r\n", b"") + b"Content-Length: %d\r\n\r\n" % len(body) + body,
        "space-in-name": start + b"X A: 1\r\nContent-Length: %d\r\n\r\n" % len(body) + body,
    }


@pytest.mark.parametrize("name", _smuggling("m"))
def test_b61_ambiguous_framing_is_refused(lane: Lane, name: str) -> None:
    """What front and back could read differently gets 400 and the end of the connection; the pool sees nothing."""
    with lane.gateway.connect() as client:
        client.send(_smuggling(lane.model)[name])
        reply = client.reply()
        reply.read()
        assert reply.status == 400
        assert reply.error["message"]
        with pytest.raises(ClosedError):
            client.reply()
    assert lane.first.received == []
    assert lane.request(r0(lane.model)).status == 200


def test_b61_pipelined_requests_are_two(lane: Lane) -> None:
    """Two proper requests in one write are two, answered in order."""
    lane.first.play(answer(completion("one")), answer(completion("two")))
    with Client(lane.gateway.port) as client:
        client.send(request_bytes(r0(lane.model)) * 2)
        texts = [client.reply().json["choices"][0]["message"]["content"] for _ in range(2)]
    assert texts == ["one", "two"]


def test_b61_pool_answers_with_ambiguous_framing(lane: Lane) -> None:
    """The same on the other side: an answer with both lengths is no answer, and its connection is not used again."""
    body = json.dumps(completion()).encode()
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 4\r\nContent-Length: %d\r\n\r\n"
    lane.first.play([head % len(body) + body])
    lane.second.play(failure(500))
    reply = lane.request(r0(lane.model))
    assert reply.status >= 500
    assert reply.pool_error["message"]


def test_a_stop_waits_for_streams_and_not_for_their_clients(
    upstream: Upstream, start_gateway: Callable[..., Gateway]
) -> None:
    """SIGTERM in the middle of a kept-alive client's stream: it comes whole, and then the gateway ends."""
    endpoint, gate = upstream.endpoint(), Gate()
    gateway = start_gateway(simple_policy(endpoint.url), drain_s=30.0)
    endpoint.play(stream(c("x"), gate, c("y"), FIN, DONE))
    with gateway.connect() as client, ThreadPoolExecutor(1) as pool:
        events = client.request(r0s("m")).events()
        next(events)
        began = time.monotonic()
        stopped = pool.submit(gateway.stop)
        wait_for(lambda: _is_shut(gateway), "the gateway drains")
        gate.open()
        assert [event.data for event in events][-1] == b"[DONE]"
        assert stopped.result() == 0
        assert time.monotonic() - began < 15.0
        assert client.closed_by_server()


def _is_shut(gateway: Gateway) -> bool:
    try:
        gateway.connect().close()
    except ConnectionError:
        return True
    return False
