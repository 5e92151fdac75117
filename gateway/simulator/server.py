"""The simulated runtime as a running server: listening, closing the door, keep-alive.

Owns the listening sockets and the life of connections. ``gateway.cli.simulate`` and tests call ``Server``.
"""

import asyncio
from collections.abc import Callable
from random import Random

from gateway.simulator.config import Config
from gateway.simulator.connection import Connection
from gateway.simulator.control import arm
from gateway.simulator.engine import Engine
from gateway.simulator.routes import Routes
from gateway.simulator.service import Service

_SWEEP_S = 0.25


class Server:
    """One simulated runtime on the running loop.

    ``port`` 0 lets the system choose; ``bound`` tells which. ``wall`` is the wall clock in seconds; ``nonce`` makes ids
    unique between servers.
    """

    def __init__(self, config: Config, wall: Callable[[], float], nonce: int) -> None:
        self.loop = asyncio.get_running_loop()
        self.engine = Engine(config, self.loop, Random(config.seed + 1))  # noqa: S311 - must be repeatable
        self.service = Service(config, self.engine, wall, nonce)
        self.routes = Routes(self.service, self)
        self.connections: set[Connection] = set()
        self.bound = 0
        self.control_bound = 0
        self._host = ""
        self._listener: asyncio.Server | None = None
        self._control: asyncio.Server | None = None
        self._sweeper: asyncio.TimerHandle | None = None
        self._opener: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._refusing = False

    async def start(self, host: str, port: int, control_port: int | None = None) -> None:
        """Listen. ``control_port`` serves ``/sim/*`` (and the rest) on a second port that faults never close."""
        self._host = host
        self._listener = await self._listen(port)
        self.bound = self._listener.sockets[0].getsockname()[1]
        if control_port is not None:
            quiet: set[Connection] = set()
            self._control = await self.loop.create_server(lambda: self._connection(quiet), host, control_port)
            self.control_bound = self._control.sockets[0].getsockname()[1]
        arm(self.service, self.service.config.faults, self)
        self._sweep()

    async def stop(self) -> None:
        """Close the listeners and every connection."""
        for handle in (self._sweeper, self._opener):
            if handle is not None:
                handle.cancel()
        for server in (self._listener, self._control):
            if server is not None:
                server.close()
        for connection in list(self.connections):
            connection.reset()
        await asyncio.sleep(0)

    # -- control.Port

    def refuse(self, for_s: float | None) -> None:
        """Stop listening and close idle connections; answers under way go on."""
        for connection in [connection for connection in self.connections if connection.idle]:
            connection.close()
        self._close_door(for_s)

    def crash(self, for_s: float | None) -> None:
        """Reset every connection, as when the process dies, and stop listening."""
        for connection in list(self.connections):
            connection.reset()
        self._close_door(for_s)

    def reopen(self) -> None:
        """Listen again on the same port, if the door is closed."""
        if self._opener is not None:
            self._opener.cancel()
            self._opener = None
        if self._refusing:
            self._refusing = False
            task = self.loop.create_task(self._open_door(), name="simulator-reopen")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _close_door(self, for_s: float | None) -> None:
        self._refusing = True
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        if for_s is not None:
            self._opener = self.loop.call_later(for_s, self.reopen)

    async def _open_door(self) -> None:
        if self._listener is None:
            self._listener = await self._listen(self.bound)

    async def _listen(self, port: int) -> asyncio.Server:
        return await self.loop.create_server(
            lambda: self._connection(self.connections), self._host, port, backlog=4096, reuse_address=True
        )

    def _connection(self, registry: set[Connection]) -> Connection:
        self.engine.meters.connections += 1
        return Connection(self.routes.handle, registry, self.service.config.max_body_bytes)

    def _sweep(self) -> None:
        """Close connections that have been idle for longer than the keep-alive time."""
        limit = self.loop.time() - self.service.config.keep_alive
        for connection in list(self.connections):
            if connection.idle_since is not None and connection.idle_since < limit:
                connection.close()
        self._sweeper = self.loop.call_later(_SWEEP_S, self._sweep)
