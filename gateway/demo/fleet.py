"""Several real llama.cpp servers on loopback, started together, waited for, and stopped for sure.

Owns the processes it starts and no other. Synchronous: an asyncio caller uses ``asyncio.to_thread``. Called by the
demo command and by tests of the runtimes.
"""

import http.client
import os
import selectors
import signal
import socket
import subprocess  # starts this package's own module, no shell
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self, cast
from urllib.parse import urlsplit

import msgspec

from gateway.demo.llama_server import KV_TYPES, Arguments, Listening
from gateway.demo.weights import Variant

START_S = 60.0
STOP_S = 5.0
CONTEXT_TOKENS = 8192
"""What SmolLM2 was trained for, and what the demo's policy promises."""
_POLL_S = 0.05
_TAIL_LINES = 4


class FleetError(Exception):
    """A server cannot be started. The message names it, and the mend."""


class ServerSpec(msgspec.Struct, frozen=True):
    """One server to start. ``context_tokens`` is what one request may hold; ``port`` 0 = any free one; ``log_tasks``:
    its log names every request that it computes.
    """

    name: str
    model: Path
    alias: str
    kv: str = "f16"
    slots: int = 2
    context_tokens: int = 2048
    port: int = 0
    host: str = "127.0.0.1"
    log_tasks: bool = False


class RunningServer(msgspec.Struct, frozen=True):
    """A server that answers. ``url`` has no trailing slash."""

    spec: ServerSpec
    url: str
    pid: int

    @property
    def port(self) -> int:
        """The port it listens on."""
        return cast(int, urlsplit(self.url).port)


def demo_specs(weights: Mapping[Variant, Path], alias: str = "smollm2-135m") -> tuple[ServerSpec, ...]:
    """The pools of ``routing_policies/demo.yaml`` by name: one model in BF16, in Q8_0, and in Q4_0 with an 8-bit KV
    cache, each with the model's whole context, and each keeping a log of what it computes.
    """
    return tuple(
        ServerSpec(name, weights[variant], alias, kv=kv, context_tokens=CONTEXT_TOKENS, log_tasks=True)
        for name, variant, kv in (
            ("bf16", Variant.BF16, "f16"),
            ("q8", Variant.Q8_0, "f16"),
            ("q4", Variant.Q4_0, "q8_0"),
        )
    )


class _Child:
    """One process with its log file."""

    def __init__(self, spec: ServerSpec, log: Path) -> None:
        self.spec = spec
        self.log = log
        arguments = Arguments(
            port=spec.port,
            model=spec.model,
            alias=spec.alias,
            kv=spec.kv,
            slots=spec.slots,
            ctx=spec.slots * spec.context_tokens,
            host=spec.host,
            with_parent=True,
            log_tasks=spec.log_tasks,
        )
        with log.open("wb") as errors:
            self.process = subprocess.Popen(  # noqa: S603 - the arguments are this module's own
                arguments.command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors
            )

    def wait_ready(self, deadline: float) -> RunningServer:
        """Read from the process itself where it listens, so that it is this one, then ask until it is healthy."""
        url = self._listening(deadline)
        while get(url, "/health")[0] != 200:
            self._check(deadline)
            time.sleep(_POLL_S)
        return RunningServer(self.spec, url, self.process.pid)

    def _listening(self, deadline: float) -> str:
        pipe = self.process.stdout
        assert pipe is not None  # noqa: S101 - opened with PIPE
        line = b""
        with selectors.DefaultSelector() as selector:
            selector.register(pipe, selectors.EVENT_READ)
            while not line.endswith(b"\n"):
                if selector.select(timeout=0.2):
                    chunk = os.read(pipe.fileno(), 4096)
                    if not chunk:  # it closed its output: it is about to end, and then says why
                        time.sleep(_POLL_S)
                    line += chunk
                self._check(deadline)
        return msgspec.json.decode(line, type=Listening).url

    def _check(self, deadline: float) -> None:
        """Raise if the process ended or its time is up."""
        status = self.process.poll()
        if status is not None:
            raise FleetError(self._why(status))
        if time.monotonic() > deadline:
            raise FleetError(f"server {self.spec.name} was not ready in time: {self._tail()}")

    def _why(self, status: int) -> str:
        tail = self._tail()
        if "couldn't bind" in tail:
            return (
                f"server {self.spec.name}: port {self.spec.port} on {self.spec.host} is in use: "
                "stop what listens there, or choose another port"
            )
        if "failed to open GGUF file" in tail or "failed to load model" in tail:
            return f"server {self.spec.name}: {self.spec.model} is no readable GGUF file: delete it and try again"
        return f"server {self.spec.name} ended with status {status}: {tail}"

    def _tail(self) -> str:
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        lines = [line for line in text.splitlines() if line.strip()]
        wanted = [line for line in lines if " E " in line] or lines
        return " | ".join(wanted[:_TAIL_LINES]) or "it said nothing"

    def stop(self) -> None:
        """Ask to end; do not wait."""
        if self.process.poll() is None:
            self.process.terminate()

    def reap(self, deadline: float) -> None:
        """Wait for the end, by force after the deadline, and close the pipes."""
        try:
            self.process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()


class Fleet:
    """Servers as one context: all ready inside the block, all gone after it, also when one does not start."""

    def __init__(self, specs: Sequence[ServerSpec], log_dir: Path | None = None, start_s: float = START_S) -> None:
        self.specs = tuple(specs)
        self.start_s = start_s
        self.log_dir = log_dir
        self._own_logs: tempfile.TemporaryDirectory[str] | None = None
        self._children: list[_Child] = []
        self.servers: tuple[RunningServer, ...] = ()

    def start(self) -> tuple[RunningServer, ...]:
        """Start all at once and wait until each is ready. Raises ``FleetError``, and then none is left running."""
        check(self.specs)
        logs = self._logs()
        deadline = time.monotonic() + self.start_s
        try:
            for spec in self.specs:
                self._children.append(_Child(spec, logs / f"{spec.name}.log"))
            self.servers = tuple(child.wait_ready(deadline) for child in self._children)
        except BaseException:
            self.stop()
            raise
        return self.servers

    def stop(self) -> None:
        """End every server; returns when none is left. May be called again."""
        for child in self._children:
            child.stop()
        deadline = time.monotonic() + STOP_S
        for child in self._children:
            child.reap(deadline)
        self._children.clear()
        self.servers = ()
        if self._own_logs is not None:
            self._own_logs.cleanup()
            self._own_logs = None

    def _logs(self) -> Path:
        """The folder for the servers' logs; a temporary one where none was given."""
        if self.log_dir is not None:
            self.log_dir.mkdir(parents=True, exist_ok=True)
            return self.log_dir
        self._own_logs = self._own_logs or tempfile.TemporaryDirectory(prefix="quantgate-demo-")
        return Path(self._own_logs.name)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def check(specs: Sequence[ServerSpec]) -> None:
    """Refuse what cannot work before anything is started. Raises ``FleetError``."""
    names = [spec.name for spec in specs]
    for spec in specs:
        if names.count(spec.name) > 1:
            raise FleetError(f"two servers are called {spec.name}: name them apart")
        if spec.kv not in KV_TYPES:
            raise FleetError(f"server {spec.name}: no KV cache format {spec.kv}: choose one of {', '.join(KV_TYPES)}")
        if not spec.model.is_file():
            raise FleetError(f"server {spec.name}: no file {spec.model}: obtain the weights first")
        if spec.port and _taken(spec.host, spec.port):
            raise FleetError(
                f"server {spec.name}: port {spec.port} on {spec.host} is in use: "
                "stop what listens there, or choose another port"
            )


def _taken(host: str, port: int) -> bool:
    """Whether something listens there already; a connection waiting to time out does not count."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return True
    return False


def get(url: str, path: str, timeout_s: float = 5.0) -> tuple[int, bytes]:
    """One GET: status and body; status 0 where nothing answered."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(cast(str, parts.hostname), parts.port, timeout=timeout_s)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read()
    except (OSError, http.client.HTTPException):
        return 0, b""
    finally:
        connection.close()
