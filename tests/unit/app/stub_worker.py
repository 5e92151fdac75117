"""A worker as the supervisor and control see one, without a data plane. Run as a process by ``test_supervisor``.

SIGUSR1: sends ten outcomes. SIGTERM: waits while the file ``hold`` is in the state directory, sends one outcome, ends.
"""

import argparse
import asyncio
import contextlib
import os
import signal
import socket
import struct
from pathlib import Path

import msgspec

from gateway.model.messages import Apply, Hello, Outcomes, Prepare, Prepared, Stats, ToWorker
from gateway.model.outcome import Columns, Kind

EMPTY = {str: "", int: 0, float: 0.0, bool: False}


def outcomes(worker: int, request_ids: list[str]) -> Columns:
    """Requests that went well."""
    kind = {field.name: EMPTY.get(field.type, ()) for field in msgspec.structs.fields(Kind)}
    known = Kind(**kind | {"worker": worker, "pool": "bf16", "result": "ok"})
    number = len(request_ids)
    columns = {
        field.name: [EMPTY[field.type.__args__[0]]] * number if field.type.__origin__ is list else {}
        for field in msgspec.structs.fields(Columns)
        if field.name != "kinds"
    }
    given = {"at": [1_700_000_000.0] * number, "total_s": [0.5] * number, "request_id": request_ids}
    return Columns([msgspec.msgpack.encode(known)], **columns | given)


class Stub:
    """Keeps dialing; serves what it is told to apply."""

    def __init__(self, options):
        self.options = options
        self.generation = 0
        self.prepared = set()
        self.writer = None
        self.stopping = asyncio.Event()

    def send(self, message):
        """One frame, if control is there."""
        if self.writer is not None:
            body = msgspec.msgpack.encode(message)
            self.writer.write(struct.pack(">I", len(body)) + body)

    def send_outcomes(self, count, name):
        """Finished requests."""
        index = self.options.index
        made = outcomes(index, [f"{name}-{os.getpid()}-{n}" for n in range(count)])
        self.send(Outcomes(index, 0, msgspec.msgpack.encode(made)))

    def send_stats(self):
        """Gauges."""
        self.send(Stats(self.options.index, self.generation, 1, 0, 0, {}, [], 0.0, self.stopping.is_set()))

    async def talk(self):
        """One connection to control."""
        reader, self.writer = await asyncio.open_unix_connection(str(self.options.control_socket))
        self.send(Hello(self.options.index, os.getpid(), self.generation))
        while True:
            (length,) = struct.unpack(">I", await reader.readexactly(4))
            message = msgspec.msgpack.decode(await reader.readexactly(length), type=ToWorker)
            if isinstance(message, Prepare):
                self.prepared.add(message.generation)
                self.send(Prepared(self.options.index, message.generation, ""))
            if isinstance(message, Apply) and message.generation in self.prepared:
                self.generation = message.generation
                self.send_stats()

    async def run(self):
        """Until told to stop."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self.stopping.set)
        loop.add_signal_handler(signal.SIGUSR1, self.send_outcomes, 10, "asked")
        talking = loop.create_task(self.keep_talking())
        await self.stopping.wait()
        while (self.options.state_dir / "hold").exists():
            await asyncio.sleep(0.01)
        self.send_outcomes(1, "last")
        if self.writer is not None:
            with contextlib.suppress(ConnectionError):
                await self.writer.drain()
            self.writer.close()
        talking.cancel()

    async def keep_talking(self):
        """Dial again whenever control is gone."""
        while True:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                await self.talk()
            self.writer = None
            await asyncio.sleep(0.02)


def main():
    """Listen as a worker does, and talk to control."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--index", type=int, required=True)
    parser.add_argument("--workers", type=int, required=True)
    parser.add_argument("--listen", required=True)
    parser.add_argument("--control-socket", type=Path, required=True)
    parser.add_argument("--state-dir", type=Path, required=True)
    parser.add_argument("--drain-s", type=float, required=True)
    options = parser.parse_args()
    host, _, port = options.listen.rpartition(":")
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    listener.bind((host, int(port)))
    listener.listen()
    asyncio.run(Stub(options).run())


if __name__ == "__main__":
    main()
