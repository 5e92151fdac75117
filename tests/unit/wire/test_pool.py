"""Kept-alive connections: newest first, never a stale one, dials that can be given up."""

import asyncio
import socket
import ssl
from collections.abc import Callable, Coroutine

import pytest

from gateway.wire.client import ClientConnection
from gateway.wire.pool import IDLE_S, ConnectionPool, why_of
from tests.unit.wire.rig import until


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


class Setting:
    def __init__(self) -> None:
        self.clock = Clock()
        self.accepted: list[asyncio.StreamWriter] = []

    async def start(self) -> "Setting":
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self.accepted.append(writer)
            while await reader.read(1024):
                writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")

        self.server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = self.server.sockets[0].getsockname()[1]
        self.pool = ConnectionPool(asyncio.get_running_loop(), "127.0.0.1", port, None, self.clock)
        return self

    async def used(self) -> ClientConnection:
        """A connection that has served one request and is reusable."""
        got: list[ClientConnection | None] = []
        self.pool.dial(lambda connection, _reason: got.append(connection))
        await until(lambda: bool(got))
        connection = got[0]
        assert connection is not None
        ended = asyncio.Event()

        class Ear:
            def on_head(self, head: object, length: int | None) -> None: ...
            def on_body(self, data: bytes) -> None: ...
            def on_chunk(self, data: bytes, frame: bytes) -> None: ...
            def on_whole(self, head: object, body: bytes) -> bool:
                return False

            def on_lost(self, answered: bool, reason: str) -> None: ...
            def on_writable(self, writable: bool) -> None: ...
            def on_end(self) -> None:
                ended.set()

        connection.send(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n", b"", Ear())
        await asyncio.wait_for(ended.wait(), 5)
        return connection


@pytest.fixture
async def setting() -> Setting:
    return await Setting().start()


async def test_a_returned_connection_is_taken_again(setting: Setting) -> None:
    """Newest first, so that the others can age out."""
    one, two = await setting.used(), await setting.used()
    setting.pool.give_back(one, setting.clock())
    setting.pool.give_back(two, setting.clock())
    assert setting.pool.take(setting.clock()) is two
    assert setting.pool.take(setting.clock()) is one
    assert setting.pool.take(setting.clock()) is None
    one.close()
    two.close()
    setting.server.close()


async def test_connections_age_out_before_servers_close_them(setting: Setting) -> None:
    """Older than the idle bound: closed instead of taken; the sweep does the same."""
    one = await setting.used()
    setting.pool.give_back(one, setting.clock())
    setting.clock.now += IDLE_S + 0.1
    assert setting.pool.take(setting.clock()) is None
    await until(lambda: not one.alive)
    two = await setting.used()
    setting.pool.give_back(two, setting.clock())
    setting.clock.now += IDLE_S + 0.1
    setting.pool.sweep()
    assert setting.pool.idle == 0
    setting.server.close()


async def test_a_connection_that_the_server_closes_leaves_the_pool(setting: Setting) -> None:
    """While idle: it is gone at once, not found out by the next request."""
    one = await setting.used()
    setting.pool.give_back(one, setting.clock())
    setting.accepted[0].close()
    await until(lambda: setting.pool.idle == 0)
    setting.server.close()


async def test_a_given_up_dial_closes_what_it_opened(setting: Setting) -> None:
    """Nobody hears of it, and nothing stays open."""
    heard: list[object] = []
    setting.pool.dial(lambda connection, reason: heard.append((connection, reason))).cancel()
    await asyncio.sleep(0)
    await until(lambda: not setting.pool._tasks)
    assert heard == []
    setting.server.close()


async def test_a_refused_dial_says_why(setting: Setting) -> None:
    """The reason is the system's own words."""
    heard: list[tuple[object, str]] = []
    pool = ConnectionPool(asyncio.get_running_loop(), "127.0.0.1", 1, None, setting.clock)
    pool.dial(lambda connection, reason: heard.append((connection, reason)))
    await until(lambda: bool(heard))
    assert heard[0][0] is None
    assert heard[0][1]
    setting.server.close()


async def test_a_closed_pool_keeps_nothing(setting: Setting) -> None:
    """After a reload removed the endpoint, what comes back is closed."""
    one = await setting.used()
    setting.pool.close()
    setting.pool.give_back(one, setting.clock())
    assert setting.pool.idle == 0
    await until(lambda: not one.alive)
    setting.server.close()


async def test_a_name_that_cannot_be_resolved_is_an_answer(setting: Setting) -> None:
    """Not every fault of a dial is the system's; each is told at once."""
    heard: list[tuple[object, str]] = []
    pool = ConnectionPool(asyncio.get_running_loop(), "a" * 70 + ".test", 1, None, setting.clock)
    pool.dial(lambda connection, reason: heard.append((connection, reason)))
    await until(lambda: bool(heard))
    assert heard[0][0] is None
    assert heard[0][1]
    setting.server.close()


async def test_a_connection_that_is_lost_before_it_is_handed_over_is_no_connection(setting: Setting) -> None:
    """The server hung up at once: the dial has failed."""

    class Loop:
        async def create_connection(self, factory: Callable[[], ClientConnection], *_: object, **__: object) -> object:
            return None, factory()

        def create_task(self, work: Coroutine[None, None, None], *, name: str) -> asyncio.Task[None]:
            return asyncio.get_running_loop().create_task(work, name=name)

    heard: list[tuple[object, str]] = []
    pool = ConnectionPool(Loop(), "127.0.0.1", 1, None, setting.clock)  # type: ignore[arg-type]  # what a dial needs of a loop
    pool.dial(lambda connection, reason: heard.append((connection, reason)))
    await until(lambda: bool(heard))
    assert heard == [(None, "closed at once")]
    setting.server.close()


def mismatch() -> ssl.SSLError:
    """As a certificate of another host gives it."""
    error = ssl.SSLCertVerificationError(1, "[SSL: CERTIFICATE_VERIFY_FAILED] not valid for 'gpu-7.internal'")
    error.reason = "CERTIFICATE_VERIFY_FAILED"
    return error


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (mismatch(), "TLS, certificate verify failed"),
        (OSError(111, "Connect call failed ('10.1.2.3', 8000)"), "Connection refused"),
        (socket.gaierror(-2, "gpu-7.internal: Name or service not known"), "its name is not known"),
        (OSError("gpu-7.internal has no address"), "OSError"),
        (OSError(24, "Too many open files"), ""),
        (OSError(99, "Cannot assign requested address"), ""),
    ],
)
def test_no_endpoint_is_named_in_why_it_cannot_be_reached(error: OSError, why: str) -> None:
    """The words reach clients."""
    assert why_of(error) == why


async def test_a_handshake_that_fails_is_told(setting: Setting) -> None:
    """From a server that speaks no TLS."""
    port = setting.server.sockets[0].getsockname()[1]
    pool = ConnectionPool(asyncio.get_running_loop(), "127.0.0.1", port, ssl.create_default_context(), setting.clock)
    got: list[tuple[ClientConnection | None, str]] = []
    pool.dial(lambda connection, reason: got.append((connection, reason)))
    await until(lambda: bool(setting.accepted))
    setting.accepted[0].write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    await until(lambda: bool(got))
    assert got[0][0] is None
    assert got[0][1].startswith("TLS, ")
