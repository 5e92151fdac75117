"""A client's connection: order, framing, limits, deadlines, and what the work is told."""

import asyncio
import gc
from collections.abc import AsyncIterator

import pytest

from gateway.errors import ApiError
from gateway.wire import server
from gateway.wire.server import ServerConnection
from tests.unit.alive import alive
from tests.unit.wire.rig import Rig, until

POST = b"POST /v1/x HTTP/1.1\r\nHost: g\r\nContent-Length: 2\r\n\r\nhi"
BIG = b"POST /v1/x HTTP/1.1\r\nHost: g\r\nContent-Length: 200000\r\n\r\n" + b"x" * 200_000


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    rig = await Rig().start()
    yield rig
    await rig.stop()


async def test_a_whole_request_reaches_the_handler_once(rig: Rig) -> None:
    """Method, target, lower-case fields and the complete body arrive, however the bytes are cut."""
    rig.on_request = lambda connection, _: connection.answer(200, b"X-A: 1\r\n", b"ok")
    reader, writer = await rig.dial()
    for byte in POST:
        writer.write(bytes([byte]))
        await writer.drain()
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\nX-A: 1\r\nDate: ") and b"Content-Length: 2\r\n" in head
    assert await reader.readexactly(2) == b"ok"
    (request,) = rig.requests
    assert (request.method, request.target, request.body) == (b"POST", b"/v1/x", b"hi")
    assert request.fields[b"host"] == b"g"
    writer.close()


async def test_a_handler_that_answers_at_once_leaves_the_connection_in_use(rig: Rig) -> None:
    """Before it even returns: refusals do that, and the client goes on with its connection."""
    rig.on_request = lambda connection, request: connection.answer(404, b"", request.body)
    reader, writer = await rig.dial()
    for body in (b"ab", b"cd", b"ef"):
        writer.write(POST.replace(b"hi", body))
        await reader.readuntil(b"\r\n\r\n")
        assert await asyncio.wait_for(reader.readexactly(2), 5) == body
    assert len(set(rig.connections)) == 1
    assert all(job.heard == [] for job in rig.jobs)
    writer.close()


async def test_pipelined_requests_are_answered_in_order(rig: Rig) -> None:
    """A second request waits for the first one's answer, and both are answered in order."""
    reader, writer = await rig.dial()
    writer.write(POST + POST.replace(b"hi", b"ho"))
    await until(lambda: len(rig.requests) == 1)
    rig.connections[0].answer(200, b"", rig.requests[0].body)
    await until(lambda: len(rig.requests) == 2)
    rig.connections[1].answer(200, b"", rig.requests[1].body)
    data = b""
    while data.count(b"\r\n\r\nh") < 2:
        data += await asyncio.wait_for(reader.read(4096), 5)
    assert data.index(b"\r\n\r\nhi") < data.index(b"\r\n\r\nho")
    writer.close()


async def test_a_very_long_pipeline_does_not_nest(rig: Rig) -> None:
    """Thousands of pipelined requests behind a slow one are answered without exhausting the stack."""
    reader, writer = await rig.dial()
    writer.write(POST * 1500)
    await until(lambda: len(rig.requests) == 1)
    rig.on_request = lambda connection, _: connection.answer(200, b"", b"k")
    rig.connections[0].answer(200, b"", b"k")
    seen = 0
    async with asyncio.timeout(10):
        while seen < 1500:
            seen += (await reader.read(65536)).count(b"HTTP/1.1 200")
    writer.close()


@pytest.mark.parametrize(
    "framing",
    [
        b"Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nG",
        b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        b"Content-Length: +5\r\n\r\nhello",
        b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    ],
)
async def test_b61_ambiguous_framing_is_refused_and_closed(rig: Rig, framing: bytes) -> None:
    """Two lengths, a length with a coding, a signed length, an unknown coding: 400 and close, nothing is handled."""
    answer = await rig.ask(b"POST /v1/x HTTP/1.1\r\nHost: g\r\n" + framing)
    assert answer.startswith(b"HTTP/1.1 400 ") and b"Connection: close" in answer
    assert b'"type":"invalid_request_error"' in answer
    assert rig.requests == []


async def test_chunked_bodies_are_joined(rig: Rig) -> None:
    """A chunked request body arrives whole."""
    rig.on_request = lambda connection, request: connection.answer(200, b"", request.body)
    answer = await rig.ask(
        b"POST / HTTP/1.1\r\nHost: g\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
    )
    assert answer.endswith(b"\r\n\r\nabcde")


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\nHost: g\r\n\r\n", 414),
        (b"GET / HTTP/1.1\r\nHost: g\r\nX: " + b"a" * 70_000 + b"\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\nHost: g\r\n" + b"X: a\r\n" * 120 + b"\r\n", 431),
        (b"POST / HTTP/1.1\r\nHost: g\r\nContent-Length: 99999999\r\n\r\n", 413),
        (b"POST / HTTP/1.1\r\nHost: g\r\nExpect: foo\r\nContent-Length: 1\r\n\r\n", 417),
        (b"BREW / HTTP/1.1\r\nHost: g\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00", 400),
    ],
)
async def test_limits_are_answered_in_openai_shape(rig: Rig, raw: bytes, status: int) -> None:
    """Too long, too many, too large, unknown expectation, not HTTP: the right status, a JSON error, then close."""
    answer = await rig.ask(raw)
    assert answer.startswith(b"HTTP/1.1 %d " % status)
    assert b'{"error":{"message":' in answer
    assert rig.requests == []


async def test_chunked_body_over_the_limit_is_refused_while_it_comes(rig: Rig) -> None:
    """A body without a declared length is refused at the limit, and the refusal survives the bytes still on the way."""
    rig.context.limits.max_body_bytes = 1000
    chunk = b"3e8\r\n" + b"x" * 1000 + b"\r\n"
    answer = await rig.ask(b"POST / HTTP/1.1\r\nHost: g\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk * 50)
    assert answer.startswith(b"HTTP/1.1 413 ")


async def test_expect_continue_is_answered_at_once(rig: Rig) -> None:
    """A client that waits for 100 gets it before it sends the body; too large a body gets 413 instead."""
    rig.on_request = lambda connection, request: connection.answer(200, b"", request.body)
    reader, writer = await rig.dial()
    writer.write(b"POST / HTTP/1.1\r\nHost: g\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
    assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
    writer.write(b"hi")
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
    writer.close()
    answer = await rig.ask(b"POST / HTTP/1.1\r\nHost: g\r\nExpect: 100-continue\r\nContent-Length: 999999999\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 413")


async def test_upgrade_offers_are_ignored(rig: Rig) -> None:
    """A client that offers h2c is served as HTTP/1.1, body and all."""
    rig.on_request = lambda connection, request: connection.answer(200, b"", request.body or b"none")
    answer = await rig.ask(
        b"POST / HTTP/1.1\r\nHost: g\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
        b"HTTP2-Settings: AAMAAABkAAQAAP__\r\nContent-Length: 2\r\n\r\nhi"
    )
    assert answer.startswith(b"HTTP/1.1 200")
    assert answer.endswith(b"hi")


async def test_streamed_answer_is_chunked_and_connection_stays(rig: Rig) -> None:
    """begin, send, end make a chunked answer; the connection takes the next request."""
    reader, writer = await rig.dial()
    writer.write(POST)
    await until(lambda: bool(rig.requests))
    connection = rig.connections[0]
    connection.begin(200, b"", None, b"one")
    connection.send(b"two")
    connection.end(b"three")
    data = await reader.readuntil(b"0\r\n\r\n")
    assert data.endswith(b"\r\n\r\n3\r\none\r\n3\r\ntwo\r\n5\r\nthree\r\n0\r\n\r\n")
    writer.write(POST)
    await until(lambda: len(rig.requests) == 2)
    writer.close()


async def test_http10_gets_no_chunks(rig: Rig) -> None:
    """An HTTP/1.0 client gets a plain body that ends with the connection."""
    reader, writer = await rig.dial()
    writer.write(b"GET / HTTP/1.0\r\nHost: g\r\n\r\n")
    await until(lambda: bool(rig.requests))
    connection = rig.connections[0]
    connection.begin(200, b"", None, b"one")
    connection.end(b"two")
    data = await asyncio.wait_for(reader.read(), 5)
    assert data.endswith(b"\r\n\r\nonetwo") and b"chunked" not in data
    writer.close()


async def test_a_client_that_leaves_is_reported_at_once(rig: Rig) -> None:
    """Close before the first byte of an answer reaches the work as ``gone``."""
    _, writer = await rig.dial()
    writer.write(POST)
    await until(lambda: bool(rig.jobs))
    writer.close()
    await until(lambda: rig.jobs[0].heard == ["gone"])


@pytest.mark.parametrize("more", [POST, POST * 3, POST + b"POST /v1/x HTTP/1.1\r\nHo", BIG])
async def test_a_pipelining_client_that_leaves_is_reported_at_once(rig: Rig, more: bytes) -> None:
    """What it has sent behind the request in progress, and how much, must not hide its end: its pool would go on."""
    _, writer = await rig.dial()
    writer.write(POST)
    await until(lambda: bool(rig.jobs))
    writer.write(more)
    await until(lambda: bool(rig.connections[0]._queue))
    writer.close()
    await until(lambda: rig.jobs[0].heard == ["gone"])
    assert len(rig.requests) == 1


async def test_what_is_read_behind_a_waiting_request_is_bounded(rig: Rig) -> None:
    """A client that pipelines without end fills its own buffers, and all of it is answered in the end."""
    reader, writer = await rig.dial()
    writer.write(POST)
    await until(lambda: bool(rig.jobs))
    connection = rig.connections[0]
    writer.write(BIG)
    await until(lambda: bool(connection._queue))
    for _ in range(40):
        writer.write(BIG)
    await until(lambda: not connection.transport.is_reading())
    queued = connection._queue
    assert queued is not None
    assert sum(len(request.body) for request in queued) < server.AHEAD_BYTES + 2 * 300_000
    rig.on_request = lambda connection, request: connection.answer(200, b"", b"%d" % len(request.body))
    connection.answer(200, b"", b"2")
    seen = 0
    async with asyncio.timeout(10):
        while seen < 42:
            seen += (await reader.read(65536)).count(b"HTTP/1.1 200")
    assert connection.transport.is_reading()
    writer.close()


async def test_requests_before_one_that_cannot_be_read_are_answered(rig: Rig) -> None:
    """It closes the connection, but not before its turn."""
    reader, writer = await rig.dial()
    writer.write(POST)
    await until(lambda: bool(rig.jobs))
    writer.write(POST)
    await until(lambda: bool(rig.connections[0]._queue))
    writer.write(b"garbage\r\n\r\n")
    await until(lambda: rig.connections[0]._refused)
    for number in (1, 2):
        await until(lambda: len(rig.requests) == number)  # noqa: B023 - awaited before the next one
        rig.connections[0].answer(200, b"", b"ok")
    data = await asyncio.wait_for(reader.read(), 5)
    assert data.count(b"HTTP/1.1 200") == 2
    writer.close()


async def test_a_client_that_does_not_read_pauses_the_work_and_is_cut(rig: Rig) -> None:
    """A full write buffer pauses the source; a client that stays away from its socket is cut off."""
    rig.context.stalled_s = 0.05
    _, writer = await rig.dial()
    writer.transport.pause_reading()
    writer.write(POST)
    await until(lambda: bool(rig.jobs))
    connection = rig.connections[0]
    connection.begin(200, b"", None, b"")
    while "pause" not in rig.jobs[0].heard:
        connection.send(b"x" * 65536)
        await asyncio.sleep(0)
    await until(lambda: rig.jobs[0].heard == ["pause", "gone"])
    writer.close()


async def test_slow_head_gets_408_and_idle_connections_close(rig: Rig) -> None:
    """A head that does not arrive in time is answered with 408."""
    rig.context.limits.head_s = 0.03
    answer = await rig.ask(b"POST / HTTP/1.1\r\nHos")
    assert answer.startswith(b"HTTP/1.1 408 ")


async def test_draining_closes_idle_now_and_busy_after_the_answer(rig: Rig) -> None:
    """On drain an idle connection closes, a busy one ends its answer with Connection: close."""
    idle_reader, idle_writer = await rig.dial()
    reader, writer = await rig.dial()
    writer.write(POST)
    await until(lambda: bool(rig.requests) and len(rig.context.connections) == 2)
    rig.context.drain()
    assert await asyncio.wait_for(idle_reader.read(), 5) == b""
    rig.connections[0].answer(200, b"", b"bye")
    data = await asyncio.wait_for(reader.read(), 5)
    assert b"Connection: close" in data and data.endswith(b"bye")
    writer.close()
    idle_writer.close()


@pytest.mark.parametrize("length", [None, 7])
async def test_a_stream_that_began_before_the_drain_closes_at_its_end(rig: Rig, length: int | None) -> None:
    """Its head promised to stay; but the drain would wait for this client's next request until its time is over."""
    reader, writer = await rig.dial()
    writer.write(POST)
    await until(lambda: bool(rig.requests))
    rig.connections[0].begin(200, b"", length, b"one")
    rig.context.drain()
    rig.connections[0].send(b"two!")
    rig.connections[0].end()
    data = await asyncio.wait_for(reader.read(), 5)
    assert b"Connection: close" not in data
    assert data.endswith(b"onetwo!" if length else b"3\r\none\r\n4\r\ntwo!\r\n0\r\n\r\n")
    await until(lambda: not rig.context.connections)
    writer.close()


@pytest.mark.parametrize("cut", [0, 20])
async def test_what_came_behind_a_stream_is_answered_in_a_drain(rig: Rig, cut: int) -> None:
    """A pipelined request that is here, or half here, is answered; that answer closes the connection."""
    reader, writer = await rig.dial()
    writer.write(POST + POST[: len(POST) - cut])
    await until(lambda: bool(rig.requests))
    rig.connections[0].begin(200, b"", None, b"one")
    rig.context.drain()
    rig.connections[0].end()
    writer.write(POST[len(POST) - cut :])
    await until(lambda: len(rig.requests) == 2)
    rig.connections[1].answer(200, b"", b"bye")
    data = await asyncio.wait_for(reader.read(), 5)
    assert b"Connection: close" in data
    assert data.endswith(b"bye")
    writer.close()


async def test_a_head_that_trickles_in_is_ended(rig: Rig) -> None:
    """A byte now and then does not move the head's deadline."""
    rig.context.limits.head_s = 0.1
    reader, writer = await rig.dial()
    answered = asyncio.create_task(reader.readuntil(b"\r\n\r\n"))
    writer.write(b"POST /")
    async with asyncio.timeout(5):
        while not answered.done():
            writer.write(b"a")
            await asyncio.sleep(0.02)
    writer.close()
    assert (await answered).startswith(b"HTTP/1.1 408")


async def test_an_unread_rest_of_a_last_answer_is_given_up(rig: Rig) -> None:
    """A client that stops reading near the end of an answer that closes the connection does not hold it for ever."""
    rig.context.stalled_s = 0.1
    rig.on_request = lambda connection, _request: connection.answer(200, b"", b"x" * 20_000_000, close=True)
    _, writer = await rig.dial()
    writer.transport.pause_reading()
    writer.write(POST)
    await until(lambda: bool(rig.connections))
    (connection,) = rig.connections
    connection.resume_writing()  # as if all but a little had been read
    await until(lambda: not rig.context.connections)
    writer.close()


async def test_an_answer_behind_an_unread_one_is_paused_from_its_start(rig: Rig) -> None:
    """The buffer is full already, so the loop announces no pause; the work must hear it all the same (B68)."""
    _, writer = await rig.dial()
    writer.transport.pause_reading()
    writer.write(POST)
    await until(lambda: len(rig.requests) == 1)
    rig.connections[0].answer(200, b"", b"x" * 20_000_000)
    writer.write(POST)
    await until(lambda: len(rig.requests) == 2)
    assert rig.jobs[1].heard[:1] == ["pause"]
    rig.jobs[1].heard.clear()
    rig.connections[1].begin(200, b"", None, b"more")
    assert rig.jobs[1].heard == ["pause"]
    writer.close()


async def test_nothing_is_begun_behind_an_answer_that_closes(rig: Rig) -> None:
    """A pipelined request behind it is the client's to send again: working on it would do it twice."""
    rig.on_request = lambda connection, _request: connection.answer(200, b"", b"bye", close=True)
    reader, writer = await rig.dial()
    writer.write(POST + POST)
    data = await asyncio.wait_for(reader.read(), 5)
    writer.close()
    assert data.count(b"HTTP/1.1 200") == 1
    assert len(rig.requests) == 1


async def test_a_cut_connection_tells_its_work(rig: Rig) -> None:
    """At once, because the process may be about to end; and once."""
    _, writer = await rig.dial()
    writer.write(POST)
    await until(lambda: bool(rig.jobs))
    rig.connections[0].cut()
    assert rig.jobs[0].heard == ["gone"]
    assert not rig.context.connections
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert rig.jobs[0].heard == ["gone"]
    writer.close()


async def test_a_long_body_without_leave_is_refused_at_its_head(rig: Rig) -> None:
    """The answer comes without the body, and the connection closes: what follows is not read as a request."""
    rig.refusal = ApiError(401, "invalid_api_key", "Who are you?")
    answer = await rig.ask(b"POST / HTTP/1.1\r\nHost: g\r\nContent-Length: 9999999\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 401") and b"Connection: close" in answer
    assert rig.requests == []


async def test_a_closed_connection_leaves_no_cycle(rig: Rig) -> None:
    """Clients that open a connection for each request must not fill memory until the collector comes by."""
    gc.collect()
    gc.disable()
    before = alive(ServerConnection)
    try:
        connection = ServerConnection(rig.context)
        rig.context.connections.add(connection)
        connection.connection_lost(None)
        del connection
        assert alive(ServerConnection) == before
    finally:
        gc.enable()
