"""Processor time of one request through the worker's own code, without sockets: parse, decide, relay, outcome.

    python -m benchmarks.micro_request [--profile] [--stream] [--cold] [--count 3000] [--rounds 7]

Transports are fakes that swallow what is written, so the number is the interpreter's share alone. Quotes the best of
several rounds, because other load only ever adds. ``--cold`` sweeps the caches between requests, as a core does that
serves a thousand a second and much else, and quotes the median.
"""

import argparse
import asyncio
import cProfile
import gc
import os
import pstats
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.backend import CHUNK, PLAIN_REPLY, STREAM_HEAD
from benchmarks.bare_worker import END, BareWorker, request
from benchmarks.instructions import switch

MIB = 1024 * 1024
EVENTS = 100
WARM = 100
STREAMS_LESS = 30
"""A round has so many times fewer streams than whole answers, and takes about as long."""


def one_request(bare: BareWorker, *, stream: bool) -> Callable[[], None]:
    """What is measured: a request comes, goes to the pool, and its answer goes back."""
    raw, client, pool = request(stream=stream), bare.client, bare.pool

    def one() -> None:
        bare.offer()
        client.data_received(raw)
        if stream:
            pool.data_received(STREAM_HEAD)
            for _ in range(EVENTS):
                pool.data_received(CHUNK)
            pool.data_received(END)
        else:
            pool.data_received(PLAIN_REPLY)

    return one


def cold(one: Callable[[], None], count: int, sweep_mib: int) -> float:
    """Median microseconds of ``one`` after the caches were filled with something else."""
    other = bytearray(os.urandom(sweep_mib * MIB))
    taken = []
    for _ in range(count):
        bytes(other)
        begin = time.perf_counter()
        one()
        taken.append(time.perf_counter() - begin)
    return statistics.median(taken) * 1e6


def under_callgrind(one: Callable[[], None], count: int) -> None:
    """Run ``one`` so often while callgrind counts, after it has run often enough to be as it always is."""
    for _ in range(WARM):
        one()
    gc.collect()
    gc.freeze()
    switch("on")
    for _ in range(count):
        one()
    switch("off")


def best_s(bare: BareWorker, one: Callable[[], None], count: int, rounds: int) -> float:
    """Processor seconds of ``one`` in the best of so many rounds."""
    best = float("inf")
    for _ in range(rounds):
        begin = time.process_time()
        for _ in range(count):
            one()
        best = min(best, (time.process_time() - begin) / count)
        bare.take(count)
    return best


def profiled(one: Callable[[], None], count: int) -> None:
    """Print where the time goes."""
    profile = cProfile.Profile()
    profile.enable()
    for _ in range(count):
        one()
    profile.disable()
    pstats.Stats(profile).sort_stats("tottime").print_stats(45)


async def measure(options: argparse.Namespace, folder: Path) -> None:
    """Print what was asked for."""
    bare = BareWorker(folder)
    one = one_request(bare, stream=options.stream)
    one()
    print(*bare.take(1))
    if options.counted:
        under_callgrind(one, options.count)
        bare.take(WARM + options.count)
        return
    if options.cold:
        print(f"{cold(one, options.count, options.sweep_mib):.1f} us a request with cold caches")
        bare.take(options.count)
        return
    count = max(1, options.count // STREAMS_LESS) if options.stream else options.count
    best_us = best_s(bare, one, count, options.rounds) * 1e6
    if options.stream:
        print(f"{best_us:.1f} us a stream of {EVENTS} events, {best_us / EVENTS:.2f} us an event")
    else:
        print(f"{best_us:.1f} us a request")
    if options.profile:
        profiled(one, count)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profile", action="store_true", help="and print where the time goes")
    parser.add_argument("--stream", action="store_true", help=f"streams of {EVENTS} events instead of whole answers")
    parser.add_argument("--cold", action="store_true", help="with cold caches")
    parser.add_argument(
        "--sweep-mib",
        type=int,
        default=8,
        help="memory read between two cold requests; above the third cache, all is cold",
    )
    parser.add_argument("--counted", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--count", type=int, default=3000, help="requests of a round, of streams a thirtieth")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="quantgate-micro-") as folder:
        asyncio.run(measure(options, Path(folder)))


if __name__ == "__main__":
    main()
