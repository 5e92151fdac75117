"""Entry of a worker process: options, clocks, randomness, signals; the rest is ``dataplane.worker``.

Started by the supervisor as ``python -m gateway.app.worker_main``.
"""

import argparse
import asyncio
import gc
import os
import random
import signal
import sys
import time
import traceback
from pathlib import Path

import uvloop

from gateway.app.secrets import Secrets
from gateway.dataplane.worker import Worker, WorkerOptions


def options_of(argv: list[str]) -> WorkerOptions:
    """Parse the command line that the supervisor gives."""
    parser = argparse.ArgumentParser(prog="quantgate worker")
    parser.add_argument("--index", type=int, required=True)
    parser.add_argument("--workers", type=int, required=True)
    parser.add_argument("--listen", required=True, help="HOST:PORT")
    parser.add_argument("--control-socket", type=Path, required=True)
    parser.add_argument("--state-dir", type=Path, required=True)
    parser.add_argument("--drain-s", type=float, default=30.0)
    args = parser.parse_args(argv)
    host, _, port = args.listen.rpartition(":")
    return WorkerOptions(
        index=args.index,
        workers=args.workers,
        host=host.strip("[]"),
        port=int(port),
        control_socket=args.control_socket,
        state_dir=args.state_dir,
        pid=os.getpid(),
        id_prefix=f"{os.urandom(5).hex()}-",
        drain_s=args.drain_s,
    )


async def serve(options: WorkerOptions) -> None:
    """Run the worker until SIGTERM or SIGINT."""
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)

    def log_error(where: str, error: BaseException) -> None:
        # Type and place only: an exception's text may quote what a client sent.
        place = "".join(traceback.format_tb(error.__traceback__))
        sys.stderr.write(f"worker {options.index}: {where}: {type(error).__name__}\n{place}")

    worker = Worker(
        options,
        loop,
        clock=time.monotonic,
        wall=time.time,  # noqa: TID251 - the composition root gives the clock
        rand=random.random,
        secret=Secrets().read,
        log_error=log_error,
    )
    await worker.run(stop)


def main(argv: list[str] | None = None) -> None:
    """Run one worker process."""
    # Finished requests leave no cycles, so collections find next to nothing; rare ones are enough.
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    uvloop.run(serve(options_of(sys.argv[1:] if argv is None else argv)))


if __name__ == "__main__":
    main()
