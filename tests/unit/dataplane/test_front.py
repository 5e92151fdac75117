"""Paths without an exchange: liveness, OPTIONS with and without CORS, 404 and 405."""

import asyncio
from hashlib import sha256

import pytest

from tests.unit.dataplane.conftest import Make
from tests.unit.dataplane.plane import CHAT, Plane, Reply, Upstream


async def call(plane: Plane, method: str, path: str, **fields: str) -> Reply:
    reader, writer = await plane.send(b"", path, method=method, **fields)
    async with asyncio.timeout(5):
        data = await reader.read()
    writer.close()
    return Reply(data)


async def test_liveness_needs_nothing(make: Make, first: Upstream) -> None:
    """No key, no pool."""
    plane = await make({"a": [first.url]})
    assert (await call(plane, "GET", "/health")).json == {"status": "ok"}
    assert (await call(plane, "HEAD", "/health")).body == b""


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/v1/chat/completions", 405, "method_not_allowed"),
        ("PUT", "/v1/models", 405, "method_not_allowed"),
        ("GET", "/v1/feedback", 405, "method_not_allowed"),
        ("POST", "/health", 405, "method_not_allowed"),
        ("POST", "/v1/nothing", 404, "unknown_path"),
        ("GET", "/", 404, "unknown_path"),
    ],
)
async def test_wrong_methods_and_paths(
    make: Make, first: Upstream, method: str, path: str, status: int, code: str
) -> None:
    """JSON errors, and a 405 says what would work."""
    plane = await make({"a": [first.url]})
    reply = await call(plane, method, path)
    assert (reply.status, reply.code) == (status, code)
    assert (status == 405) == ("allow" in reply.header)


async def test_options_without_cors(make: Make, first: Upstream) -> None:
    """204 with Allow and no CORS fields, without credentials and without a length."""
    plane = await make({"a": [first.url]})
    reply = await call(plane, "OPTIONS", "/v1/chat/completions", origin="https://app.example")
    assert reply.status == 204
    assert reply.header["allow"] == "POST, OPTIONS"
    assert "access-control-allow-origin" not in reply.header
    assert "content-length" not in reply.header


async def test_preflight_and_errors_with_cors(make: Make, first: Upstream) -> None:
    """A listed origin may read everything, 401 included; another one nothing."""
    plane = await make(
        {"a": [first.url]},
        gateway={"cors_origins": ["https://app.example"]},
        tenants={"anonymous": {"allow": False}, "t": {"keys": ["sha256:" + "0" * 64]}},
    )
    asked = {"origin": "https://app.example", "access_control_request_headers": "authorization,x-custom"}
    reply = await call(plane, "OPTIONS", "/v1/chat/completions", **asked)
    assert reply.header["access-control-allow-origin"] == "https://app.example"
    assert reply.header["access-control-allow-headers"] == "authorization,x-custom"
    denied = await plane.ask(CHAT, origin="https://app.example")
    assert (denied.status, denied.header["access-control-allow-origin"]) == (401, "https://app.example")
    stranger = await plane.ask(CHAT, origin="https://evil.example")
    assert "access-control-allow-origin" not in stranger.header


async def test_feedback_with_cors(make: Make, first: Upstream) -> None:
    """The preflight is granted, so the page may read what became of its word, and what was wrong with it."""
    plane = await make({"a": [first.url]}, gateway={"cors_origins": ["https://app.example"]})
    origin = "https://app.example"
    preflight = await call(plane, "OPTIONS", "/v1/feedback", origin=origin)
    assert (preflight.status, preflight.header["allow"]) == (204, "POST, OPTIONS")
    for word, status in (({"request_id": "x-1", "label": "bad"}, 202), ({"label": "bad"}, 400)):
        reply = await plane.ask(word, "/v1/feedback", origin=origin)
        assert (reply.status, reply.header["access-control-allow-origin"]) == (status, origin)


async def test_what_the_wire_refuses_with_cors(make: Make, first: Upstream) -> None:
    """A body that is too long, declared or found so, and a long one without a key: a page may read why."""
    origin = "https://app.example"
    plane = await make(
        {"a": [first.url]},
        gateway={"cors_origins": [origin], "max_body": "100k"},
        tenants={"anonymous": {"allow": False}, "t": {"keys": ["sha256:" + sha256(b"sk-t").hexdigest()]}},
    )
    key = "Bearer sk-t"
    whole, part = b"x" * 200_000, b"%x\r\n%b\r\n" % (200_000, b"x" * 200_000)
    sent = f"POST /v1/chat/completions HTTP/1.1\r\nHost: g\r\nOrigin: {origin}\r\n"
    for fields, body, status in (
        (f"Authorization: {key}\r\nContent-Length: {len(whole)}\r\n\r\n", b"", 413),
        (f"Authorization: {key}\r\nTransfer-Encoding: chunked\r\n\r\n", part, 413),
        ("Transfer-Encoding: chunked\r\n\r\n", b"", 401),
    ):
        reader, writer = await asyncio.open_connection("127.0.0.1", plane.port)
        writer.write((sent + fields).encode() + body)
        async with asyncio.timeout(5):
            reply = Reply(await reader.read())
        writer.close()
        assert (reply.status, reply.header.get("access-control-allow-origin")) == (status, origin)
