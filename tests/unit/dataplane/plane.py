"""A whole worker in this process on a real port, in front of scripted pools: what the module tests stand on."""

import asyncio
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import orjson
import yaml

from gateway.dataplane.worker import Worker, WorkerOptions
from gateway.model.messages import EndpointReport, Endpoints, Prepare
from gateway.model.outcome import Outcome
from gateway.policy.load import load
from tests.unit.dataplane.outcome_values import opened

OK = orjson.dumps(
    {
        "id": "1",
        "object": "chat.completion",
        "model": "up",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9},
    }
)


def answer(body: bytes, status: int = 200, fields: str = "") -> bytes:
    head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n{fields}\r\n"
    return head.encode() + body


def event(text: str, finish: str | None = None) -> bytes:
    delta = {"content": text} if text else {}
    chunk = {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
    return b"data: " + orjson.dumps(chunk) + b"\n\n"


def stream_head() -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


class Upstream:
    """One endpoint. ``script(body, writer)`` answers each request; requests and closed connections are recorded."""

    def __init__(self) -> None:
        self.heads: list[bytes] = []
        self.bodies: list[bytes] = []
        self.closed = 0
        self.script: Callable[[bytes, asyncio.StreamWriter], Any] = lambda _body, writer: writer.write(answer(OK))

    async def start(self) -> "Upstream":
        self.server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self.server.sockets[0].getsockname()[1]
        return self

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = next(
                    int(line.split(b":")[1])
                    for line in head.lower().split(b"\r\n")
                    if line.startswith(b"content-length")
                )
                body = await reader.readexactly(length)
                self.heads.append(head)
                self.bodies.append(body)
                played = self.script(body, writer)
                if asyncio.iscoroutine(played):
                    await played
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.closed += 1
            writer.close()


class Plane:
    """The worker, its policy and a client."""

    def __init__(self, folder: Path, policy: dict[str, Any], workers: int = 1) -> None:
        self.folder = folder
        self.policy = policy
        self.outcomes: list[Outcome] = []
        self.errors: list[BaseException] = []
        self.generation = 0
        options = WorkerOptions(0, workers, "127.0.0.1", 0, folder / "control.sock", folder, 1, "t-", drain_s=2.0)
        self.worker = Worker(
            options,
            asyncio.get_running_loop(),
            clock=time.monotonic,
            wall=time.time,
            rand=random.Random(1).random,
            secret=lambda reference: f"secret-of-{reference}",
            log_error=lambda _where, error: self.errors.append(error),
        )
        self.apply(policy)

    def apply(self, policy: dict[str, Any]) -> None:
        """Put a policy in force, as control would."""
        self.policy = policy
        (self.folder / "policy.yaml").write_text(yaml.safe_dump(policy))
        self.generation += 1
        names = [f"endpoint:{pool}/{index}" for pool in policy["pools"] for index in range(9)]
        slots = {name: row for row, name in enumerate([*names, *(f"tenant:{name}" for name in policy["tenants"])], 1)}
        document = load(self.folder / "policy.yaml").document
        self.worker._apply(self.worker._compile(Prepare(self.generation, document, slots)))

    async def start(self) -> "Plane":
        self.stop_event = asyncio.Event()
        self.task = asyncio.create_task(self.worker.run(self.stop_event))
        async with asyncio.timeout(5):
            while self.worker._server is None:
                await asyncio.sleep(0.005)
        self.port = self.worker._server.sockets[0].getsockname()[1]  # type: ignore[attr-defined]
        return self

    async def stop(self) -> None:
        self.stop_event.set()
        await self.task

    def report(self, endpoint: str, state: str, running: float = -1.0) -> None:
        """What control's probes would say of an endpoint."""
        self.worker._report(Endpoints([EndpointReport(endpoint, state, running, -1.0, -1.0, 0.0)]))

    async def outcome(self, count: int = 1) -> Outcome:
        """The ``count``-th finished request."""
        async with asyncio.timeout(5):
            while len(self.outcomes) < count:
                batch, _ = self.worker.outcomes.take()
                self.outcomes += opened(batch)
                await asyncio.sleep(0.005)
        return self.outcomes[count - 1]

    async def ask(self, body: dict[str, Any] | bytes, path: str = "/v1/chat/completions", **fields: str) -> "Reply":
        """One request on its own connection, answer read whole."""
        reader, writer = await self.send(body, path, **fields)
        async with asyncio.timeout(5):
            data = await reader.read()
        writer.close()
        return Reply(data)

    async def send(
        self, body: dict[str, Any] | bytes, path: str = "/v1/chat/completions", method: str = "POST", **fields: str
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A request whose answer the test reads itself; the connection closes after it."""
        data = body if isinstance(body, bytes) else orjson.dumps(body)
        lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in fields.items())
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(
            f"{method} {path} HTTP/1.1\r\nHost: g\r\nConnection: close\r\nContent-Type: application/json\r\n"
            f"{lines}Content-Length: {len(data)}\r\n\r\n".encode()
            + data
        )
        return reader, writer


class Reply:
    """A raw answer taken apart."""

    def __init__(self, data: bytes) -> None:
        self.raw = data
        head, _, rest = data.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        self.status = int(lines[0].split()[1])
        self.fields = [tuple(line.split(": ", 1)) for line in lines[1:]]
        names = {name.lower(): value for name, value in self.fields}
        self.header = names
        self.body = _unchunked(rest) if names.get("transfer-encoding") == "chunked" else rest

    @property
    def json(self) -> Any:
        return orjson.loads(self.body)

    @property
    def code(self) -> str:
        return str(self.json["error"]["code"])


def _unchunked(data: bytes) -> bytes:
    body = b""
    while data:
        size, _, data = data.partition(b"\r\n")
        length = int(size, 16)
        if length == 0:
            return body
        body, data = body + data[:length], data[length + 2 :]
    raise AssertionError("chunked body without its end")


def policy_of(pools: dict[str, list[str]], **more: Any) -> dict[str, Any]:
    """A policy with one model ``m``; pools by name with their URLs, in the route's order."""
    extra = more.pop("pool", {})
    return {
        "version": 1,
        "models": {"m": {"aliases": ["gpt-4o"]}},
        "pools": {
            name: {
                "model": "m",
                "runtime": "openai",
                "attestation": "off",
                "upstream_model": "up",
                "precision": {"weights": "bf16", "activations": "bf16", "kv_cache": "bf16"},
                "endpoints": urls,
                "timeouts": {"connect": "300ms", "first_byte": "500ms", "idle": "300ms"},
                **extra.get(name, {}),
            }
            for name, urls in pools.items()
        },
        "tenants": {"anonymous": {"allow": True}, **more.pop("tenants", {})},
        "routes": more.pop("routes", [{"name": "all", "pools": list(pools)}]),
        "gateway": {"retry_budget": 1.0, **more.pop("gateway", {})},
        **more,
    }


def decoded(data: bytes) -> Any:
    """msgpack to plain values."""
    return msgspec.msgpack.decode(data)


CHAT = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
STREAM = {**CHAT, "stream": True}
