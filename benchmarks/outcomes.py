"""Outcomes through a real control process: rate, loss, processor time of each, everything on.

    python -m benchmarks.outcomes [--rate 5000] [--seconds 20] [--captures 0.05] [--profile]

Starts `gateway.app.control_main` on one core as the supervisor does (metrics, access log to a file, records to SQLite,
checks in their process), dials its socket as a worker and sends batches of real outcomes at a fixed rate from the other
core. Then reads from its metrics what arrived where. A loss anywhere (dropped lines, rows, skipped checks) ends in
exit 1.
"""

import argparse
import asyncio
import json
import os
import random
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import aiohttp
import msgspec
from prometheus_client.parser import text_string_to_metric_families

from gateway.model.messages import Hello, Outcomes, Prepare, Prepared, Stats, ToWorker
from gateway.model.outcome import Attempt, Capture, Outcome

BATCH = 256
TICK_HZ = os.sysconf("SC_CLK_TCK")

POLICY = """
version: 1
models: {m: {context_window: 32k}}
pools:
  bf16:
    model: m
    runtime: openai
    precision: {weights: bf16, activations: bf16, kv_cache: bf16}
    endpoints: ["http://127.0.0.1:9"]
    attestation: "off"
  int4:
    model: m
    runtime: openai
    precision: {weights: int4, activations: bf16, kv_cache: bf16, group_size: 128, method: awq}
    hardware: {gpu: A100, compute_capability: "8.0"}
    endpoints: ["http://127.0.0.1:10"]
    attestation: "off"
tenants: {anonymous: {allow: true}}
routes: [{name: default, pools: [int4, bf16]}]
evidence: {check: {structured: 100%, tools: 100%, other: 5%}}
"""

REQUEST = json.dumps(
    {"model": "m", "messages": [{"role": "user", "content": "Tell me about the sea and its tides. " * 12}]}
).encode()
ANSWER = json.dumps(
    {
        "id": "c",
        "object": "chat.completion",
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": " ".join(f"Tide {n} comes and goes." for n in range(60))},
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 120, "completion_tokens": 300, "total_tokens": 420},
    }
).encode()
TEXTS = Capture(REQUEST, ANSWER, False)
LENGTHS = ("short", "medium", "long", "huge")


def outcomes(count: int, captures: float, rng: random.Random, first: int) -> list[Outcome]:
    """Finished requests of forty buckets and two pools, a share with texts."""
    made = []
    now = time.time()  # noqa: TID251 - a program of its own
    for index in range(count):
        pool = "int4" if rng.random() < 0.5 else "bf16"
        ttft_s, span_s = rng.lognormvariate(-2.0, 0.5), rng.lognormvariate(0.5, 0.4)
        made.append(
            Outcome(
                f"bench-{first + index:012d}", now, 1, 0, "chat", f"tenant-{rng.randrange(20)}", "gold", "m", "",
                f"m/{rng.choice(LENGTHS)}/task{rng.randrange(10)}", "short", "chat", "none", "none",
                "none", True, "default", "none", "", pool, f"{pool}/0", pool, 200, "ok", "", "",
                (Attempt(pool, f"{pool}/0", 200, "", 0.0004, ttft_s + span_s),), (), 0.0, 0.0003, ttft_s, span_s,
                ttft_s + span_s, 118, 120, rng.choice((0, 64)), 300, 302, 520, 48_000, "stop", False, 0.7,
                f"{rng.getrandbits(128):032x}", (), TEXTS if rng.random() < captures else None,
                f"{rng.getrandbits(128):032x}", 0.05,
            )
        )  # fmt: skip
    return made


def start(folder: Path, core: int) -> subprocess.Popen[bytes]:
    """Control, and with it its scorers, on one core."""
    (folder / "policy.yaml").write_text(POLICY)
    command = [sys.executable, "-m", "gateway.app.control_main", "--config", str(folder / "policy.yaml")]
    command += ["--admin", "127.0.0.1:18999", "--control-socket", str(folder / "s"), "--state-dir", str(folder)]
    command += ["--workers", "1", "--access-log", str(folder / "access.jsonl")]
    with (folder / "control.log").open("wb") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, preexec_fn=lambda: os.sched_setaffinity(0, {core}))  # noqa: PLW1509 - no threads here


class Worker:
    """A worker's end of the link that only sends."""

    async def dial(self, path: Path, control: subprocess.Popen[bytes]) -> None:
        """Join, and take the table."""
        while True:
            try:
                self.reader, self.writer = await asyncio.open_unix_connection(str(path))
                break
            except OSError:
                if control.poll() is not None:
                    raise SystemExit("control did not start: see control.log in its folder") from None
                await asyncio.sleep(0.1)
        self.send(Hello(0, os.getpid(), 0))
        while True:
            (length,) = struct.unpack(">I", await self.reader.readexactly(4))
            message = msgspec.msgpack.decode(await self.reader.readexactly(length), type=ToWorker)
            if isinstance(message, Prepare):
                self.send(Prepared(0, message.generation, ""))
                break
        self.send(Stats(0, 1, 0, 0, 0, {}, [], 0.0, False))

    def send(self, message: object) -> None:
        """One frame."""
        body = msgspec.msgpack.encode(message)
        self.writer.write(struct.pack(">I", len(body)) + body)


async def drive(worker: Worker, batches: list[list[Outcome]], rate: float) -> tuple[float, float]:
    """Send at a fixed rate; seconds it took, and the longest that control made us wait."""
    began, longest = time.monotonic(), 0.0
    for index, batch in enumerate(batches):
        wait_s = began + index * BATCH / rate - time.monotonic()
        if wait_s > 0:
            await asyncio.sleep(wait_s)
        worker.send(Outcomes(0, 0, batch))
        before = time.monotonic()
        await worker.writer.drain()
        longest = max(longest, time.monotonic() - before)
    return time.monotonic() - began, longest


async def scrape() -> dict[str, float]:
    """Sums of control's metrics by name, drops by name and reason."""
    async with (
        aiohttp.ClientSession() as session,
        session.get("http://127.0.0.1:18999/metrics", headers={"Accept-Encoding": "identity"}) as answer,
    ):
        text = await answer.text()
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            reason = next((sample.labels[name] for name in ("why", "table") if name in sample.labels), "")
            for key in {sample.name, f"{sample.name} {reason}".strip()}:
                found[key] = found.get(key, 0.0) + sample.value
            if sample.name == "quantgate_loop_lag_seconds":
                found["lag"] = max(found.get("lag", 0.0), sample.value)
    return found


def processor_s(pid: int) -> float:
    """Processor time of one process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK_HZ


def children(pid: int) -> list[int]:
    """Processes below one."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(path.read_text().rpartition(")")[2].split()[1]) == pid:
                found.append(int(path.parent.name))
        except (OSError, ValueError):
            continue
    return found + [below for child in found for below in children(child)]


async def measure(options: argparse.Namespace, folder: Path) -> int:
    """One run."""
    cores = sorted(os.sched_getaffinity(0))
    control = start(folder, cores[0])
    os.sched_setaffinity(0, {cores[-1]})
    try:
        worker = Worker()
        await worker.dial(folder / "s", control)
        rng = random.Random(1)
        count = int(options.rate * options.seconds) // BATCH * BATCH
        warm = outcomes(BATCH, 0.5, rng, 0)
        worker.send(Outcomes(0, 0, warm))
        while (await scrape()).get("quantgate_records_written_total requests", 0.0) < BATCH:  # noqa: ASYNC110
            await asyncio.sleep(0.2)
        batches = [outcomes(BATCH, options.captures, rng, BATCH * (1 + n)) for n in range(count // BATCH)]
        texts = sum(outcome.capture is not None for batch in batches for outcome in batch)
        below = children(control.pid)
        before = processor_s(control.pid), sum(map(processor_s, below))
        spy = profile(control.pid, options.seconds) if options.profile else None
        took_s, longest_s = await drive(worker, batches, options.rate)
        settle = time.monotonic() + 60.0
        while time.monotonic() < settle:
            found = await scrape()
            written = found.get("quantgate_records_written_total requests", 0.0)
            if written >= count + BATCH or found.get("quantgate_records_dropped_total", 0.0):
                break
            await asyncio.sleep(0.3)
        after = processor_s(control.pid), sum(map(processor_s, below))
        if spy is not None:
            spy.wait()
        return tell(folder, found, count, texts=texts, took_s=took_s, longest_s=longest_s, before=before, after=after)
    finally:
        control.send_signal(signal.SIGTERM)
        try:
            control.wait(15)
        except subprocess.TimeoutExpired:
            control.kill()


def profile(pid: int, seconds: float) -> subprocess.Popen[bytes]:
    """py-spy on control."""
    return subprocess.Popen(
        ["py-spy", "record", "-p", str(pid), "-d", str(int(seconds)), "-r", "200", "-f", "raw", "-o", "outcomes.prof"],
        stdout=subprocess.DEVNULL,
    )


def tell(
    folder: Path,
    found: dict[str, float],
    count: int,
    *,
    texts: int,
    took_s: float,
    longest_s: float,
    before: tuple[float, float],
    after: tuple[float, float],
) -> int:
    """Print, and say whether anything was lost."""
    control_s, scorer_s = after[0] - before[0], after[1] - before[1]
    with sqlite3.connect(folder / "records.sqlite") as database:
        (rows,) = database.execute("select count(*) from requests").fetchone()
        (checked,) = database.execute("select count(*) from requests where score is not null").fetchone()
    lines = (folder / "access.jsonl").read_bytes().count(b"\n")
    skipped = {k: v for k, v in found.items() if k.startswith("quantgate_checks_skipped_total ") and v}
    total = count + BATCH
    lost = {
        "metrics": total - int(found.get("quantgate_requests_total", 0.0)),
        "access log": total - lines,
        "records": total - rows,
        "checks": sum(int(value) for value in skipped.values()),
    }
    print(f"{count:,} outcomes in {took_s:.1f} s: {count / took_s:,.0f} a second, {texts:,} with texts")
    print(f"control {control_s / count * 1e6:.1f} us an outcome, {control_s / took_s:.2f} of a core")
    print(f"scorer {scorer_s / max(1, texts) * 1e6:,.0f} us a checked answer, {scorer_s / took_s:.2f} of a core")
    print(f"longest wait of the worker {longest_s * 1e3:.0f} ms, loop lag {found.get('lag', 0.0) * 1e3:.0f} ms")
    print(f"rows {rows:,}, checked {checked:,}; lost: {lost} {skipped or ''}")
    return 1 if any(lost.values()) else 0


def main() -> None:
    """Run once."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rate", type=float, default=5000.0)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--captures", type=float, default=0.05, help="share of outcomes with texts")
    parser.add_argument("--profile", action="store_true", help="write outcomes.prof with py-spy")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="quantgate-outcomes-") as folder:
        raise SystemExit(asyncio.run(measure(options, Path(folder))))


if __name__ == "__main__":
    main()
