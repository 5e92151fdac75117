"""A scripted pool endpoint: it plays byte-exact answers over real sockets and records what it was sent.

It runs on its own event loop in its own thread, so that tests are plain functions with blocking clients. A script is a
list of steps: bytes (one write), ``Pause``, ``Gate`` (wait until the test opens it), ``Repeat``, ``Reset`` (RST),
``Close`` (FIN), ``Hang``. After a script without ``Reset`` or ``Close`` the connection stays open for the next request.
Probes of the gateway (GET) are answered by themselves and recorded apart.
"""

import asyncio
import contextlib
import json
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

WAIT_S = 10.0  # how long a test waits for something that must happen


class Gate:
    """A step that holds the script until the test opens it; ``reached`` tells that the script has come to it."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self._lock = threading.Lock()
        self._opened = False
        self._waiter: tuple[asyncio.AbstractEventLoop, asyncio.Event] | None = None

    def open(self) -> None:
        """Let the script go on."""
        with self._lock:
            self._opened = True
            if self._waiter is not None:
                loop, event = self._waiter
                loop.call_soon_threadsafe(event.set)

    async def wait(self) -> None:
        """Called by the script."""
        event = asyncio.Event()
        with self._lock:
            self._waiter = (asyncio.get_running_loop(), event)
            opened = self._opened
        self.reached.set()
        if not opened:
            await event.wait()


@dataclass(frozen=True)
class Pause:
    """Wait between two writes, so that they are two reads for the other side."""

    seconds: float = 0.02


@dataclass(frozen=True)
class Repeat:
    """The same bytes many times; ``every`` seconds between two of them."""

    data: bytes
    times: int
    every: float = 0.0


class Reset:
    """End the connection with a TCP reset."""


class Close:
    """End the connection in an orderly way."""


class Hang:
    """Say nothing more; the connection stays open until the other side closes it."""


Step = bytes | Pause | Gate | Repeat | Reset | Close | Hang
GAP = Pause()


@dataclass
class Received:
    """One request as it arrived, and what became of its connection."""

    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes
    head: bytes
    connection: int
    at: float
    sent_bytes: int = 0
    closed_at: float = 0.0
    closed_by: str = ""
    _closed: threading.Event = field(default_factory=threading.Event)

    def header(self, name: str) -> str | None:
        """The first value of a header."""
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)

    def wait_closed(self, timeout: float = WAIT_S) -> bool:
        """Whether the other side closed the connection while this request was the last on it."""
        return self._closed.wait(timeout)

    def closed(self, how: str) -> None:
        """The connection is gone: ``eof`` or ``reset`` from the other side, ``own`` from ours."""
        self.closed_at, self.closed_by = time.monotonic(), how
        self._closed.set()


class Endpoint:
    """One listening address with its scripts and its records."""

    def __init__(self, upstream: "Upstream", port: int) -> None:
        self._upstream = upstream
        self.port = port
        self.scripts: deque[Sequence[Step]] = deque()
        self.default: Sequence[Step] | Callable[[Received], Sequence[Step]] = ()
        self.received: list[Received] = []
        self.probes: list[str] = []
        self.open_connections = 0  # that have carried a request; connections of probes are not counted
        self.accepted = 0
        self.silent = False  # accept connections and never say a word, not even to probes
        self.idle_close_s: float | None = None  # close a kept-alive connection after that long
        self.probe_status = 200
        self.arrived = threading.Condition()

    @property
    def url(self) -> str:
        """What a policy writes."""
        return f"http://127.0.0.1:{self.port}"

    def play(self, *scripts: Sequence[Step]) -> None:
        """Queue one script for each of the next requests."""
        self.scripts.extend(scripts)

    def wait_received(self, count: int = 1, timeout: float = WAIT_S) -> Received:
        """The ``count``-th request; fails if it does not come in time."""
        with self.arrived:
            if not self.arrived.wait_for(lambda: len(self.received) >= count, timeout):
                raise AssertionError(f"only {len(self.received)} of {count} requests arrived within {timeout} s")
            return self.received[count - 1]

    def refuse(self) -> None:
        """Stop listening: connections are refused from now on."""
        self._upstream.call(self._upstream.close_listener(self))

    def listen(self) -> None:
        """Listen again on the same port."""
        self._upstream.call(self._upstream.open_listener(self))


class Upstream:
    """All endpoints of a test session. ``start`` first, ``stop`` last."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="upstream", daemon=True)
        self._listeners: dict[int, tuple[socket.socket, asyncio.Task[None]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._connections = 0

    def start(self) -> None:
        """Start the loop's thread."""
        self._thread.start()

    def stop(self) -> None:
        """Close everything and end the thread."""
        self.call(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._loop.close()

    def endpoint(self) -> Endpoint:
        """A new endpoint on a free port."""
        endpoint = Endpoint(self, 0)
        self.call(self.open_listener(endpoint))
        return endpoint

    def call(self, coroutine: Any) -> Any:
        """Run a coroutine on the loop's thread and wait for it."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(10)

    async def open_listener(self, endpoint: Endpoint) -> None:
        """Bind and accept."""
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setblocking(False)
        listener.bind(("127.0.0.1", endpoint.port))
        listener.listen(1024)
        endpoint.port = listener.getsockname()[1]
        self._listeners[endpoint.port] = (listener, self._spawn(self._accept(listener, endpoint)))

    async def close_listener(self, endpoint: Endpoint) -> None:
        """Stop accepting."""
        listener, task = self._listeners.pop(endpoint.port)
        task.cancel()
        listener.close()

    async def _stop(self) -> None:
        for listener, _ in self._listeners.values():
            listener.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.sleep(0)

    def _spawn(self, coroutine: Any) -> asyncio.Task[None]:
        task = self._loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _accept(self, listener: socket.socket, endpoint: Endpoint) -> None:
        while True:
            sock, _ = await self._loop.sock_accept(listener)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._connections += 1
            endpoint.accepted += 1
            self._spawn(_Connection(self._loop, sock, endpoint, self._connections).serve())


class _Connection:
    """One accepted connection: reads requests, plays scripts, notices the other side's close at any time."""

    def __init__(self, loop: asyncio.AbstractEventLoop, sock: socket.socket, endpoint: Endpoint, number: int) -> None:
        self._loop = loop
        self._sock = sock
        self._endpoint = endpoint
        self._number = number
        self._buffer = bytearray()
        self._more = asyncio.Event()
        self._gone = ""
        self._last: Received | None = None

    async def serve(self) -> None:
        reader = self._loop.create_task(self._read())
        try:
            while not self._gone:
                request = await self._request()
                if request is None:
                    break
                if not await self._answer(request):
                    break
        except (ConnectionError, OSError):
            self._gone = self._gone or "reset"
        finally:
            reader.cancel()
            with contextlib.suppress(BaseException):
                await reader
            self._sock.close()
            if self._last is not None:
                self._endpoint.open_connections -= 1
                self._last.closed(self._gone or "own")

    async def _read(self) -> None:
        """Everything the other side sends, until it closes."""
        while True:
            try:
                data = await self._loop.sock_recv(self._sock, 262_144)
            except OSError:
                data, self._gone = b"", "reset"
            if not data:
                self._gone = self._gone or "eof"
                if self._last is not None:
                    self._last.closed(self._gone)
                self._more.set()
                return
            self._buffer += data
            self._more.set()

    async def _until(self, condition: Callable[[], bool]) -> bool:
        while not condition():
            if self._gone:
                return False
            self._more.clear()
            await self._more.wait()
        return True

    async def _request(self) -> Received | None:
        limit = self._endpoint.idle_close_s if self._last is not None else None
        try:
            async with asyncio.timeout(limit):
                if not await self._until(lambda: b"\r\n\r\n" in self._buffer):
                    return None
        except TimeoutError:
            return None
        head = bytes(self._buffer[: self._buffer.index(b"\r\n\r\n")])
        lines = head.decode("latin-1").split("\r\n")
        method, target, _ = lines[0].split(" ", 2)
        pairs = [(name.strip(), value.strip()) for name, _, value in (line.partition(":") for line in lines[1:])]
        size = next((int(value) for name, value in pairs if name.lower() == "content-length"), 0)
        whole = len(head) + 4 + size
        if not await self._until(lambda: len(self._buffer) >= whole):
            return None
        with memoryview(self._buffer) as received:
            body = bytes(received[len(head) + 4 : whole])
        del self._buffer[:whole]
        return Received(method, target, pairs, body, head, self._number, time.monotonic())

    async def _answer(self, request: Received) -> bool:
        """Play what is due for this request; whether the connection goes on."""
        endpoint = self._endpoint
        if endpoint.silent:
            if request.method != "GET":
                self._record(request)
            await self._until(lambda: False)
            return False
        if request.method == "GET":
            endpoint.probes.append(request.target)
            await self._loop.sock_sendall(self._sock, _probe_answer(request.target, endpoint.probe_status))
            return True
        script = endpoint.scripts.popleft() if endpoint.scripts else endpoint.default
        self._record(request)
        steps = script(request) if callable(script) else script
        for step in steps:
            if self._gone and not isinstance(step, Reset | Close):
                return False
            if not await self._play(step, request):
                return False
        return True

    def _record(self, request: Received) -> None:
        if self._last is None:
            self._endpoint.open_connections += 1
        self._last = request
        with self._endpoint.arrived:
            self._endpoint.received.append(request)
            self._endpoint.arrived.notify_all()

    async def _play(self, step: Step, request: Received) -> bool:
        """One step; whether the connection goes on."""
        match step:
            case bytes():
                await self._loop.sock_sendall(self._sock, step)
                request.sent_bytes += len(step)
            case Pause(seconds):
                await self._sleep(seconds)
            case Gate():
                opened = self._loop.create_task(step.wait())
                left = self._loop.create_task(self._until(lambda: False))
                await asyncio.wait([opened, left], return_when=asyncio.FIRST_COMPLETED)
                opened.cancel()
                left.cancel()
            case Repeat(data, times, every):
                for _ in range(times):
                    if self._gone:
                        return False
                    await self._loop.sock_sendall(self._sock, data)
                    request.sent_bytes += len(data)
                    if every:
                        await self._sleep(every)
            case Reset():
                self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return False
            case Close():
                return False
            case Hang():
                await self._until(lambda: False)
                return False
        return True

    async def _sleep(self, seconds: float) -> None:
        """A pause that ends early when the other side has gone."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._until(lambda: False)


def _probe_answer(target: str, status: int) -> bytes:
    if target.startswith("/v1/models"):
        body = json.dumps({"object": "list", "data": [{"id": "up", "object": "model", "owned_by": "test"}]}).encode()
    else:
        body = b"{}"
    return b"HTTP/1.1 %d Status\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (
        status,
        len(body),
        body,
    )
