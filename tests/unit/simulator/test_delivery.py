"""Transport faults as a client meets them."""

import asyncio
import json
from typing import Any

import aiohttp
import pytest

from gateway.simulator.config import Config
from gateway.simulator.fault import Fault
from gateway.simulator.latency import Distribution
from tests.unit.simulator.rig import Client, chat, running

BREAKS = (aiohttp.ClientPayloadError, aiohttp.ServerDisconnectedError, aiohttp.ClientOSError)


def _config(kind: Any, **options: Any) -> Config:
    return Config(faults=(Fault(kind, **options),))


async def _broken(client: Client, body: dict[str, Any]) -> bytes:
    """What arrives before the connection breaks; fails if it does not break."""
    got = b""
    with pytest.raises(BREAKS):
        async with client.session.post(client.url("/v1/chat/completions"), json=body) as answer:
            async for piece in answer.content.iter_any():
                got += piece
    return got


async def test_status_with_its_headers() -> None:
    """The status, the message and Retry-After are what the fault says, streamed or not."""
    async with running(_config("status", status=429, message="slow down", retry_after="7")) as client:
        for body in (chat(), chat(stream=True)):
            async with client.session.post(client.url("/v1/chat/completions"), json=body) as answer:
                assert (answer.status, answer.headers["retry-after"]) == (429, "7")
                assert (await answer.json())["error"]["message"] == "slow down"
        assert (await client.state())["struck"] == {"status": 2}


@pytest.mark.parametrize("kind", ["reset", "drop"])
async def test_breaks_in_mid_stream(kind: str) -> None:
    """The connection breaks after the tokens that were set, streamed; unstreamed in the middle of the body."""
    async with running(_config(kind, after_tokens=4)) as client:
        got = await _broken(client, chat(stream=True))
        assert got.count(b'"content":') == 1 + 4
        assert b"[DONE]" not in got
        await _broken(client, chat())
        assert (await client.state())["finished"] == {"error": 2}


async def test_reset_before_any_byte() -> None:
    """after_tokens 0 breaks before a head has left."""
    async with running(_config("reset", after_tokens=0)) as client:
        for body in (chat(stream=True), chat()):
            with pytest.raises((aiohttp.ServerDisconnectedError, aiohttp.ClientOSError)):
                await client.post("/v1/chat/completions", body)


async def test_cut_ends_properly_but_early() -> None:
    """The HTTP message is complete and the answer is not: no finish reason, no [DONE]; half a body unstreamed."""
    async with running(_config("cut", after_tokens=4)) as client:
        events = await client.stream(chat(stream=True))
        assert len(events) == 1 + 4
        assert all(json.loads(event)["choices"][0]["finish_reason"] is None for event in events)
        async with client.session.post(client.url("/v1/chat/completions"), json=chat()) as answer:
            with pytest.raises(json.JSONDecodeError):
                json.loads(await answer.read())


async def test_no_done_lacks_only_done() -> None:
    """Everything is there but [DONE]."""
    async with running(_config("no_done")) as client:
        events = await client.stream(chat(stream=True))
        assert json.loads(events[-1])["choices"][0]["finish_reason"] == "stop"


async def test_error_event_as_a_dying_engine_sends_it() -> None:
    """A 200 stream, then an error object and [DONE]; unstreamed it is a 500."""
    async with running(_config("error_event", after_tokens=2)) as client:
        events = await client.stream(chat(stream=True))
        assert events[-1] == b"[DONE]"
        assert json.loads(events[-2])["error"]["code"] == 500
        status, answer = await client.post("/v1/chat/completions", chat())
        assert (status, answer["error"]["type"]) == (500, "InternalServerError")


@pytest.mark.parametrize(("kind", "head"), [("hang", False), ("stall", True)])
async def test_silence_keeps_the_slot_until_the_client_leaves(kind: str, head: bool) -> None:
    """hang says nothing at all, stall stops after some tokens; both abort at once when the client leaves."""
    async with running(_config(kind, after_tokens=2)) as client:
        reader, writer = await asyncio.open_connection("127.0.0.1", client.server.bound)
        body = json.dumps(chat(stream=True)).encode()
        writer.write(
            b"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
        )
        if head:
            got = b""
            while got.count(b'"content":') < 3:
                got += await reader.read(4096)
        engine = client.server.engine
        while not engine.running:
            await asyncio.sleep(0.001)
        assert engine.meters.aborts == 0
        writer.transport.abort()
        while engine.running:
            await asyncio.sleep(0.001)
        assert engine.meters.aborts == 1
        _, text = await client.get("/sim/requests")
        assert b'"outcome":"aborted"' in text


async def test_client_that_leaves_a_whole_answer_aborts_it() -> None:
    """Unstreamed requests are aborted on disconnect too, before the answer is due."""
    async with running(Config(ttft=Distribution(constant=60.0))) as client:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await client.post("/v1/chat/completions", chat())
        engine = client.server.engine
        while engine.running:
            await asyncio.sleep(0.001)
        assert engine.meters.aborts == 1


async def test_slow_multiplies_latency() -> None:
    """The job's times are those of the settings times the factor."""
    config = Config(ttft=Distribution(constant=0.001), faults=(Fault("slow", factor=40.0),))
    async with running(config) as client:
        await client.post("/v1/chat/completions", chat())
        assert client.server.engine.meters.ttft.total >= 0.04


async def test_reader_that_stops_holds_the_engine() -> None:
    """A client that does not read blocks its own stream only, and gets all of it later."""
    config = Config(output_tokens=Distribution(constant=60_000.0))
    async with running(config) as client:
        async with client.session.post(client.url("/v1/chat/completions"), json=chat(stream=True)) as answer:
            engine = client.server.engine
            while not any(job.blocked for job in engine.running):
                await asyncio.sleep(0.001)
            assert (await client.post("/v1/chat/completions", chat(max_tokens=3)))[0] == 200
            text = await answer.read()
        assert text.rstrip().endswith(b"[DONE]")
        assert text.count(b"data: ") > 60_000
