"""What a record costs the worker: build the outcome of a finished request, buffer it, encode it for control.

    python -m benchmarks.record_cost [--count 5000] [--rounds 15]

One streamed request goes through a real worker without sockets; its exchange is then turned into a record again and
again, which finds its kind known but for the first time. Processor time, the best of several rounds, because other
load only ever adds. The promise is under 5 µs.
"""

import argparse
import asyncio
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from benchmarks.backend import CHUNK, STREAM_HEAD
from benchmarks.bare_worker import END, BareWorker, request
from gateway.dataplane.exchange import Exchange, outcome_of
from gateway.dataplane.kinds import PackedKinds
from gateway.dataplane.outcomes import OutcomeBuffer
from gateway.model.enums import Result
from gateway.model.messages import Outcomes

EVENTS = 100


async def finished(folder: Path) -> Exchange:
    """A streamed chat request that has ended."""
    bare = BareWorker(folder)
    bare.offer()
    bare.client.data_received(request(stream=True))
    exchange = bare.client._work
    for data in (STREAM_HEAD, *[CHUNK] * EVENTS, END):
        bare.pool.data_received(data)
    bare.take(1)
    assert isinstance(exchange, Exchange)
    return exchange


def measure(exchange: Exchange, count: int, rounds: int) -> dict[str, float]:
    """Seconds a request, by part."""
    encoder, kinds = msgspec.msgpack.Encoder(), PackedKinds(0)
    best = dict.fromkeys(("build", "buffer", "encode"), float("inf"))
    for _ in range(rounds):
        buffer = OutcomeBuffer()
        begin = time.process_time()
        made = [outcome_of(exchange, kinds.of(exchange, Result.OK, 200), 200, 1.0) for _ in range(count)]
        built = time.process_time()
        for outcome in made:
            buffer.add(outcome)
        buffered = time.process_time()
        while len(buffer):
            batch, dropped = buffer.take()
            encoder.encode(Outcomes(0, dropped, encoder.encode(batch)))
        encoded = time.process_time()
        for name, took_s in (("build", built - begin), ("buffer", buffered - built), ("encode", encoded - buffered)):
            best[name] = min(best[name], took_s / count)
    return best


def main(arguments: Sequence[str] | None = None) -> None:
    """Print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=5_000, help="records of a round")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="quantgate-record-") as folder:
        exchange = asyncio.run(finished(Path(folder)))
    best = measure(exchange, options.count, options.rounds)
    total = sum(best.values())
    parts = ", ".join(f"{name} {seconds * 1e6:.2f}" for name, seconds in best.items())
    print(f"{total * 1e6:.2f} us a request ({parts}); promised: under 5")


if __name__ == "__main__":
    main()
