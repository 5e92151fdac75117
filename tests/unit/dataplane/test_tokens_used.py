"""What a request is charged at its end: no way of asking or leaving makes output free."""

import asyncio
from typing import Any

import pytest

from tests.unit.dataplane.conftest import Make
from tests.unit.dataplane.plane import STREAM, Plane, Reply, Upstream, chunk, event, stream_head
from tests.unit.dataplane.test_admission import KEY, limited

DONE = b"data: [DONE]\n\n"
MANY = 200


async def _ask(plane: Plane, **extra: Any) -> Reply:
    return await plane.ask({**STREAM, **extra}, authorization=f"Bearer {KEY}")


async def _refused(plane: Plane) -> bool:
    return (await _ask(plane)).status == 429


def _streaming(*last: bytes, wait: bool = False, framed: bool = True) -> Any:
    """A script of ``MANY`` events of output and these last ones. ``wait``: it does not end."""

    async def script(_body: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(stream_head())
        for part in (*[event("x")] * MANY, *last):
            writer.write(chunk(part))
        if wait:
            await writer.drain()
            await asyncio.sleep(5)
        writer.write(b"0\r\n\r\n" if framed else b"")
        if not framed:
            writer.close()

    return script


@pytest.mark.parametrize("framed", [True, False], ids=["whole", "broken"])
async def test_a_stream_that_says_no_usage_costs_its_events(make: Make, first: Upstream, framed: bool) -> None:
    """Whether the runtime cannot tell it, or the stream broke off before it could."""
    first.script = _streaming(*([event("", "stop"), DONE] if framed else []), framed=framed)
    plane = await make({"a": [first.url]}, tenants=limited(tokens_per_minute=MANY))
    assert (await _ask(plane)).status == 200
    assert await _refused(plane)


async def test_a_client_that_leaves_before_the_usage_pays_for_the_events(make: Make, first: Upstream) -> None:
    """Usage comes last, so leaving just before it would be free."""
    first.script = _streaming(wait=True)
    plane = await make({"a": [first.url]}, tenants=limited(tokens_per_minute=MANY))
    reader, writer = await plane.send(STREAM, authorization=f"Bearer {KEY}")
    async with asyncio.timeout(5):
        seen = b""
        while seen.count(b"data: ") < MANY:
            seen += await reader.read(65_536)
    writer.close()
    outcome = await plane.outcome()
    assert (outcome.kind.result, outcome.events) == ("client_cancelled", MANY)
    assert await _refused(plane)


async def test_usage_that_a_stream_says_is_believed(make: Make, first: Upstream) -> None:
    """Events are a stand-in only: runtimes put several tokens, or none, in one."""
    usage = b'data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":3,"total_tokens":8}}\n\n'
    first.script = _streaming(event("", "stop"), usage, DONE)
    plane = await make({"a": [first.url]}, tenants=limited(tokens_per_minute=MANY))
    assert [(await _ask(plane)).status for _ in range(2)] == [200, 200]
    assert not await _refused(plane)


async def test_a_client_that_wants_no_usage_pays_for_the_events(make: Make, first: Upstream) -> None:
    """Its word stands, and is no way around its limit."""
    first.script = _streaming(event("", "stop"), DONE)
    plane = await make({"a": [first.url]}, tenants=limited(tokens_per_minute=MANY))
    assert (await _ask(plane, stream_options={"include_usage": False})).status == 200
    assert b'"include_usage":false' in first.bodies[0].replace(b" ", b"")
    assert await _refused(plane)
