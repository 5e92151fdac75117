"""Names with several addresses: the first that accepts is taken, and the others leave nothing behind."""

import asyncio
import socket
from collections.abc import Iterator

import pytest

from gateway.wire.pool import ConnectionPool
from gateway.wire.reach import Address, alternating, connect, first_of, is_literal
from tests.unit.wire.rig import until

SOON_S = 0.01


def address(host: str, port: int, family: int = socket.AF_INET) -> Address:
    """As getaddrinfo gives it."""
    return (family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (host, port))


@pytest.fixture
def hole() -> Iterator[Address]:
    """An address that never answers: its backlog is full, so the system drops what knocks."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(0)
    waiting = [socket.socket() for _ in range(4)]
    for one in waiting:
        one.setblocking(False)
        one.connect_ex(listener.getsockname())
    yield address(*listener.getsockname())
    for one in (*waiting, listener):
        one.close()


@pytest.fixture
def nobody() -> Address:
    """An address that refuses."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return address(*one.getsockname())


class Server:
    """One that accepts, and knows who came."""

    async def start(self) -> "Server":
        self.came: list[asyncio.StreamReader] = []
        self.peers: list[object] = []
        self.server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.address = address(*self.server.sockets[0].getsockname())
        return self

    def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.came.append(reader)
        self.peers.append(writer.get_extra_info("peername"))


@pytest.fixture
async def server() -> Server:
    return await Server().start()


async def test_an_address_that_never_answers_is_passed(hole: Address, server: Server) -> None:
    """The next is tried beside it; of the dead one's attempt nothing is left."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(5):
        sock = await first_of(loop, [hole, hole, server.address], SOON_S)
    assert sock.getpeername() == server.address[4]
    sock.close()
    await until(lambda: asyncio.all_tasks() == {asyncio.current_task()})
    server.server.close()


async def test_an_address_that_refuses_is_passed_at_once(nobody: Address, server: Server) -> None:
    """Whatever the stagger."""
    async with asyncio.timeout(5):
        sock = await first_of(asyncio.get_running_loop(), [nobody, server.address], 3600)
    assert sock.getpeername() == server.address[4]
    sock.close()
    server.server.close()


async def test_only_one_connection_stays(server: Server) -> None:
    """Where several addresses accept, the others are closed again."""
    sock = await first_of(asyncio.get_running_loop(), [server.address] * 3, 0)
    _, last = await asyncio.open_connection(*server.address[4])  # accepted behind all others
    await until(lambda: any(last.get_extra_info("sockname") == peer for peer in server.peers))
    await until(lambda: sum(not reader.at_eof() for reader in server.came) == 2)
    last.close()
    await until(lambda: asyncio.all_tasks() == {asyncio.current_task()})
    sock.close()
    server.server.close()


async def test_none_that_accepts_is_an_error(nobody: Address) -> None:
    """The last one's; and a name without any address has one of its own."""
    with pytest.raises(ConnectionRefusedError):
        await first_of(asyncio.get_running_loop(), [nobody, nobody], SOON_S)
    with pytest.raises(OSError, match="no address"):
        await first_of(asyncio.get_running_loop(), [], SOON_S)


async def test_giving_up_leaves_nothing(hole: Address) -> None:
    """The dial's deadline cancels it in the middle."""
    race = asyncio.create_task(first_of(asyncio.get_running_loop(), [hole, hole], SOON_S))
    await until(lambda: len(asyncio.all_tasks()) == 4)
    race.cancel()
    await until(lambda: asyncio.all_tasks() == {asyncio.current_task()})
    assert race.cancelled()


async def test_a_name_is_connected_to(server: Server) -> None:
    """By the pool too, which asks the resolver anew for each dial."""
    loop, port = asyncio.get_running_loop(), server.address[4][1]
    (await connect(loop, "localhost", port)).close()
    got: list[object] = []
    pool = ConnectionPool(loop, "localhost", port, None, loop.time)
    pool.dial(lambda connection, reason: got.append((connection, reason)))
    await until(lambda: bool(got))
    assert got[0][1] == ""  # type: ignore[index]
    got[0][0].close()  # type: ignore[index]
    server.server.close()


def test_families_take_turns() -> None:
    """One dead family costs one stagger, however many addresses it has."""
    six = [address(f"::{number}", 1, socket.AF_INET6) for number in (1, 2, 3)]
    four = [address("127.0.0.1", 1)]
    assert alternating([*six, *four]) == [six[0], four[0], six[1], six[2]]
    assert alternating([*four, *six]) == [four[0], *six]
    assert alternating([]) == []


@pytest.mark.parametrize(
    ("host", "literal"), [("127.0.0.1", True), ("::1", True), ("localhost", False), ("10.0.0.1.test", False)]
)
def test_literals(host: str, literal: bool) -> None:
    """An address needs no resolver."""
    assert is_literal(host) is literal
