"""An answer on its way: untouched bytes, honest ends, nothing repeated, nothing invented."""

import asyncio

import orjson
import pytest

from tests.unit.dataplane.conftest import Make
from tests.unit.dataplane.plane import CHAT, OK, STREAM, Plane, Reply, Upstream, answer, chunk, event, stream_head

DONE = b"data: [DONE]\n\n"
USAGE = b'data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":3,"total_tokens":8}}\n\n'


def playing(*parts: bytes, close: bool = False) -> object:
    """A script that streams these parts, each in a write of its own, and ends the chunked body."""

    async def script(_body: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(stream_head())
        for part in parts:
            writer.write(chunk(part))
            await writer.drain()
            await asyncio.sleep(0.01)
        if close:
            writer.close()
        else:
            writer.write(b"0\r\n\r\n")

    return script


async def streamed(plane: Plane, **extra: object) -> Reply:
    return await plane.ask({**STREAM, **extra})


async def test_a_stream_is_passed_on_byte_for_byte(make: Make, first: Upstream) -> None:
    """What the pool streamed is what the client gets, with the streaming fields set and usage read beside the path."""
    parts = [event("Hel"), event("lo"), event("", "stop"), DONE]
    first.script = playing(*parts)  # type: ignore[assignment]
    plane = await make({"a": [first.url]})
    reply = await streamed(plane, stream_options={"include_usage": False})
    assert reply.body == b"".join(parts)
    assert reply.header["cache-control"] == "no-cache"
    assert reply.header["x-accel-buffering"] == "no"
    outcome = await plane.outcome()
    assert (outcome.kind.result, outcome.events, outcome.kind.finish_reason) == ("ok", 4, "stop")
    assert 0.0 <= outcome.ttft_s <= outcome.total_s


async def test_usage_that_the_client_did_not_ask_for_is_taken_out(make: Make, first: Upstream) -> None:
    """The gateway asks for usage, keeps the numbers, and the client's stream is as without."""
    first.script = playing(event("a"), event("", "stop"), USAGE, DONE)  # type: ignore[assignment]
    plane = await make({"a": [first.url]})
    reply = await streamed(plane)
    assert b"include_usage" in first.bodies[0]
    assert b"usage" not in reply.body
    assert reply.body.endswith(DONE)
    outcome = await plane.outcome()
    assert (outcome.prompt_tokens, outcome.completion_tokens) == (5, 3)


async def test_usage_that_the_client_asked_for_stays(make: Make, first: Upstream) -> None:
    """include_usage: true goes to the pool as it is, and the usage event reaches the client."""
    first.script = playing(event("a"), event("", "stop"), USAGE, DONE)  # type: ignore[assignment]
    plane = await make({"a": [first.url]})
    reply = await streamed(plane, stream_options={"include_usage": True})
    assert USAGE in reply.body


@pytest.mark.parametrize(
    ("pieces", "n", "told"),
    [
        ([*(f"t{i} " for i in range(9))], 1, True),
        (["all nine of them"], 1, False),  # held back by a parser or a proxy: nothing lies between first and last
        ([*(f"t{i} " for i in range(9))], 3, False),  # side by side: a third of the tokens one after another
    ],
)
async def test_the_pace_is_told_of_tokens_that_came_one_after_another(
    make: Make, first: Upstream, pieces: list[str], n: int, told: bool
) -> None:
    """Time per token is a claim about speed: what came at once, or in several choices, makes none."""
    usage = USAGE.replace(b'"completion_tokens":3', b'"completion_tokens":9')
    first.script = playing(*map(event, pieces), event("", "stop"), usage, DONE)  # type: ignore[assignment]
    plane = await make({"a": [first.url]})
    await streamed(plane, n=n)
    outcome = await plane.outcome()
    assert (outcome.completion_tokens, outcome.first_to_last_s > 0.0) == (9, told)
    assert told or outcome.first_to_last_s == -1.0


async def test_an_answer_that_breaks_after_content_ends_in_an_error_event(make: Make, first: Upstream) -> None:
    """No second pool is tried, no finish reason is invented, and the outcome says truncated."""
    first.script = playing(event("par"), b'data: {"choices":[{"ind', close=True)  # type: ignore[assignment]
    plane = await make({"a": [first.url], "b": [first.url]})
    reply = await streamed(plane)
    assert reply.body.startswith(event("par"))
    assert b'\n\ndata: {"error":' in reply.body
    assert reply.body.endswith(DONE)
    assert b'"finish_reason":"stop"' not in reply.body
    outcome = await plane.outcome()
    assert (outcome.kind.result, outcome.kind.failure) == ("upstream_truncated", "broken_stream")
    assert len(outcome.attempts) == 1


async def test_a_stream_without_a_finish_reason_is_truncated(make: Make, first: Upstream) -> None:
    """A clean end of the connection is no clean end of the answer."""
    first.script = playing(event("par"))  # type: ignore[assignment]
    plane = await make({"a": [first.url]})
    assert b'"error"' in (await streamed(plane)).body
    assert (await plane.outcome()).kind.result == "upstream_truncated"


async def test_a_missing_done_is_added_once(make: Make, first: Upstream) -> None:
    """A runtime that forgets the terminator gets it added; one that sends it is left alone."""
    first.script = playing(event("a"), event("", "stop"))  # type: ignore[assignment]
    plane = await make({"a": [first.url]})
    assert (await streamed(plane)).body.count(b"[DONE]") == 1


async def test_an_error_as_the_first_event_gets_its_real_status(make: Make, first: Upstream) -> None:
    """The head waits for the first event, so a 400 inside a 200 stream is a 400."""
    first.script = playing(b'data: {"error":{"message":"too long","code":400}}\n\n')  # type: ignore[assignment]
    plane = await make({"a": [first.url]})
    reply = await streamed(plane)
    assert (reply.status, reply.json["error"]["message"]) == (400, "too long")
    assert (await plane.outcome()).kind.result == "client_error"


@pytest.mark.parametrize("code", [401, 403, 407])
async def test_a_refusal_of_the_gateway_is_no_answer_under_a_200_either(make: Make, first: Upstream, code: int) -> None:
    """It speaks of the gateway's credential, as the status itself does: the client gets 502 and none of the words."""
    first.script = playing(b'data: {"error":{"message":"bad key","code":%d}}\n\n' % code)  # type: ignore[assignment]
    plane = await make({"a": [first.url]})
    reply = await streamed(plane)
    assert reply.status == 502
    assert b"bad key" not in reply.body


async def test_an_error_event_in_the_middle_is_passed_on_and_counted(make: Make, first: Upstream) -> None:
    """After content the error event reaches the client unchanged, and counts against the pool."""
    error = b'data: {"error":{"message":"engine died","code":500}}\n\n'
    first.script = playing(event("a"), error, DONE)  # type: ignore[assignment]
    plane = await make({"a": [first.url]})
    reply = await streamed(plane)
    assert reply.body == event("a") + error + DONE
    outcome = await plane.outcome()
    assert (outcome.kind.result, outcome.kind.failure) == ("upstream_error", "error_event")


async def test_keep_alives_reach_the_client_before_the_first_content(make: Make, first: Upstream) -> None:
    """Comments are held for a moment only, then go out, so that proxies on the way see life."""
    gate = asyncio.Event()

    async def script(_body: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(stream_head() + chunk(b": PROCESSING\n\n"))
        await gate.wait()
        writer.write(chunk(event("x")) + chunk(event("", "stop") + DONE) + b"0\r\n\r\n")

    first.script = script
    plane = await make({"a": [first.url]}, pool={"a": {"timeouts": {"first_byte": "10s", "idle": "10s"}}})
    reader, writer = await plane.send(STREAM)
    async with asyncio.timeout(5):
        head = await reader.readuntil(b": PROCESSING\n\n")
    assert b"200 OK" in head
    gate.set()
    assert b"[DONE]" in await reader.read()
    writer.close()
    assert (await plane.outcome()).kind.result == "ok"


async def test_a_whole_answer_is_relayed_unchanged(make: Make, first: Upstream) -> None:
    """JSON bytes are the pool's, whatever is in them; the pool's own fields come along, hop-by-hop ones do not."""
    body = b'{ "choices":[{"index":0,"logprob":-Infinity,"n":12345678901234567890123,"finish_reason":"stop"}]}'
    theirs = ["X-Pool: 1", "Server: u", "Keep-Alive: timeout=5", "Access-Control-Allow-Origin: *"]
    fields = "".join(f"{line}\r\n" for line in [*theirs, "Set-Cookie: a", "Set-Cookie: b"])
    first.script = lambda _body, writer: writer.write(answer(body, fields=fields))
    plane = await make({"a": [first.url]})
    reply = await plane.ask(CHAT)
    assert reply.body == body
    names = [name.lower() for name, _ in reply.fields]
    assert names.count("set-cookie") == 2
    assert "x-pool" in names
    assert {"server", "keep-alive", "access-control-allow-origin"}.isdisjoint(names)


async def test_a_large_answer_flows_without_being_held(make: Make, first: Upstream) -> None:
    """Beyond the collecting bound bytes go through as they come, with the pool's length."""
    body = orjson.dumps({"data": ["x" * 1000] * 1000, "usage": {"prompt_tokens": 3, "total_tokens": 3}})
    first.script = lambda _body, writer: writer.write(answer(body))
    plane = await make({"a": [first.url]})
    reply = await plane.ask({"model": "m", "input": "x"}, "/v1/embeddings")
    assert reply.body == body
    assert reply.header["content-length"] == str(len(body))


async def test_sse_where_json_was_asked_is_a_bad_answer(make: Make, first: Upstream) -> None:
    """Never relayed as JSON: 502 in OpenAI's shape."""
    first.script = playing(event("a"), DONE)  # type: ignore[assignment]
    plane = await make({"a": [first.url]})
    reply = await plane.ask(CHAT)
    assert (reply.status, reply.code) == (502, "bad_upstream_answer")


@pytest.mark.parametrize("request_body", [CHAT, STREAM])
async def test_a_client_that_leaves_closes_the_pools_connection(
    make: Make, first: Upstream, request_body: dict[str, object]
) -> None:
    """Streamed or not, before any byte of an answer: the runtime sees the connection go at once."""

    async def never(_body: bytes, writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    first.script = never
    plane = await make({"a": [first.url]}, pool={"a": {"timeouts": {"first_byte": "30s"}}})
    _, writer = await plane.send(request_body)
    async with asyncio.timeout(5):
        while not first.bodies:
            await asyncio.sleep(0.005)
    view = next(iter(plane.worker.fleet.views.values()))
    assert view.inflight == 1
    writer.close()
    outcome = await plane.outcome()
    assert (outcome.kind.result, outcome.kind.status) == ("client_cancelled", 499)
    assert view.inflight == 0
    assert view.connections.idle == 0


async def test_a_slow_client_pauses_the_pool(make: Make, first: Upstream) -> None:
    """A client that does not read stops the reading from the pool; memory holds a few buffers, not the answer."""
    sent = 0

    async def flood(_body: bytes, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(stream_head())
        block = chunk(event("x" * 60_000))
        for _ in range(400):
            writer.write(block)
            await writer.drain()
            sent += 1
        writer.write(chunk(event("", "stop") + DONE) + b"0\r\n\r\n")

    first.script = flood
    plane = await make({"a": [first.url]}, pool={"a": {"timeouts": {"idle": "5s"}}})
    reader, writer = await plane.send(STREAM)
    await reader.readuntil(b"\r\n\r\n")
    writer.transport.pause_reading()  # type: ignore[attr-defined]
    before = -1
    async with asyncio.timeout(10):
        while sent != before:  # until backpressure has reached the pool
            before = sent
            await asyncio.sleep(0.2)
    assert sent < 400
    writer.transport.resume_reading()  # type: ignore[attr-defined]
    rest = await reader.read()
    writer.close()
    assert len(rest) > 300 * 60_000
    assert (await plane.outcome()).kind.result == "ok"


async def test_captures_hold_what_was_relayed(make: Make, first: Upstream) -> None:
    """Where the policy checks, the outcome carries request and answer; where it does not, nothing."""
    plane = await make({"a": [first.url]}, evidence={"check": {"structured": "100%", "other": "0%"}})
    await plane.ask(CHAT)
    assert (await plane.outcome(1)).capture is None
    asked = {**CHAT, "response_format": {"type": "json_object"}}
    await plane.ask(asked)
    capture = (await plane.outcome(2)).capture
    assert capture is not None
    assert (orjson.loads(capture.request), capture.answer, capture.cut) == (asked, OK, False)


async def test_streams_are_counted_while_they_come(make: Make, first: Upstream) -> None:
    """The worker's gauge: neither a whole answer that is waited for, nor a stream that has not begun, is one."""
    begin, go_on = asyncio.Event(), asyncio.Event()

    async def script(body: bytes, writer: asyncio.StreamWriter) -> None:
        await begin.wait()
        if b'"stream":true' in body:
            writer.write(stream_head() + chunk(event("a")))
            await go_on.wait()
            writer.write(chunk(event("", "stop") + DONE) + b"0\r\n\r\n")
        else:
            await go_on.wait()
            writer.write(answer(OK))

    first.script = script
    plane = await make({"a": [first.url]}, pool={"a": {"timeouts": {"first_byte": "5s", "idle": "5s"}}})
    reader, writer = await plane.send(STREAM)
    whole_reader, whole_writer = await plane.send(CHAT)
    async with asyncio.timeout(5):
        while len(first.bodies) < 2:
            await asyncio.sleep(0.005)
    assert plane.worker._stats().streams == 0
    begin.set()
    async with asyncio.timeout(5):
        await reader.readuntil(event("a"))
        assert plane.worker._stats().streams == 1
        go_on.set()
        assert DONE in await reader.read()
        await whole_reader.read()
    assert plane.worker._stats().streams == 0
    writer.close()
    whole_writer.close()
