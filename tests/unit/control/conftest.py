"""Shared pieces: small real policies, a worker's end of the link, outcomes, and a control wired without processes."""

import asyncio
import struct
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import msgspec
import pytest

from gateway.control.durable import Durable
from gateway.control.hub import Hub
from gateway.control.link import Link
from gateway.control.metrics import Metrics
from gateway.control.publisher import Publisher
from gateway.control.recorder import Recorder
from gateway.model.messages import Apply, Feedback, Hello, Prepare, Prepared, Stats, ToControl, ToWorker
from gateway.model.outcome import Attempt, Kind, Outcome
from gateway.model.pair import Pairs
from gateway.model.table import Table
from gateway.policy.compile import compile_table
from gateway.policy.document import Snapshot, SourceFile
from gateway.policy.load import Loaded, load_snapshot
from tests.unit.dataplane.outcome_values import with_fields

PATIENCE_S = 10.0


def policy_text(
    pools: Mapping[str, int] | None = None, *, rule: str = "default", key: str = "", most: int = 200, url: str = ""
) -> str:
    """A valid policy: ``pools`` maps a name to its number of endpoints."""
    wanted = {"bf16": 1} if pools is None else pools
    lines = ["version: 1", "models: {m: {context_window: 8192}}", "pools:"]
    port = 18001
    for name, count in wanted.items():
        urls = ", ".join(url or f"http://127.0.0.1:{port + i}" for i in range(count))
        port += count
        lines.append(
            f"  {name}: {{model: m, runtime: vllm, precision: {{weights: bf16, activations: bf16, kv_cache: bf16}}, "
            f'hardware: {{gpu: H100, compute_capability: "9.0"}}, endpoints: [{urls}]}}'
        )
    lines.append("tenants:")
    lines.append("  anonymous: {allow: true}")
    if key:
        lines.append(f"  acme: {{keys: ['{key}']}}")
    lines.append(f"classify: {{buckets: {{by: [model, length], most: {most}}}}}")
    lines.append(f"routes: [{{name: {rule}, pools: [{', '.join(wanted)}]}}]")
    return "\n".join(lines) + "\n"


def load_text(text: str) -> Loaded:
    """The loaded form of a policy's text."""
    return load_snapshot(Snapshot("p.yaml", False, (SourceFile("p.yaml", text.encode()),)))


@pytest.fixture
def policy() -> Callable[..., Loaded]:
    """Builds loaded policies from ``policy_text``'s arguments."""

    def build(pools: Mapping[str, int] | None = None, **options: object) -> Loaded:
        return load_text(policy_text(pools, **options))  # type: ignore[arg-type]

    return build


@pytest.fixture
def text() -> Callable[..., str]:
    """``policy_text``."""
    return policy_text


def compiled(document: bytes, generation: int, slots: Mapping[str, int]) -> Table:
    """Compile with secrets that are their own reference."""
    return compile_table(document, generation, slots, lambda reference: f"value-of-{reference}")


@pytest.fixture
def compile_() -> Callable[[bytes, int, Mapping[str, int]], Table]:
    """``compiled``."""
    return compiled


BASE = Outcome(
    Kind(
        generation=1,
        worker=0,
        api="chat",
        tenant="acme",
        tier="gold",
        model="m",
        adapter="",
        bucket="m/short",
        length="short",
        task="chat",
        privilege="none",
        tool_use="none",
        structured="none",
        stream=True,
        rule="default",
        arm="none",
        rollout="",
        pool="bf16",
        endpoint="bf16/0",
        precision="bf16",
        status=200,
        result="ok",
        failure="",
        error_code="",
        constraints=(),
        finish_reason="stop",
        seed=False,
    ),
    request_id="req-1",
    at=1_700_000_000.25,
    attempts=(Attempt("bf16", "bf16/0", 200, "", 0.0005, 0.5),),
    queue_s=0.0,
    overhead_s=0.0004,
    ttft_s=0.08,
    first_to_last_s=0.4,
    longest_gap_s=-1.0,
    total_s=0.5,
    prompt_tokens_estimated=10,
    prompt_tokens=12,
    cached_tokens=4,
    completion_tokens=11,
    events=12,
    bytes_in=100,
    bytes_out=2000,
    temperature=0.7,
    conversation="ab" * 16,
    capture=None,
    trace_id="",
)


def outcome(**fields: object) -> Outcome:
    """A successful streamed chat request, with ``fields`` replaced, its kind's among them."""
    return with_fields(BASE, **fields)


@pytest.fixture(name="outcome")
def outcome_fixture() -> Callable[..., Outcome]:
    """``outcome``."""
    return outcome


def stats(worker: int = 0, **fields: object) -> Stats:
    """A worker's gauges."""
    base = Stats(worker, 1, 0, 0, 0, {}, [], 0.0, False)
    return msgspec.structs.replace(base, **fields)


@pytest.fixture(name="stats")
def stats_fixture() -> Callable[..., Stats]:
    """``stats``."""
    return stats


class StubWorker:
    """A worker's end of the link. ``refuse``: its answer to every ``Prepare``; ``mute``: it gives none."""

    def __init__(self, index: int = 0, generation: int = 0, *, refuse: str = "", mute: bool = False) -> None:
        self.index = index
        self.generation = generation
        self.refuse = refuse
        self.mute = mute
        self.received: list[ToWorker] = []
        self.gone = False
        self._prepared: set[int] = set()
        self._news = asyncio.Event()
        self._writer: asyncio.StreamWriter | None = None
        self._reader: asyncio.Task[None] | None = None

    async def dial(self, path: Path) -> "StubWorker":
        """Connect and say hello."""
        reader, self._writer = await asyncio.open_unix_connection(str(path))
        self.send(Hello(self.index, 1000 + self.index, self.generation))
        self._reader = asyncio.get_running_loop().create_task(self._read(reader))
        return self

    def send(self, message: ToControl) -> None:
        """One frame."""
        body = msgspec.msgpack.encode(message)
        self.send_bytes(struct.pack(">I", len(body)) + body)

    def send_bytes(self, data: bytes) -> None:
        """Raw bytes."""
        assert self._writer is not None
        self._writer.write(data)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until ``condition`` holds; it is asked again after each message."""
        async with asyncio.timeout(PATIENCE_S):
            while not condition():
                self._news.clear()
                await self._news.wait()

    def close(self) -> None:
        """Drop the connection as a killed process does."""
        if self._writer is not None:
            self._writer.transport.abort()
        if self._reader is not None:
            self._reader.cancel()

    async def _read(self, reader: asyncio.StreamReader) -> None:
        try:
            while True:
                (length,) = struct.unpack(">I", await reader.readexactly(4))
                message = msgspec.msgpack.decode(await reader.readexactly(length), type=ToWorker)
                self.received.append(message)
                self._react(message)
                self._news.set()
        except (asyncio.IncompleteReadError, ConnectionError):
            self.gone = True
            self._news.set()

    def _react(self, message: ToWorker) -> None:
        if isinstance(message, Prepare) and not self.mute:
            if not self.refuse:
                self._prepared.add(message.generation)
            self.send(Prepared(self.index, message.generation, self.refuse))
        if isinstance(message, Apply) and message.generation in self._prepared:
            self.generation = message.generation
            self.send(stats(self.index, generation=message.generation))


class Rig:
    """Control without processes: link, publisher, metrics and recorder over one state directory."""

    def __init__(self, directory: Path, *, prepare_s: float = PATIENCE_S) -> None:
        self.publisher = Publisher(Durable(directory / "state"), compiled, lambda: 1_700_000_000.0, prepare_s)
        self.metrics = Metrics()
        self.feedback: list[Feedback] = []
        self.pairs: list[Pairs] = []
        self.recorder = Recorder()
        self.recorder.subscribe("metrics", self.metrics.take_batch)
        self.recorder.subscribe_losses(self.metrics.take_losses)
        self.publisher.on_applied.append(lambda publication: self.metrics.take_table(publication.table))
        self.link = Link(
            directory / "s", Hub(self.publisher, self.metrics, self.recorder, self.feedback.append, self.pairs.append)
        )
        self.workers: list[StubWorker] = []

    async def worker(self, index: int = 0, generation: int = 0, **options: object) -> StubWorker:
        """A connected stub that control knows of."""
        stub = StubWorker(index, generation, **options)  # type: ignore[arg-type]
        await stub.dial(self.link.path)
        self.workers.append(stub)
        await eventually(lambda: index in self.link.workers and self.link.workers[index].pid == 1000 + index)
        return stub

    async def stop(self) -> None:
        """Close everything."""
        for stub in self.workers:
            stub.close()
        await self.link.stop(1.0)


async def eventually(condition: Callable[[], bool]) -> None:
    """Let the loop turn until ``condition`` holds."""
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await asyncio.sleep(0.002)


@pytest.fixture(name="eventually")
def eventually_fixture() -> Callable[..., object]:
    """``eventually``."""
    return eventually


@pytest.fixture
async def rig(tmp_path: Path) -> object:
    """A listening ``Rig``."""
    made = Rig(tmp_path)
    await made.link.start()
    yield made
    await made.stop()


@pytest.fixture
def make_rig(tmp_path: Path) -> Iterator[Callable[..., Rig]]:
    """Builds further rigs over the same state directory, as a restarted control would."""

    def build(**options: object) -> Rig:
        return Rig(tmp_path, **options)  # type: ignore[arg-type]

    return build


@pytest.fixture
def stub_worker() -> type[StubWorker]:
    """``StubWorker``."""
    return StubWorker


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rollouts wait for a database as long as it takes: no test here is about how fast a disk is."""
    monkeypatch.setattr("gateway.control.rollouts_storing.STORE_S", 60.0)
    monkeypatch.setattr("gateway.control.rollouts_sharing.WAIT_S", 60.0)
