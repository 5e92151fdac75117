"""Kept-alive connections of one endpoint, newest first, and dialling of new ones.

Idle connections are let go before the shortest keep-alive that runtimes use (uvicorn closes after 5 s), so a request
hardly ever meets a connection that the other side is just closing; the rest is the forwarder's free retry.
"""

import asyncio
import errno
import os
import socket
import ssl
from collections.abc import Callable
from typing import Final

from gateway.wire.client import ClientConnection
from gateway.wire.reach import connect, is_literal
from gateway.wire.repeats import KnownAnswers

IDLE_S: Final = 4.0
# This host has no descriptor, memory or port left: that says nothing about the endpoint.
_EXHAUSTED: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EADDRNOTAVAIL})

Dialled = Callable[[ClientConnection | None, str], None]


class ConnectionPool:
    """Connections to one host and port. ``clock`` is the loop's."""

    __slots__ = ("_clock", "_host", "_idle", "_known", "_loop", "_named", "_port", "_tasks", "_tls", "closed")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        host: str,
        port: int,
        tls: ssl.SSLContext | None,
        clock: Callable[[], float],
    ) -> None:
        self._loop = loop
        self._host = host
        self._port = port
        self._named = not is_literal(host)
        self._tls = tls
        self._clock = clock
        self._idle: list[ClientConnection] = []
        self._known = KnownAnswers()
        self._tasks: set[asyncio.Task[None]] = set()
        self.closed = False

    @property
    def idle(self) -> int:
        """Connections that wait for a request."""
        return len(self._idle)

    def take(self, now: float) -> ClientConnection | None:
        """An idle connection that is fit for use, or None: then ``dial``."""
        oldest = now - IDLE_S
        while self._idle:
            connection = self._idle.pop()
            if connection.idle_since > oldest and connection.alive:
                return connection
            connection.close()
        return None

    def give_back(self, connection: ClientConnection, now: float) -> None:
        """Keep a connection for the next request, or close it if it cannot be used again."""
        if self.closed or not connection.reusable:
            connection.close()
            return
        connection.idle_since = now
        self._idle.append(connection)

    def dial(self, done: Dialled) -> "Dial":
        """Open a connection; ``done`` hears it, or None and the endpoint's reason: none if the fault is this host's.

        Give up with ``Dial.cancel``.
        """
        dial = Dial(done)
        task = self._loop.create_task(self._connect(dial), name=f"dial {self._host}:{self._port}")
        dial.task = task
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return dial

    def sweep(self) -> None:
        """Close what has been idle too long; called about once a second."""
        oldest = self._clock() - IDLE_S
        keep: list[ClientConnection] = []
        for connection in self._idle:
            if connection.alive and connection.idle_since > oldest:
                keep.append(connection)
            else:
                connection.on_idle_lost = None
                connection.close()
        self._idle = keep

    def close(self) -> None:
        """No new use; idle connections close, busy ones when they are given back."""
        self.closed = True
        for connection in self._idle:
            connection.on_idle_lost = None
            connection.close()
        self._idle = []

    def _lost(self, connection: ClientConnection) -> None:
        if connection in self._idle:
            self._idle.remove(connection)

    def _made(self) -> ClientConnection:
        return ClientConnection(self._known)

    async def _connect(self, dial: "Dial") -> None:
        try:
            name = self._host if self._tls else None
            loop, host, port, tls = self._loop, self._host, self._port, self._tls
            if self._named:
                sock = await connect(loop, host, port)
                _, connection = await loop.create_connection(self._made, sock=sock, ssl=tls, server_hostname=name)
            else:
                _, connection = await loop.create_connection(self._made, host, port, ssl=tls, server_hostname=name)
        except OSError as error:
            dial.finish(None, why_of(error))
        except ValueError as error:  # a name that no resolver takes
            dial.finish(None, type(error).__name__)
        else:
            connection.on_idle_lost = self._lost
            if connection.alive:
                dial.finish(connection, "")
            else:
                dial.finish(None, "closed at once")


def why_of(error: OSError) -> str:
    """Why there is no connection, in words that a client may read: no name and no address of an endpoint in them.

    "" if it is for want of something on this host.
    """
    if isinstance(error, ssl.SSLError):
        return f"TLS, {(error.reason or type(error).__name__).lower().replace('_', ' ')}"
    if isinstance(error, socket.gaierror):
        return "its name is not known"
    if error.errno in _EXHAUSTED:
        return ""
    return os.strerror(error.errno) if error.errno else type(error).__name__


class Dial:
    """A connection attempt under way. After ``cancel`` its result is closed unheard."""

    __slots__ = ("_done", "task")

    def __init__(self, done: Dialled) -> None:
        self._done: Dialled | None = done
        self.task: asyncio.Task[None] | None = None

    def finish(self, connection: ClientConnection | None, reason: str) -> None:
        """Hand over the result once."""
        done, self._done = self._done, None
        if done is not None:
            done(connection, reason)
        elif connection is not None:
            connection.close()

    def cancel(self) -> None:
        """Give up dialling."""
        self._done = None
        if self.task is not None:
            self.task.cancel()
