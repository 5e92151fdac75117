"""What a record costs the worker: build the outcome of a finished request, buffer it, encode it for control.

    python -m benchmarks.record_cost

One streamed request goes through a real worker without sockets; its exchange is then turned into a record again and
again, which finds its kind known but for the first time. Processor time, the best of several rounds, because other
load only ever adds. The promise is under 5 µs.
"""

import asyncio
import hashlib
import random
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.contenders import KEY, POLICY
from benchmarks.micro_request import EVENT, HEAD, LAST, SLOTS, FakeTransport, chunk, request
from gateway.dataplane.exchange import Exchange, outcome_of
from gateway.dataplane.identity import Keyring
from gateway.dataplane.kinds import PackedKinds
from gateway.dataplane.outcomes import OutcomeBuffer
from gateway.dataplane.sizing import Sizes
from gateway.dataplane.worker import Worker, WorkerOptions
from gateway.model.enums import Result
from gateway.model.messages import Outcomes
from gateway.policy.compile import compile_table
from gateway.policy.load import load
from gateway.wire.client import ClientConnection
from gateway.wire.server import ServerConnection

COUNT = 5_000
ROUNDS = 15


async def finished() -> Exchange:
    """A streamed chat request that has ended."""
    folder = Path(tempfile.mkdtemp())
    digest = hashlib.sha256(KEY.encode()).hexdigest()
    (folder / "p.yaml").write_text(POLICY.format(backend=9, digest=digest, checked="0%"))
    options = WorkerOptions(0, 1, "127.0.0.1", 0, folder / "s", folder, 1, "x-")
    worker = Worker(
        options,
        asyncio.get_running_loop(),
        clock=time.monotonic,
        wall=time.time,  # noqa: TID251 - a program of its own
        rand=random.random,
        secret=lambda _: "",
        log_error=lambda where, error: print(where, repr(error)),
    )
    table = compile_table(load(folder / "p.yaml").document, 1, SLOTS, lambda _: "")
    worker._apply((table, Keyring(table), Sizes(table)))
    server, upstream = ServerConnection(worker.context), ClientConnection()
    server.connection_made(FakeTransport())
    upstream.connection_made(FakeTransport())
    upstream.idle_since = time.monotonic()
    for view in worker.fleet.views.values():
        view.connections._idle[:] = [upstream]
    server.data_received(request(True))
    exchange: Any = server._work
    for data in (HEAD, *(chunk(EVENT) for _ in range(100)), chunk(LAST) + b"0\r\n\r\n"):
        upstream.data_received(data)
    return exchange


def measure(exchange: Exchange) -> dict[str, float]:
    """Seconds a request, by part."""
    encoder, kinds = msgspec.msgpack.Encoder(), PackedKinds(0)
    best = dict.fromkeys(("build", "buffer", "encode"), float("inf"))
    for _ in range(ROUNDS):
        buffer = OutcomeBuffer()
        begin = time.process_time()
        made = [outcome_of(exchange, kinds.of(exchange, Result.OK, 200), 200, 1.0) for _ in range(COUNT)]
        built = time.process_time()
        for outcome in made:
            buffer.add(outcome)
        buffered = time.process_time()
        while len(buffer):
            batch, dropped = buffer.take()
            encoder.encode(Outcomes(0, dropped, encoder.encode(batch)))
        encoded = time.process_time()
        for name, took_s in (("build", built - begin), ("buffer", buffered - built), ("encode", encoded - buffered)):
            best[name] = min(best[name], took_s / COUNT)
    return best


def main() -> None:
    """Print it."""
    best = measure(asyncio.run(finished()))
    total = sum(best.values())
    parts = ", ".join(f"{name} {seconds * 1e6:.2f}" for name, seconds in best.items())
    print(f"{total * 1e6:.2f} us a request ({parts}); promised: under 5")


if __name__ == "__main__":
    main()
