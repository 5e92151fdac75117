"""Real parts of a worker without its sockets. Compiled classes look at what they are given, so none of these stands in
for another; only what was never the gateway's own (a transport, a loop) is played here."""

import asyncio
import dataclasses
import tempfile
from collections.abc import Iterable
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

from gateway.dataplane.board import Board
from gateway.dataplane.exchange import Exchange
from gateway.dataplane.fleet import Fleet, Generation
from gateway.dataplane.forward import Forwarder
from gateway.dataplane.relay import Relay
from gateway.errors import ApiError
from gateway.model.precision import Precision
from gateway.model.table import Endpoint, Limits, Pool, Table
from gateway.wire.http import Headers, Request
from gateway.wire.server import ServerConnection, ServerContext
from gateway.wire.wheel import Wheel
from tests.unit.core.test_decide import table
from tests.unit.dataplane.plane import Reply

_ROWS = count()


class Transport(asyncio.Transport):
    """Leads nowhere, and keeps what was written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.closing = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data

    def is_closing(self) -> bool:
        return self.closing

    def close(self) -> None:
        self.closing = True

    abort = close


class Client:
    """A client's connection whose requests are the test's to answer."""

    def __init__(self, now: float = 0.0) -> None:
        def clock() -> float:
            return now

        self.requests: list[Request] = []
        self.transport = Transport()
        context = ServerContext(self, Wheel(clock), clock=clock, wall=clock, soon=lambda call: call())
        self.connection = ServerConnection(context)
        self.connection.connection_made(self.transport)

    def ask(self, path: str = "/v1/chat/completions", body: bytes = b"{}") -> Request:
        """Send a request; the connection reads it, and waits for its answer."""
        head = f"POST {path} HTTP/1.1\r\nHost: g\r\nContent-Length: {len(body)}\r\n\r\n"
        self.connection.data_received(head.encode() + body)
        return self.requests[-1]

    @property
    def answers(self) -> list[Reply]:
        """What was answered so far, each with a length."""
        data, found = self.transport.written, []
        while data:
            reply = Reply(data)
            end = data.index(b"\r\n\r\n") + 4 + int(reply.header["content-length"])
            found.append(Reply(data[:end]))
            data = data[end:]
        return found

    # wire.server.Handler

    def handle(self, connection: ServerConnection, request: Request) -> None:
        self.requests.append(request)

    def allow(self, headers: Headers) -> None:
        """Everybody may."""

    def refuse(self, connection: ServerConnection, error: ApiError, headers: Headers) -> None:
        raise error


@cache
def board() -> Board:
    """One for all tests of a process; its file is gone once it is mapped."""
    with tempfile.TemporaryDirectory() as folder:
        return Board(Path(folder) / "board", 0, 1)


def pool_of(name: str, *, limit: int | None = None, room: int = 0, **more: Any) -> Pool:
    """A pool of model ``m`` with one endpoint. Of ``limit`` requests in flight, it has ``room`` for so many."""
    row = -1
    if limit is not None:
        row = next(_ROWS)  # nobody else's
        for _ in range(limit - room):
            board().enter(row)
    endpoint = Endpoint(f"{name}/0", name, "http", "127.0.0.1", 1, "", row)
    return Pool(
        name, more.pop("model", "m"), "openai", Precision("bf16"), (endpoint,), limits=Limits(inflight=limit), **more
    )


def table_of(pools: Iterable[Pool], **more: Any) -> Table:
    """A small table with these pools."""
    return dataclasses.replace(table(pools={pool.name: pool for pool in pools}), **more)


def generation_of(made: Table) -> Generation:
    """The table with endpoints that were never dialled, on a loop that dials none."""
    idle = asyncio.AbstractEventLoop()  # type: ignore[abstract]
    return Fleet(idle, board(), lambda: 0.0).adopt(made)


def attempt_of(exchange: Exchange) -> Relay:
    """An attempt in the first pool of the exchange's generation, of which nothing was sent yet."""
    forwarder = Forwarder(wheel=Wheel(lambda: 0.0), board=board(), clock=lambda: 0.0, rand=lambda: 0.5)
    pool = next(iter(exchange.generation.pools.values()))
    return Relay(forwarder, exchange, pool, pool.endpoints[0])
