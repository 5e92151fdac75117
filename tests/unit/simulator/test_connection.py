"""One connection: parsing, order, keep-alive, ways to end."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from gateway.simulator.connection import Connection, Request, chunk


class Echo:
    """Answers every request with its method, path and body, when told to."""

    def __init__(self) -> None:
        self.registry: set[Connection] = set()
        self.held: list[tuple[Connection, Request]] = []
        self.hold = False

    def handle(self, connection: Connection, request: Request) -> None:
        if self.hold:
            self.held.append((connection, request))
        else:
            self.answer(connection, request)

    def answer(self, connection: Connection, request: Request) -> None:
        connection.respond(200, f"{request.method} {request.path} {request.body.decode()}".encode(), "text/plain")


@asynccontextmanager
async def _serving(echo: Echo, limit: int = 1000) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(echo.handle, echo.registry, limit), "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    try:
        yield reader, writer
    finally:
        writer.close()
        server.close()


async def _answer(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    size = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    return head, await reader.readexactly(size)


def _post(body: bytes, extra: bytes = b"") -> bytes:
    return b"POST /x?q=1 HTTP/1.1\r\nHost: a\r\n%bContent-Length: %d\r\n\r\n%b" % (extra, len(body), body)


async def test_keep_alive_and_order() -> None:
    """Pipelined requests are answered one after another on one connection."""
    echo = Echo()
    async with _serving(echo) as (reader, writer):
        writer.write(_post(b"1") + _post(b"2") + _post(b"3"))
        assert [(await _answer(reader))[1] for _ in range(3)] == [b"POST /x 1", b"POST /x 2", b"POST /x 3"]
        assert next(iter(echo.registry)).idle


async def test_later_requests_wait_for_the_answer() -> None:
    """While one request is being answered the next is not begun."""
    echo = Echo()
    echo.hold = True
    async with _serving(echo) as (reader, writer):
        writer.write(_post(b"1") + _post(b"2"))
        while not echo.held:
            await asyncio.sleep(0.001)
        assert len(echo.held) == 1
        echo.hold = False
        echo.answer(*echo.held[0])
        assert [(await _answer(reader))[1] for _ in range(2)] == [b"POST /x 1", b"POST /x 2"]


async def test_chunked_request_and_expect() -> None:
    """A chunked body arrives whole; an Expect is answered before it."""
    async with _serving(Echo()) as (reader, writer):
        writer.write(b"POST /x HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n")
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100")
        writer.write(b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
        assert (await _answer(reader))[1] == b"POST /x abcde"


async def test_close_is_honoured() -> None:
    """After Connection: close the connection ends, and the answer says so."""
    async with _serving(Echo()) as (reader, writer):
        writer.write(_post(b"1", b"Connection: close\r\n"))
        head, _ = await _answer(reader)
        assert b"connection: close" in head
        assert await reader.read() == b""


async def test_bytes_that_are_no_http() -> None:
    """Nonsense gets 400 and the end."""
    async with _serving(Echo()) as (reader, writer):
        writer.write(b"\x16\x03\x01 nonsense\r\n\r\n")
        head, _ = await _answer(reader)
        assert head.startswith(b"HTTP/1.1 400")
        assert await reader.read() == b""


async def test_too_large_is_told_to_the_handler() -> None:
    """A body above the limit is not kept; the request is handed on as too large."""
    async with _serving(Echo(), limit=10) as (reader, writer):
        writer.write(_post(b"x" * 50))
        assert (await _answer(reader))[1] == b"POST /too-large "


@pytest.mark.parametrize("how", ["reset", "close"])
async def test_gone_is_told_once(how: str) -> None:
    """A client that leaves while it is being answered is reported at once; after our own close it is not."""
    echo = Echo()
    echo.hold = True
    told: list[str] = []
    async with _serving(echo) as (_, writer):
        writer.write(_post(b"1"))
        while not echo.held:
            await asyncio.sleep(0.001)
        connection = echo.held[0][0]
        connection.on_gone = lambda: told.append("gone")
        if how == "close":
            connection.close()
        else:
            writer.transport.abort()
        while echo.registry:
            await asyncio.sleep(0.001)
    assert told == ([] if how == "close" else ["gone"])


async def test_reset_is_a_reset() -> None:
    """``reset`` is seen by the client as a broken connection, not as an end."""
    echo = Echo()
    echo.hold = True
    async with _serving(echo) as (reader, writer):
        writer.write(_post(b"1"))
        while not echo.held:
            await asyncio.sleep(0.001)
        echo.held[0][0].reset()
        with pytest.raises(ConnectionResetError):
            await reader.read()


async def test_stream_framing() -> None:
    """A stream is chunked, ends with the last chunk, and the connection serves on."""
    echo = Echo()
    echo.hold = True
    async with _serving(echo) as (reader, writer):
        writer.write(_post(b"1"))
        while not echo.held:
            await asyncio.sleep(0.001)
        connection = echo.held[0][0]
        connection.write(connection.begin_stream([("x-a", "1")]))
        connection.write(chunk(b"data: 1\n\n"))
        connection.end_stream(chunk(b"data: 2\n\n"))
        head = await reader.readuntil(b"\r\n\r\n")
        assert b"transfer-encoding: chunked" in head
        assert b"x-a: 1" in head
        assert await reader.readuntil(b"0\r\n\r\n") == b"9\r\ndata: 1\n\n\r\n9\r\ndata: 2\n\n\r\n0\r\n\r\n"
        echo.hold = False
        writer.write(_post(b"2"))
        assert (await _answer(reader))[1] == b"POST /x 2"
