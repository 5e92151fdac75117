"""Load on an OpenAI-compatible URL over raw keep-alive connections, cheap enough to share a core with the backend.

    python -m benchmarks.load URL plain  --rate 1000 --seconds 4     open loop: latency of whole answers
    python -m benchmarks.load URL flood  --connections 32            closed loop: as fast as it goes
    python -m benchmarks.load URL stream --streams 200 --pace 100x20   one stream after another: gaps between reads
    python -m benchmarks.load URL hold   --streams 1000 --pace 10x1000  every stream once; says when all are open

Prints one JSON object (``hold``: one line ``{"open": N}`` before it). Every answer is checked: status 200, and a stream
ends in ``[DONE]``. A pace is EVENTSxMILLISECONDS and obeyed by ``benchmarks.backend``.
"""

import argparse
import asyncio
import json
import sys
import time
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any
from urllib.parse import urlsplit

import uvloop

END = b"0\r\n\r\n"


def body(stream: bool, words: int, pace: str) -> bytes:
    """A chat request of about ``5 × words`` bytes."""
    request: dict[str, object] = {
        "model": "m",
        "max_tokens": 64,
        "messages": [
            {"role": "system", "content": "You are a helpful assistant."},
            {"role": "user", "content": "word " * words},
        ],
    }
    if stream:
        request |= {"stream": True, "user": pace}
    return json.dumps(request, separators=(",", ":")).encode()


class Connection(asyncio.Protocol):
    """One keep-alive connection with at most one request on it. ``send`` gives whether the answer was good."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport
        self.lost = False
        self.times: list[float] = []
        self.opened = asyncio.Event()
        self._waiter: asyncio.Future[bool] | None = None
        self._stream = False
        self._got = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True
        self._finish(False)

    def send(self, raw: bytes, stream: bool) -> "asyncio.Future[bool]":
        self._got, self.times, self._stream = b"", [], stream
        self._waiter = asyncio.get_running_loop().create_future()
        self.transport.write(raw)
        return self._waiter

    def data_received(self, data: bytes) -> None:
        self.times.append(time.perf_counter())
        if not self._stream:
            self._got += data
            self._look_at_answer()
            return
        if len(self.times) == 1:
            if not data.startswith(b"HTTP/1.1 200"):
                self._finish(False)
                return
            self.opened.set()
        self._got = (self._got + data)[-64:]
        if self._got.endswith(END):
            self._finish(b"[DONE]" in self._got)

    def _look_at_answer(self) -> None:
        end = self._got.find(b"\r\n\r\n")
        if end < 0:
            return
        low = self._got[:end].lower()
        at = low.find(b"content-length:")
        if at >= 0:
            whole = len(self._got) >= end + 4 + int(low[at + 15 :].split(b"\r\n", 1)[0])
        else:
            whole = self._got.endswith(END)
        if whole:
            self._finish(self._got.startswith(b"HTTP/1.1 200"))

    def _finish(self, good: bool) -> None:
        if self._waiter and not self._waiter.done():
            self._waiter.set_result(good)


@dataclass
class Load:
    """One run against one URL; what was seen is in the lists, in seconds."""

    host: str
    port: int
    raw: bytes
    stream: bool
    failed: int = 0
    latencies: list[float] = field(default_factory=list)
    firsts: list[float] = field(default_factory=list)
    gaps: list[float] = field(default_factory=list)
    _idle: list[Connection] = field(default_factory=list)

    async def connect(self) -> Connection:
        while self._idle:
            connection = self._idle.pop()
            if not connection.lost:
                return connection
        return (await asyncio.get_running_loop().create_connection(Connection, self.host, self.port))[1]

    async def one(self) -> None:
        """One request, on a connection of its own or one that is free."""
        start = time.perf_counter()
        connection = await self.connect()
        if not await connection.send(self.raw, self.stream):
            self.failed += 1
            connection.transport.close()
            return
        self._idle.append(connection)
        times = connection.times
        self.latencies.append(time.perf_counter() - start)
        self.firsts.append(times[0] - start)
        if self.stream:
            self.gaps.extend(after - before for before, after in pairwise(times))

    async def at_rate(self, rate: float, seconds: float) -> None:
        """Requests start on schedule, whatever became of the earlier ones."""
        begin = time.perf_counter()
        tasks = []
        for number in range(int(rate * seconds)):
            delay = begin + number / rate - time.perf_counter()
            if delay > 0:
                await asyncio.sleep(delay)
            tasks.append(asyncio.get_running_loop().create_task(self.one()))
        await asyncio.gather(*tasks)

    async def closed(self, connections: int, seconds: float) -> None:
        """Each of so many clients sends its next request when the last is answered."""
        end = time.perf_counter() + seconds

        async def keep() -> None:
            while time.perf_counter() < end:
                await self.one()

        await asyncio.gather(*(keep() for _ in range(connections)))

    async def hold(self, streams: int) -> None:
        """Open all streams, say so once each has its first bytes, and read them to their ends."""
        connections = [await self.connect() for _ in range(streams)]
        answers = [connection.send(self.raw, True) for connection in connections]
        opened = asyncio.gather(*(connection.opened.wait() for connection in connections))
        ends = asyncio.gather(*answers)
        everything: list[asyncio.Future[Any]] = [opened, ends]
        await asyncio.wait(everything, return_when=asyncio.FIRST_COMPLETED)
        print(json.dumps({"open": sum(connection.opened.is_set() for connection in connections)}), flush=True)
        self.failed += (await ends).count(False)
        opened.cancel()
        self.latencies = [0.0] * (streams - self.failed)


def quantile_us(values: list[float], share: float) -> float | None:
    ordered = sorted(values)
    return round(ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1e6, 1) if ordered else None


async def main(options: argparse.Namespace) -> dict[str, float | None]:
    url = urlsplit(options.url)
    stream = options.mode in ("stream", "hold")
    payload = body(stream, options.words, options.pace)
    head = (
        f"POST {url.path or '/v1/chat/completions'} HTTP/1.1\r\nHost: {url.netloc}\r\n"
        f"Content-Type: application/json\r\nAuthorization: Bearer {options.key}\r\n"
        f"Content-Length: {len(payload)}\r\n\r\n"
    )
    load = Load(url.hostname or "127.0.0.1", url.port or 80, head.encode() + payload, stream)
    begin = time.perf_counter()
    if options.mode == "plain":
        await load.at_rate(options.rate, options.seconds)
    elif options.mode == "hold":
        await load.hold(options.streams)
    else:
        await load.closed(options.streams if stream else options.connections, options.seconds)
    took = time.perf_counter() - begin
    return {
        "done": len(load.latencies),
        "failed": load.failed,
        "seconds": round(took, 3),
        "per_second": round(len(load.latencies) / took, 1),
        "p50_us": quantile_us(load.latencies, 0.5),
        "p99_us": quantile_us(load.latencies, 0.99),
        "first_p50_us": quantile_us(load.firsts, 0.5),
        "first_p99_us": quantile_us(load.firsts, 0.99),
        "gap_p50_us": quantile_us(load.gaps, 0.5),
        "gap_p99_us": quantile_us(load.gaps, 0.99),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("mode", choices=["plain", "flood", "stream", "hold"])
    parser.add_argument("--rate", type=float, default=500, help="requests per second")
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--streams", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--words", type=int, default=200, help="words of prompt, 5 bytes each")
    parser.add_argument("--pace", default="100x20", help="events of a stream and milliseconds between them")
    parser.add_argument("--key", default="sk-1234")
    json.dump(uvloop.run(main(parser.parse_args())), sys.stdout)
    print()
