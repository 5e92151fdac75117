"""A real server connection on a real socket, with a handler that the test scripts."""

import asyncio
import time
from collections.abc import Callable

from gateway.errors import ApiError
from gateway.wire.http import Headers, Request
from gateway.wire.server import ServerConnection, ServerContext
from gateway.wire.wheel import Wheel


class Job:
    """Work that records what the connection tells it."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.changed = asyncio.Event()

    def _hear(self, word: str) -> None:
        self.heard.append(word)
        self.changed.set()

    def gone(self) -> None:
        self._hear("gone")

    def pause(self) -> None:
        self._hear("pause")

    def resume(self) -> None:
        self._hear("resume")


class Rig:
    """Server and raw client. ``on_request`` answers; without it requests wait in ``requests``."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.heads: list[Headers] = []
        self.refusal: ApiError | None = None
        self.connections: list[ServerConnection] = []
        self.jobs: list[Job] = []
        self.arrived = asyncio.Event()
        self.on_request: Callable[[ServerConnection, Request], None] | None = None
        loop = asyncio.get_running_loop()
        self.wheel = Wheel(time.monotonic, 0.005)
        self.wheel.start(loop)
        self.context = ServerContext(self, self.wheel, clock=time.monotonic, wall=lambda: 0.0, soon=loop.call_soon)

    def handle(self, connection: ServerConnection, request: Request) -> Job:
        self.requests.append(request)
        self.connections.append(connection)
        job = Job()
        self.jobs.append(job)
        self.arrived.set()
        if self.on_request is not None:
            self.on_request(connection, request)
        return job

    def allow(self, headers: Headers) -> None:
        self.heads.append(headers)
        if self.refusal is not None:
            raise self.refusal

    def refuse(self, connection: ServerConnection, error: ApiError, headers: Headers) -> None:
        connection.answer(error.status, b"", error.body(), close=True)

    async def start(self) -> "Rig":
        loop = asyncio.get_running_loop()
        self.server = await loop.create_server(lambda: ServerConnection(self.context), "127.0.0.1", 0)
        self.port = self.server.sockets[0].getsockname()[1]
        return self

    async def stop(self) -> None:
        self.wheel.stop()
        self.server.close()
        for connection in list(self.context.connections):
            connection.abort()
        await self.server.wait_closed()

    async def dial(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def ask(self, raw: bytes) -> bytes:
        """Send bytes on a fresh connection and read until the server closes or one whole sized answer is here."""
        reader, writer = await self.dial()
        writer.write(raw)
        data = b""
        async with asyncio.timeout(5):
            while block := await reader.read(65536):
                data += block
                if is_whole(data):
                    break
        writer.close()
        return data


def is_whole(data: bytes) -> bool:
    head, found, body = data.partition(b"\r\n\r\n")
    if not found:
        return False
    for line in head.split(b"\r\n"):
        if line.lower().startswith(b"content-length:"):
            return len(body) >= int(line.split(b":")[1])
    return data.endswith(b"0\r\n\r\n")


async def until(condition: Callable[[], bool], seconds: float = 5.0) -> None:
    """Wait for a condition, not for a time."""
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.002)
