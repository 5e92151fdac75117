"""One worker without sockets, under the comparison's policy: what ``micro_request`` and ``record_cost`` measure.

Transports swallow what is written, and the pool's answers are those of ``backend``, so what runs is the worker's own
code alone. Every request must have been answered well: refusals are cheap, and would pass for speed.
"""

import asyncio
import hashlib
import json
import random
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.backend import DONE, LAST, USAGE, chunk
from benchmarks.contenders import KEY, POLICY
from gateway.dataplane.identity import Keyring
from gateway.dataplane.sizing import Sizes
from gateway.dataplane.worker import Worker, WorkerOptions
from gateway.model.enums import Result
from gateway.model.outcome import Columns, Kind
from gateway.policy.compile import compile_table
from gateway.policy.load import load
from gateway.wire.client import ClientConnection
from gateway.wire.server import ServerConnection

SLOTS = {"tenant:bench": 0, "endpoint:bf16/0": 1, "endpoint:fp8/0": 2, "endpoint:int4/0": 3}
END = chunk(LAST + USAGE % (9, 19) + DONE) + b"0\r\n\r\n"
"""The last read of a stream."""

Data = bytes | bytearray | memoryview


class FakeTransport(asyncio.Transport):
    """Swallows what is written, and is never full. ``written``: how many bytes that was."""

    def __init__(self) -> None:
        super().__init__()
        self.written = 0

    def write(self, data: Data) -> None:
        self.written += len(data)

    def writelines(self, list_of_data: Iterable[Data]) -> None:
        self.written += sum(map(len, list_of_data))

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("127.0.0.1", 1)

    def close(self) -> None:
        pass

    abort = pause_reading = resume_reading = close


def request(*, stream: bool) -> bytes:
    """A whole request of a hundred words."""
    body: dict[str, object] = {
        "model": "m",
        "max_tokens": 64,
        "messages": [
            {"role": "system", "content": "You are a helpful assistant."},
            {"role": "user", "content": "word " * 100},
        ],
    }
    if stream:
        body["stream"] = True
    raw = json.dumps(body, separators=(",", ":")).encode()
    return (
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nContent-Type: application/json\r\n"
        b"Authorization: Bearer %b\r\nContent-Length: %d\r\n\r\n" % (KEY.encode(), len(raw))
    ) + raw


class BareWorker:
    """A worker with one client and one connection to a pool, on the running loop; its files are in ``folder``."""

    def __init__(self, folder: Path) -> None:
        policy = folder / "policy.yaml"
        digest = hashlib.sha256(KEY.encode()).hexdigest()
        policy.write_text(POLICY.format(backend=9, digest=digest, checked="0%"))
        self._worker = Worker(
            WorkerOptions(0, 1, "127.0.0.1", 0, folder / "s", folder, 1, "x-"),
            asyncio.get_running_loop(),
            clock=time.monotonic,
            wall=lambda: 0.0,
            rand=random.random,
            secret=lambda _: "",
            log_error=lambda where, error: print(where, repr(error)),
        )
        table = compile_table(load(policy).document, 1, SLOTS, lambda _: "")
        self._worker._apply((table, Keyring(table), Sizes(table)))
        self.client = ServerConnection(self._worker.context)
        self.client.connection_made(FakeTransport())
        self.pool = ClientConnection()
        self.pool.connection_made(FakeTransport())

    def offer(self) -> None:
        """The connection to the pool is free, whichever endpoint is chosen."""
        self.pool.idle_since = time.monotonic()
        for view in self._worker.fleet.views.values():
            view.connections._idle[:] = [self.pool]

    def take(self, count: int) -> list[Columns]:
        """The outcomes so far. ``SystemExit`` unless there are ``count`` of them, every one of an answer with 200."""
        found: list[Columns] = []
        while len(self._worker.outcomes):
            found.append(self._worker.outcomes.take()[0])
        ended = sum(len(batch.kind) for batch in found)
        if ended != count:
            raise SystemExit(f"{ended} of {count} requests came to an end")
        for packed in {packed for batch in found for packed in batch.kinds}:
            kind = msgspec.msgpack.decode(packed, type=Kind)
            if kind.status != 200 or kind.result != Result.OK:
                raise SystemExit(f"what is measured was not answered well: {kind}")
        return found
