"""Does a large body stall a neighbour's stream? Worst added gap of 20 ms-paced streams while huge prompts arrive.

    python -m benchmarks.stalls [--seconds 10] [--tokens 200000] [--every 0.5]

Starts the backend and a one-worker gateway. Gaps are measured at the client; the same streams straight from the backend
and through the quiet gateway are the baseline, so that the machine's own jitter is seen.
"""

import argparse
import asyncio
import contextlib
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

import uvloop

from benchmarks.contenders import KEY, start_gateway
from benchmarks.processes import Program, free_ports

PROSE = "The quick brown fox jumps over the lazy dog near the riverbank, 17 times. "
TOKENS_OF_PROSE = 17
HEAD = (
    "POST /v1/chat/completions HTTP/1.1\r\nHost: g\r\nContent-Type: application/json\r\n"
    "Authorization: Bearer {key}\r\nContent-Length: {size}\r\n\r\n"
)


def raw(body: object) -> bytes:
    """A whole request."""
    data = json.dumps(body).encode()
    return HEAD.format(key=KEY, size=len(data)).encode() + data


def large(tokens: int, style: str) -> bytes:
    """A request of about ``tokens`` tokens of prose, in one message or in many."""
    times = tokens // TOKENS_OF_PROSE
    if style == "one":
        messages = [{"role": "user", "content": PROSE * times}]
    else:
        turns = ("user", "assistant")
        messages = [{"role": turns[number % 2], "content": PROSE * 4} for number in range(times // 4)]
    return raw({"model": "m", "max_tokens": 4, "messages": messages})


async def stream(port: int, seconds: float, gaps: list[float]) -> None:
    """One stream after another; seconds between reads go into ``gaps``."""
    request = raw({"model": "m", "stream": True, "user": "100x20", "messages": [{"role": "user", "content": "hi"}]})
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request)
        last = None
        while block := await reader.read(65536):
            now = time.perf_counter()
            if last is not None:
                gaps.append(now - last)
            last = now
            if b"0\r\n\r\n" in block[-8:]:
                break
        writer.close()


async def send(port: int, request: bytes, every_s: float) -> list[bool]:
    """Large bodies one after another until cancelled; whether each was answered well."""
    good: list[bool] = []
    with contextlib.suppress(asyncio.CancelledError):
        while True:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(request)
            good.append((await reader.read(65536)).startswith(b"HTTP/1.1 200"))
            writer.close()
            await asyncio.sleep(every_s)
    return good


def bodies(port: int, tokens: int, style: str, every_s: float, seconds: float) -> None:
    """The sender as a process of its own, so that the readers of streams are not held up by it."""

    async def run() -> list[bool]:
        task = asyncio.get_running_loop().create_task(send(port, large(tokens, style), every_s))
        await asyncio.sleep(seconds)
        task.cancel()
        return await task

    good = uvloop.run(run())
    print(json.dumps({"sent": len(good), "failed": good.count(False)}))


async def gaps_of(port: int, seconds: float, streams: int) -> list[float]:
    gaps: list[float] = []
    await asyncio.gather(*(stream(port, seconds, gaps) for _ in range(streams)))
    return gaps


def row(name: str, gaps: Sequence[float], note: str = "") -> str:
    ordered = sorted(gaps)
    p50, p99 = (ordered[min(len(ordered) - 1, int(share * len(ordered)))] * 1000 for share in (0.5, 0.99))
    return f"{name:<52}{len(gaps):>8}{p50:>9.2f}{p99:>9.2f}{ordered[-1] * 1000:>9.2f}  {note}"


def main(options: argparse.Namespace) -> None:
    (backend_port,) = free_ports(1)
    with contextlib.ExitStack() as held:
        folder = Path(held.enter_context(tempfile.TemporaryDirectory(prefix="quantgate-stalls-")))
        output = held.enter_context((folder / "output.log").open("w"))
        backend = Program("backend", [sys.executable, "-m", "benchmarks.backend", str(backend_port)], [1], output)
        held.callback(backend.stop)
        gateway = start_gateway(folder, backend_port, (0, 1), output)[0]
        held.callback(gateway.program.stop)
        port = urlsplit(gateway.url).port or 0

        def measure(where: int) -> list[float]:
            return uvloop.run(gaps_of(where, options.seconds, options.streams))

        print(f"{'gaps in ms':<52}{'count':>8}{'p50':>9}{'p99':>9}{'max':>9}")
        print(row("straight from the backend", measure(backend_port)))
        print(row("through the gateway, quiet", measure(port)))
        for style in ("one", "many"):
            command = [sys.executable, "-m", "benchmarks.stalls", "--send", str(port), style]
            command += ["--tokens", str(options.tokens), "--every", str(options.every)]
            command += ["--seconds", str(options.seconds)]
            sender = Program("bodies", command, [1], output, stdout=-1, text=True)
            gaps = measure(port)
            said, _ = sender.process.communicate(timeout=60)
            result = json.loads(said)
            size = len(large(options.tokens, style)) / 1e6
            what = f"while bodies of {size:.1f} MB arrive, {style} message{'s' if style == 'many' else ''}"
            print(row(what, gaps, f"{result['sent']} sent, {result['failed']} failed"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--tokens", type=int, default=200_000)
    parser.add_argument("--every", type=float, default=0.5, help="seconds between two large bodies")
    parser.add_argument("--streams", type=int, default=4)
    parser.add_argument("--send", nargs=2, metavar=("PORT", "STYLE"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.send:
        bodies(int(given.send[0]), given.tokens, given.send[1], given.every, given.seconds)
    else:
        main(given)
