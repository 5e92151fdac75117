"""What an attempt takes it gives back, once, however it ends."""

import asyncio

import pytest

from tests.unit.dataplane.conftest import Make
from tests.unit.dataplane.plane import CHAT, STREAM, Upstream


@pytest.mark.parametrize("how", ["answered", "failed", "timed out", "reset", "client gone"])
async def test_everything_is_given_back(make: Make, first: Upstream, how: str) -> None:
    """After any end nothing is in flight: not in the worker's view, not on the shared board, not on the wheel."""

    async def script(_body: bytes, writer: asyncio.StreamWriter) -> None:
        if how == "reset":
            writer.transport.abort()
        elif how in ("timed out", "client gone"):
            await asyncio.Event().wait()
        elif how == "failed":
            writer.write(b"HTTP/1.1 500 X\r\nContent-Length: 0\r\n\r\n")
        else:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

    first.script = script
    limits = {"timeouts": {"first_byte": "60ms" if how == "timed out" else "9s"}}
    plane = await make({"a": [first.url]}, pool={"a": limits})
    _, writer = await plane.send(CHAT)
    async with asyncio.timeout(5):
        while not first.bodies:
            await asyncio.sleep(0.005)
    if how == "client gone":
        writer.close()
    await plane.outcome()
    writer.close()
    (view,) = plane.worker.fleet.views.values()
    assert view.inflight == 0
    assert plane.worker.board.inflight(view.row) == 0
    assert all(
        not isinstance(item, object) or item.due > 0 for slot in plane.worker.wheel._slots if slot for item in slot
    )
    assert view.connections.idle == (1 if how in ("answered", "failed") else 0)


async def test_the_total_limit_ends_a_stream_that_never_ends(make: Make, first: Upstream) -> None:
    """A pool that keeps talking is cut at the total limit, with an error event."""

    async def endless(_body: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        event = b'data: {"choices":[{"index":0,"delta":{"content":"x"}}]}\n\n'
        while True:
            writer.write(b"%x\r\n%b\r\n" % (len(event), event))
            await writer.drain()
            await asyncio.sleep(0.02)

    first.script = endless
    plane = await make({"a": [first.url]}, pool={"a": {"timeouts": {"total": "300ms"}}})
    reply = await plane.ask(STREAM)
    assert reply.body.endswith(b"data: [DONE]\n\n")
    outcome = await plane.outcome()
    assert (outcome.kind.result, outcome.kind.failure) == ("upstream_truncated", "total_timeout")


async def test_a_prompt_is_forgotten_once_the_answer_flows(make: Make, first: Upstream) -> None:
    """A long prompt does not stay in memory while its answer streams."""
    gate = asyncio.Event()

    async def script(_body: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        event = b'data: {"choices":[{"index":0,"delta":{"content":"x"}}]}\n\n'
        writer.write(b"%x\r\n%b\r\n" % (len(event), event))
        await gate.wait()
        writer.write(b"0\r\n\r\n")

    first.script = script
    plane = await make({"a": [first.url]}, pool={"a": {"timeouts": {"idle": "9s"}}})
    reader, writer = await plane.send({**STREAM, "messages": [{"role": "user", "content": "word " * 50_000}]})
    await reader.readuntil(b"\n\n")
    (connection,) = plane.worker.context.connections
    work = connection._work
    assert (work.body, work.request.body, work.relay._payload) == (b"", b"", b"")  # type: ignore[union-attr]
    gate.set()
    await reader.read()
    writer.close()
