"""The unix socket that workers dial: frames in, frames out, one reader task per worker.

Owns the listening socket and the connections. Must not interpret messages beyond ``Hello``; what they mean is the
handler's (``publisher`` for tables, ``recorder`` and ``metrics`` for what comes back). A worker that does not read is
cut off rather than buffered without end: it dials again and gets the newest state.
"""

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import structlog

from gateway.control import frames
from gateway.model.messages import Feedback, Hello, Outcomes, Prepared, Starts, Stats, ToControl, ToWorker
from gateway.model.pair import Pairs

# What may wait in the process for a worker that does not read. Several whole policies fit.
BACKLOG_MOST_BYTES = 32 * 1024 * 1024
HELLO_S = 5.0

_log = structlog.get_logger("control.link")


class WorkerLink:
    """One connected worker. ``generation`` is the one it says it serves; ``error`` the last table it refused."""

    def __init__(self, hello: Hello, writer: asyncio.StreamWriter) -> None:
        self.index = hello.worker
        self.pid = hello.pid
        self.generation = hello.generation
        self.error = ""
        self.stats: Stats | None = None
        self._writer = writer

    def send(self, message: ToWorker) -> None:
        """Hand a message to the socket; never waits. Cuts the link off when the worker does not read."""
        self.send_frame(frames.encode(message))

    def send_frame(self, frame: bytes) -> None:
        """As ``send``, for a frame that goes to many workers and is encoded once."""
        transport = self._writer.transport
        if transport.is_closing():
            return
        if transport.get_write_buffer_size() > BACKLOG_MOST_BYTES:
            _log.warning("worker_does_not_read", worker=self.index, pid=self.pid)
            transport.abort()
            return
        self._writer.write(frame)

    def cut(self) -> None:
        """Close at once; the worker, if alive, dials again."""
        self._writer.transport.abort()


class Handler(Protocol):
    """Who understands the messages. Called on the loop, in the order they arrived; must not block."""

    def worker_joined(self, link: WorkerLink) -> None:
        """A worker said hello; ``link.send`` works from here on."""
        ...

    def worker_left(self, link: WorkerLink) -> None:
        """Its connection is gone."""
        ...

    def prepared(self, link: WorkerLink, message: Prepared) -> None:
        """Answer to a ``Prepare``."""
        ...

    def outcomes(self, link: WorkerLink, message: Outcomes) -> None:
        """Finished requests."""
        ...

    def pairs(self, link: WorkerLink, message: Pairs) -> None:
        """Shadow pairs and counts."""
        ...

    def feedback(self, link: WorkerLink, message: Feedback) -> None:
        """An application's word on an answer."""
        ...

    def starts(self, link: WorkerLink, message: Starts) -> None:
        """Dispatched requests of rollouts' buckets."""
        ...

    def stats(self, link: WorkerLink, message: Stats) -> None:
        """Gauges of the worker."""
        ...


class Link:
    """The server side of the socket. ``workers`` holds the connected ones by index. ``on_joined`` callbacks come after
    the handler's own, so that what they send finds the worker's table on its way."""

    def __init__(self, path: Path, handler: Handler) -> None:
        self.path = path
        self.workers: dict[int, WorkerLink] = {}
        self.on_joined: list[Callable[[WorkerLink], None]] = []
        self._handler = handler
        self._server: asyncio.Server | None = None
        self._readers: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Listen. A socket file left by a killed predecessor is replaced."""
        with contextlib.suppress(FileNotFoundError):
            self.path.unlink()
        self._server = await asyncio.start_unix_server(self._accept, path=str(self.path))
        self.path.chmod(0o600)

    async def stop(self, drain_s: float) -> None:
        """Take no new workers; read what the connected ones still send until they close, at most ``drain_s``."""
        if self._server is not None:
            self._server.close()
        if self._readers:
            await asyncio.wait(self._readers, timeout=drain_s)
        for reader in list(self._readers):
            reader.cancel()
        await asyncio.gather(*self._readers, return_exceptions=True)
        with contextlib.suppress(FileNotFoundError):
            self.path.unlink()

    def broadcast(self, message: ToWorker) -> None:
        """Send to every connected worker."""
        frame = frames.encode(message)
        for link in list(self.workers.values()):
            link.send_frame(frame)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - streams always run the callback as a task
        self._readers.add(task)
        try:
            await self._serve(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        except frames.FrameError as error:
            _log.error("worker_spoke_nonsense", error=str(error))
        except TimeoutError:
            _log.error("worker_said_no_hello", waited_s=HELLO_S)
        finally:
            self._readers.discard(task)
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(HELLO_S):
            hello = await _read(reader)
        if not isinstance(hello, Hello):
            raise frames.FrameError(f"first message is {type(hello).__name__}, not Hello")
        link = WorkerLink(hello, writer)
        predecessor = self.workers.pop(link.index, None)
        if predecessor is not None:
            predecessor.cut()
            self._handler.worker_left(predecessor)
        self.workers[link.index] = link
        self._handler.worker_joined(link)
        for callback in self.on_joined:
            callback(link)
        try:
            while True:
                self._deliver(link, await _read(reader))
        finally:
            if self.workers.get(link.index) is link:
                del self.workers[link.index]
                self._handler.worker_left(link)

    def _deliver(self, link: WorkerLink, message: ToControl) -> None:
        match message:
            case Outcomes():
                self._handler.outcomes(link, message)
            case Stats():
                link.stats = message
                link.generation = message.generation
                self._handler.stats(link, message)
            case Prepared():
                self._handler.prepared(link, message)
            case Pairs():
                self._handler.pairs(link, message)
            case Feedback():
                self._handler.feedback(link, message)
            case Starts():
                self._handler.starts(link, message)
            case Hello():
                raise frames.FrameError("a second Hello")


async def _read(reader: asyncio.StreamReader) -> ToControl:
    length = frames.body_length(await reader.readexactly(frames.HEAD_BYTES))
    return frames.decode_to_control(await reader.readexactly(length))
