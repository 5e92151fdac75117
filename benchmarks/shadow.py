"""What shadow traffic costs clients: latency, errors and memory with candidates from good to hostile.

    python -m benchmarks.shadow [--rate 150] [--seconds 6] [--rounds 3] [--candidates off,good,hang,errors,endless]

Each row is a gateway of its own (one worker on the first core; control, backend, candidate and load on the second) that
mirrors every request, with a second run of the baseline for a fifth. Rows are measured in turns, round by round, and
each number is the median over the rounds, because other work on the machine comes and goes. ``worker`` is the worker's
own resident memory after the warm-up, and how much it has grown after the load. ``straight`` is the backend without a
gateway, which shows the machine's own noise.
"""

import argparse
import asyncio
import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
import urllib.request
from collections import defaultdict
from pathlib import Path
from typing import IO, Any

import uvloop
import yaml

from benchmarks.processes import Program, free_ports, pin, wait_until

CANDIDATES = ("off", "good", "hang", "errors", "endless")
ERROR = b'{"error":{"message":"broken","type":"server_error","param":null,"code":500}}'
HEAD = b"HTTP/1.1 %b\r\nContent-Type: %b\r\n%b\r\n"
FLOOD = b"data: " + json.dumps({"choices": [{"index": 0, "delta": {"content": "word " * 400}}]}).encode() + b"\n\n"
WARM_UP = 300


class Candidate(asyncio.Protocol):
    """A bad endpoint: it never answers, errs at once, or sends for ever. Probes (GET) are answered."""

    mode = "hang"

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: asyncio.WriteTransport = transport  # type: ignore[assignment]
        self._buffer = b""
        self._flowing = False
        self._gone = False

    def connection_lost(self, exc: Exception | None) -> None:
        self._gone = True

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head = self._buffer[:end].lower()
            at = head.find(b"content-length:")
            length = int(head[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
            if len(self._buffer) < end + 4 + length:
                return
            self._buffer = self._buffer[end + 4 + length :]
            self._answer(head)

    def _answer(self, head: bytes) -> None:
        if head.startswith(b"get"):
            self._transport.write(HEAD % (b"200 OK", b"application/json", b"Content-Length: 2\r\n") + b"{}")
        elif self.mode == "errors":
            length = b"Content-Length: %d\r\n" % len(ERROR)
            self._transport.write(HEAD % (b"500 Error", b"application/json", length) + ERROR)
        elif self.mode == "endless":
            length = b"Content-Length: 1000000000000\r\n"
            self._transport.write(HEAD % (b"200 OK", b"text/event-stream", length))
            self._flowing = True
            self._flow()

    def _flow(self) -> None:
        if not self._gone and self._flowing:
            self._transport.write(FLOOD)
            asyncio.get_running_loop().call_soon(self._flow)

    def pause_writing(self) -> None:
        self._flowing = False

    def resume_writing(self) -> None:
        self._flowing = True
        self._flow()


async def serve_candidate(port: int, mode: str) -> None:
    Candidate.mode = mode
    server = await asyncio.get_running_loop().create_server(Candidate, "127.0.0.1", port)
    await server.serve_forever()


def policy(backend: int, candidate: int | None) -> dict[str, Any]:
    """Everything is mirrored; the checks of answers are off, so that only shadow traffic differs between rows."""
    pools = {"base": backend} if candidate is None else {"base": backend, "cand": candidate}
    document: dict[str, Any] = {
        "version": 1,
        "models": {"m": {"baseline": "base", "tokenizer": {"tiktoken": "cl100k_base"}}},
        "pools": {
            name: {
                "model": "m",
                "runtime": "openai",
                "precision": {"weights": "bf16", "activations": "bf16", "kv_cache": "bf16"},
                "endpoints": [f"http://127.0.0.1:{port}"],
                "attestation": "off",
            }
            for name, port in pools.items()
        },
        "tenants": {"anonymous": {"allow": True}},
        "routes": [{"name": "all", "pools": ["base"]}],
        "evidence": {"check": {"structured": "0%", "tools": "0%", "other": "0%"}},
    }
    if candidate is not None:
        document["shadow"] = [{"name": "s", "sample": "100%", "candidate": "cand", "noise_leg": "20%"}]
    return document


class Row:
    """One gateway with its candidate."""

    def __init__(self, name: str, folder: Path, backend: int, held: contextlib.ExitStack, output: IO[Any]) -> None:
        self.name = name
        folder.mkdir()
        candidate: int | None = None
        if name == "good":
            candidate = backend
        elif name != "off":
            (candidate,) = free_ports(1)
            command = [sys.executable, "-m", "benchmarks.shadow", "--serve", str(candidate), name]
            held.callback(Program(name, command, [1], output).stop)
        self.port, self.admin = free_ports(2)
        config = folder / "policy.yaml"
        config.write_text(yaml.safe_dump(policy(backend, candidate)))
        command = [sys.executable, "-m", "gateway", "serve", "--config", str(config), "--workers", "1"]
        command += ["--listen", f"127.0.0.1:{self.port}", "--admin", f"127.0.0.1:{self.admin}", "--drain-s", "1"]
        command += ["--state-dir", str(folder / "state"), "--access-log", str(folder / "access.jsonl")]
        self._program = Program(name, command, [0, 1], output)
        held.callback(self._program.stop)
        wait_until(self._ready, f"the gateway of {name} does not start", lambda: self._program.process.poll() is None)
        (worker,) = self._get("/api/v1/workers")["workers"]
        self._worker = int(worker["pid"])
        for pid in self._program.pids():
            pin(pid, [0] if pid == self._worker else [1])
        load(f"http://127.0.0.1:{self.port}", WARM_UP, 2.0)
        self.before_kib = self.resident_kib()

    def resident_kib(self) -> int:
        status = Path(f"/proc/{self._worker}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0])

    def events(self) -> dict[str, int]:
        """What became of the mirrored requests."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.admin}/metrics") as answer:
            lines = answer.read().decode().splitlines()
        found = [line for line in lines if line.startswith("quantgate_shadow_requests_total{")]
        return {line.partition('event="')[2].partition('"')[0]: int(float(line.rpartition(" ")[2])) for line in found}

    def _ready(self) -> bool:
        with contextlib.suppress(OSError):
            return bool(self._get("/readyz")["workers"]["on_current_generation"] == 1)
        return False

    def _get(self, path: str) -> Any:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.admin}{path}") as answer:
            return json.load(answer)


def load(url: str, rate: float, seconds: float) -> dict[str, Any]:
    """Open-loop load from a process of its own."""
    command = [sys.executable, "-m", "benchmarks.load", f"{url}/v1/chat/completions", "plain"]
    command += ["--rate", str(rate), "--seconds", str(seconds)]
    done = subprocess.run(["taskset", "-c", "1", *command], capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main(options: argparse.Namespace) -> None:
    names = [name for name in options.candidates.split(",") if name]
    unknown = set(names) - set(CANDIDATES)
    if unknown:
        raise SystemExit(f"no candidate {', '.join(unknown)}; there are {', '.join(CANDIDATES)}")
    with contextlib.ExitStack() as held:
        folder = Path(held.enter_context(tempfile.TemporaryDirectory(prefix="quantgate-shadow-")))
        output = held.enter_context((folder / "output.log").open("w"))
        (backend,) = free_ports(1)
        held.callback(Program("backend", [sys.executable, "-m", "benchmarks.backend", str(backend)], [1], output).stop)
        rows = [Row(name, folder / name, backend, held, output) for name in names]
        results: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for _ in range(options.rounds):
            results["straight"].append(load(f"http://127.0.0.1:{backend}", options.rate, options.seconds))
            for row in rows:
                results[row.name].append(load(f"http://127.0.0.1:{row.port}", options.rate, options.seconds))
        print(f"{'candidate':<10}{'requests':>10}{'failed':>8}{'p50 ms':>9}{'p99 ms':>9}{'worker MiB':>12}{'grown':>8}")
        print(line("straight", results["straight"]))
        for row in rows:
            grown = (row.resident_kib() - row.before_kib) / 1024
            print(f"{line(row.name, results[row.name])}{row.before_kib / 1024:>12.1f}{grown:>+8.1f}  {told(row)}")


def line(name: str, found: list[dict[str, Any]]) -> str:
    done, failed = (sum(one[key] for one in found) for key in ("done", "failed"))
    p50, p99 = (statistics.median(one[key] for one in found) / 1000 for key in ("p50_us", "p99_us"))
    return f"{name:<10}{done:>10}{failed:>8}{p50:>9.2f}{p99:>9.2f}"


def told(row: Row) -> str:
    return ", ".join(f"{event} {number}" for event, number in sorted(row.events().items()) if event != "eligible")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=float, default=150, help="requests a second")
    parser.add_argument("--seconds", type=float, default=6, help="of each row in each round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--candidates", default=",".join(CANDIDATES))
    parser.add_argument("--serve", nargs=2, metavar=("PORT", "MODE"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        uvloop.run(serve_candidate(int(given.serve[0]), given.serve[1]))
    else:
        main(given)
