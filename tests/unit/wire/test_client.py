"""A pool connection: the answer in order, exactly one end, silence after close."""

import asyncio
import contextlib
import gc
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.wire.client import MAX_HEAD_BYTES, ClientConnection
from gateway.wire.http import AnswerHead
from gateway.wire.repeats import KnownAnswers
from tests.unit.alive import alive
from tests.unit.wire.rig import until


class Ear:
    """A listener that writes down what it hears."""

    def __init__(self) -> None:
        self.heard: list[object] = []
        self.framed = 0
        self.reason = ""

    def on_head(self, head: AnswerHead, length: int | None) -> None:
        self.heard.append(head.status)

    def on_body(self, data: bytes) -> None:
        self.heard.append(data)

    def on_chunk(self, data: bytes, frame: bytes) -> None:
        assert frame == b"%x\r\n%b\r\n" % (len(data), data)
        self.framed += 1
        self.heard.append(data)

    def on_whole(self, head: AnswerHead, body: bytes) -> bool:
        return False

    def on_end(self) -> None:
        self.heard.append("end")

    def on_lost(self, answered: bool, reason: str) -> None:
        self.reason = reason
        self.heard.append(("lost", answered, reason.split(":", maxsplit=1)[0]))

    def on_writable(self, writable: bool) -> None:
        self.heard.append(("writable", writable))

    @property
    def over(self) -> bool:
        return any(word == "end" or (isinstance(word, tuple) and word[0] == "lost") for word in self.heard)


async def play(script: Callable[[asyncio.StreamWriter], None]) -> tuple[ClientConnection, Ear, asyncio.Server]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        script(writer)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    _, connection = await asyncio.get_running_loop().create_connection(ClientConnection, "127.0.0.1", port)
    ear = Ear()
    connection.send(b"GET / HTTP/1.1\r\nHost: p\r\n\r\n", b"", ear)
    await until(lambda: ear.over)
    return connection, ear, server


async def test_sized_answer_in_one_read_is_head_body_end() -> None:
    """The three reports come in order, and the connection may be used again."""
    connection, ear, server = await play(lambda w: w.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"))
    assert ear.heard == [200, b"hi", "end"]
    assert connection.reusable
    connection.close()
    server.close()


async def test_interim_answers_are_not_reported() -> None:
    """100 and 103 are swallowed; the final answer counts."""
    connection, ear, server = await play(
        lambda w: w.write(
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n"
        )
    )
    assert ear.heard == [204, "end"]
    connection.close()
    server.close()


async def test_an_answer_without_length_ends_with_the_connection() -> None:
    """RFC 9112 §6.3 (8): the close is the end, and the connection is not reused."""

    def script(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\nabc")
        writer.close()

    connection, ear, server = await play(script)
    assert ear.heard == [200, b"abc", "end"]
    assert not connection.reusable
    server.close()


async def test_a_cut_answer_is_lost_not_ended() -> None:
    """A sized or chunked answer that breaks off is reported as lost after its first byte."""

    def script(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
        writer.close()

    _, ear, server = await play(script)
    assert ear.heard == [200, b"abc", ("lost", True, "closed")]
    server.close()


async def test_garbage_is_not_http() -> None:
    """Bytes that are no HTTP end the connection and say so."""
    connection, ear, server = await play(lambda w: w.write(b"SSH-2.0-OpenSSH\r\n\r\n"))
    assert ear.heard == [("lost", True, "not HTTP")]
    await until(lambda: not connection.alive)
    server.close()


async def test_close_before_any_byte_is_unanswered() -> None:
    """A server that closes at once is told apart from one that broke off."""
    _, ear, server = await play(lambda w: w.close())
    assert ear.heard == [("lost", False, "closed")]
    server.close()


async def test_nothing_is_heard_after_close() -> None:
    """close() is silent: neither end nor lost reach the listener, and the server sees the connection go."""
    gone = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nx")
        with contextlib.suppress(ConnectionError):
            await reader.read()
        gone.set()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    _, connection = await asyncio.get_running_loop().create_connection(ClientConnection, "127.0.0.1", port)
    ear = Ear()
    connection.send(b"GET / HTTP/1.1\r\nHost: p\r\n\r\n", b"", ear)
    await until(lambda: ear.heard == [200, b"x"])
    connection.close()
    await asyncio.wait_for(gone.wait(), 5)
    assert ear.heard == [200, b"x"]
    server.close()


@pytest.mark.parametrize("more", [b"XX", b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx"])
async def test_bytes_behind_a_whole_answer_cost_the_connection_not_the_answer(more: bytes) -> None:
    """A pool whose length is too small by its own newline is out of step, but its answer is whole."""
    connection, ear, server = await play(lambda w: w.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi" + more))
    assert ear.heard == [200, b"hi", "end"]
    assert not connection.reusable
    connection.close()
    server.close()


async def test_what_came_before_a_fault_is_reported() -> None:
    """The bytes of a chunk are heard although the next chunk, in the same read, is not HTTP."""
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    _, ear, server = await play(lambda w: w.write(head + b"2\r\nhi\r\nnonsense"))
    assert ear.heard == [200, b"hi", ("lost", True, "not HTTP")]
    server.close()


async def test_a_status_that_does_not_exist_is_not_http() -> None:
    """Below 100 there is none; an answer with it must not wait for a better one."""
    _, ear, server = await play(lambda w: w.write(b"HTTP/1.1 000 OK\r\nContent-Length: 2\r\n\r\nhi"))
    assert ear.heard == [("lost", True, "not HTTP")]
    server.close()


class Pausing(Ear):
    """A listener whose client is slow: it stops the reading at the first byte of body."""

    def __init__(self, connection: ClientConnection) -> None:
        super().__init__()
        self.connection = connection

    def on_body(self, data: bytes) -> None:
        super().on_body(data)
        self.connection.pause()


async def test_a_pause_ends_with_its_answer() -> None:
    """The last read of an answer may pause the connection; the next answer on it is read all the same."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(1024):
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    _, connection = await asyncio.get_running_loop().create_connection(ClientConnection, "127.0.0.1", port)
    for _ in range(2):
        ear = Pausing(connection)
        connection.send(b"GET / HTTP/1.1\r\nHost: p\r\n\r\n", b"", ear)
        await until(lambda ear=ear: ear.over)
        assert ear.heard == [200, b"hi", "end"]
    connection.close()
    server.close()


async def test_an_answer_before_the_request_is_out_ends_the_connection() -> None:
    """The rest of the body would be the next request to a server that does not read it."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    _, connection = await asyncio.get_running_loop().create_connection(ClientConnection, "127.0.0.1", port)
    ear = Ear()
    body = b"x" * 20_000_000
    connection.send(b"POST / HTTP/1.1\r\nHost: p\r\nContent-Length: %d\r\n\r\n" % len(body), body, ear)
    await until(lambda: ear.over)
    assert ear.heard[-1] == "end"
    assert not connection.reusable
    connection.close()
    server.close()


def test_a_closed_connection_leaves_no_cycle() -> None:
    """Pools that close after each answer must not fill memory until the collector comes by."""
    gc.collect()
    gc.disable()
    before = alive(ClientConnection)
    try:
        connection = ClientConnection()
        connection.connection_lost(None)
        del connection
        assert alive(ClientConnection) == before
    finally:
        gc.enable()


class StillTransport(asyncio.Transport):
    """Takes what is written, and is never full."""

    def write(self, data: object) -> None: ...

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return False

    def abort(self) -> None: ...


def sized(body: bytes, status: int = 200) -> bytes:
    return b"HTTP/1.1 %d X\r\nServer: s\r\nContent-Length: %d\r\n\r\n%b" % (status, len(body), body)


def chunked(*chunks: bytes) -> bytes:
    framed = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks if chunk)
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%b0\r\n\r\n" % framed


_BODIES = st.binary(max_size=300)
_ANSWERS = st.one_of(
    st.tuples(st.sampled_from([200, 404]), _BODIES).map(lambda made: (made[0], made[1], sized(made[1], made[0]))),
    st.lists(_BODIES, max_size=6).map(lambda chunks: (200, b"".join(chunks), chunked(*chunks))),
)


@given(st.lists(st.tuples(_ANSWERS, st.lists(st.integers(1, 120), max_size=12)), min_size=1, max_size=8))
def test_however_answers_are_cut_the_same_is_heard(
    answers: list[tuple[tuple[int, bytes, bytes], list[int]]],
) -> None:
    """Answers with few heads on two connections of one endpoint, in one read each or cut anywhere."""
    known = KnownAnswers()
    connections = [ClientConnection(known), ClientConnection(known)]
    for connection in connections:
        connection.connection_made(StillTransport())
    for number, ((status, body, data), sizes) in enumerate(answers):
        connection, ear, at = connections[number % 2], Ear(), 0
        connection.send(b"GET / HTTP/1.1\r\n\r\n", b"", ear)
        for size in [*sizes, len(data)]:
            if data[at : at + size]:
                connection.data_received(data[at : at + size])
            at += size
        assert ear.heard[0] == status
        assert b"".join(word for word in ear.heard[1:-1] if isinstance(word, bytes)) == body
        assert ear.heard[-1] == "end"
        assert connection.reusable


@given(st.lists(st.binary(min_size=1, max_size=5_000), min_size=2, max_size=6))
def test_a_chunk_in_a_read_of_its_own_is_passed_framed(chunks: list[bytes]) -> None:
    """As runtimes stream: the listener gets the frame for each chunk after the first, and every byte once."""
    connection, ear = ClientConnection(), Ear()
    connection.connection_made(StillTransport())
    connection.send(b"GET / HTTP/1.1\r\n\r\n", b"", ear)
    connection.data_received(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    for chunk in chunks:
        connection.data_received(b"%x\r\n%b\r\n" % (len(chunk), chunk))
    connection.data_received(b"0\r\n\r\n")
    assert ear.heard == [200, *chunks, "end"]
    assert ear.framed == len(chunks) - 1


@pytest.mark.parametrize(
    "odd",
    [b"A\r\n0123456789\r\n", b"0a\r\n0123456789\r\n", b"a;x=1\r\n0123456789\r\n", b"5\r\n01234\r\n5\r\n56789\r\n"],
)
def test_chunks_that_we_would_frame_otherwise_are_parsed(odd: bytes) -> None:
    """Upper case, leading zeros, extensions, two in one read: the listener gets the body, to be framed anew."""
    connection, ear = ClientConnection(), Ear()
    connection.connection_made(StillTransport())
    connection.send(b"GET / HTTP/1.1\r\n\r\n", b"", ear)
    connection.data_received(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n")
    for data in (odd, b"1\r\ny\r\n", b"0\r\n\r\n"):
        connection.data_received(data)
    assert ear.heard == [200, b"x", b"0123456789", b"y", "end"]
    assert ear.framed == 1


async def test_a_head_that_is_too_large_is_told_as_that() -> None:
    """Not in the parser's words for a callback that raised."""
    head = b"HTTP/1.1 200 OK\r\nX: " + b"x" * MAX_HEAD_BYTES + b"\r\n\r\n"
    connection, ear, server = await play(lambda writer: writer.write(head))
    assert ear.reason == "not HTTP: answer head too large"
    connection.close()
    server.close()
