"""Outcomes through a real control process in real time: processor time of each, idle time, loss; everything on.

    python -m benchmarks.outcomes [--rate 1000] [--seconds 10] [--rounds 3] [--captures 0.05] [--rollout] [--profile]
    python -m benchmarks.outcomes --parts

Starts `gateway.app.control_main` on one core as the supervisor does (metrics, access log to a file, records to SQLite,
checks in their process), dials its socket as a worker and sends what finished every 300 ms, as workers do, from the
other core. First nothing for a while, so that what timers cost shows beside what outcomes cost. Then reads from its
metrics what arrived where. A loss anywhere (dropped lines, rows, skipped checks) ends in exit 1. `--parts` measures
the parts of control one by one in this process (`benchmarks.outcome_parts`).
"""

import argparse
import asyncio
import os
import random
import shutil
import signal
import sqlite3
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import aiohttp
import msgspec
from prometheus_client.parser import text_string_to_metric_families

from benchmarks import outcome_parts
from benchmarks.contenders import SAID_CHARS
from benchmarks.outcome_values import packed, policy, samples
from benchmarks.processes import free_ports
from gateway.dataplane.link import FLUSH_S, STATS_S
from gateway.model.messages import Hello, Outcomes, Prepare, Prepared, Stats, ToWorker

WARM = 256
SETTLE_S = 3.0


def start(folder: Path, admin: str, core: int, *, rollout: bool) -> subprocess.Popen[bytes]:
    """Control, and with it its scorers, on one core."""
    (folder / "policy.yaml").write_text(policy(rollout=rollout))
    command = [sys.executable, "-m", "gateway.app.control_main", "--config", str(folder / "policy.yaml")]
    command += ["--admin", admin, "--control-socket", str(folder / "s"), "--state-dir", str(folder)]
    command += ["--workers", "1", "--access-log", str(folder / "access.jsonl")]
    with (folder / "control.log").open("wb") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, preexec_fn=lambda: os.sched_setaffinity(0, {core}))  # noqa: PLW1509 - no threads here


class Worker:
    """A worker's end of the link that only sends. ``longest_s``: the longest that control made it wait."""

    longest_s = 0.0

    async def dial(self, path: Path, control: subprocess.Popen[bytes]) -> None:
        """Join, and take the table."""
        while True:
            try:
                self.reader, self.writer = await asyncio.open_unix_connection(str(path))
                break
            except OSError:
                if control.poll() is not None:
                    said = (path.parent / "control.log").read_text(errors="replace")[-SAID_CHARS:]
                    raise SystemExit(f"control did not start; the last that it said:\n{said}") from None
                await asyncio.sleep(0.1)
        self.send(Hello(0, os.getpid(), 0))
        while True:
            (length,) = struct.unpack(">I", await self.reader.readexactly(4))
            message = msgspec.msgpack.decode(await self.reader.readexactly(length), type=ToWorker)
            if isinstance(message, Prepare):
                self.send(Prepared(0, message.generation, ""))
                break

    def send(self, message: object) -> None:
        """One frame."""
        body = msgspec.msgpack.encode(message)
        self.writer.write(struct.pack(">I", len(body)) + body)

    async def drive(self, moments: list[list[bytes]]) -> None:
        """The batches of a moment every ``FLUSH_S``, and the gauges every ``STATS_S``."""
        began = time.monotonic()
        for index, batches in enumerate(moments):
            wait_s = began + index * FLUSH_S - time.monotonic()
            if wait_s > 0:
                await asyncio.sleep(wait_s)
            if index % round(STATS_S / FLUSH_S) == 0:
                self.send(Stats(0, 1, 0, 0, 0, {}, [], 0.0, False))
            for batch in batches:
                self.send(Outcomes(0, 0, batch))
            before = time.monotonic()
            await self.writer.drain()
            self.longest_s = max(self.longest_s, time.monotonic() - before)


async def scrape(admin: str) -> dict[str, float]:
    """Sums of control's metrics by name, drops by name and reason."""
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://{admin}/metrics", headers={"Accept-Encoding": "identity"}) as answer,
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


async def written(admin: str, count: int) -> dict[str, float]:
    """The metrics once so many records are written, or none more come."""
    deadline = time.monotonic() + 60.0
    while True:
        found = await scrape(admin)
        rows = found.get("quantgate_records_written_total requests", 0.0)
        if rows >= count or found.get("quantgate_records_dropped_total", 0.0) or time.monotonic() > deadline:
            return found
        await asyncio.sleep(0.3)


def threads_us(pid: int) -> dict[int, float]:
    """Processor time of each thread of a process so far, from the scheduler, in microseconds."""
    found = {}
    for thread in Path(f"/proc/{pid}/task").iterdir():
        try:
            found[int(thread.name)] = int((thread / "schedstat").read_text().split()[0]) / 1e3
        except OSError:
            continue
    return found


def total_us(pids: list[int]) -> float:
    """Processor time of processes so far."""
    return sum(sum(threads_us(pid).values()) for pid in pids)


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


def by_thread(before: dict[int, float], after: dict[int, float], number: float) -> str:
    """The busiest threads, the first being the loop's, in microseconds per ``number``."""
    spent = {thread: (after[thread] - before.get(thread, 0.0)) / number for thread in after}
    loop, *others = sorted(spent)
    busiest = sorted((spent[thread] for thread in others), reverse=True)
    return f"loop {spent[loop]:.1f}, threads {', '.join(f'{us:.1f}' for us in busiest if us >= 0.05) or 'none'}"


async def measure(options: argparse.Namespace, folder: Path) -> int:
    """One control, several rounds."""
    cores = sorted(os.sched_getaffinity(0))
    admin = f"127.0.0.1:{free_ports(1)[0]}"
    control = start(folder, admin, cores[0], rollout=options.rollout)
    os.sched_setaffinity(0, {cores[-1]})
    try:
        worker = Worker()
        await worker.dial(folder / "s", control)
        rng = random.Random(1)
        now = time.time()  # noqa: TID251 - a program of its own
        (warm,) = packed(samples(WARM, now, rng, 0, texts=0.5, rollout=options.rollout))
        worker.send(Outcomes(0, 0, warm))
        await written(admin, WARM)
        await asyncio.sleep(SETTLE_S)
        await idle(worker, control.pid, options.idle)
        sent, texts, costs = WARM, 0, []
        below = children(control.pid)
        scorers = total_us(below)
        for _ in range(options.rounds):
            size, number = max(1, round(options.rate * FLUSH_S)), round(options.seconds / FLUSH_S)
            now = time.time()  # noqa: TID251 - a program of its own
            made = [
                samples(size, now + n * FLUSH_S, rng, sent + size * n, texts=options.captures, rollout=options.rollout)
                for n in range(number)
            ]
            texts += sum(outcome.capture is not None for batch in made for outcome in batch)
            moments = list(map(packed, made))
            spy = profile(control.pid, options.seconds) if options.profile else None
            before = threads_us(control.pid)
            await worker.drive(moments)
            after = threads_us(control.pid)
            sent += size * number
            costs.append((sum(after.values()) - sum(before.values())) / (size * number))
            print(f"control {costs[-1]:.1f} us an outcome at {size / FLUSH_S:,.0f} a second: ", end="")
            print(by_thread(before, after, size * number))
            if spy is not None:
                spy.wait()
        found = await written(admin, sent)
        print(f"control {statistics.median(costs):.1f} us an outcome, the median of {len(costs)}")
        print(f"scorer {(total_us(below) - scorers) / max(1, texts):,.0f} us a checked answer, {texts:,} with texts")
        lag_s = found.get("lag", 0.0)
        print(f"longest wait of the worker {worker.longest_s * 1e3:.0f} ms, loop lag {lag_s * 1e3:.0f} ms")
        return tell_losses(folder, found, sent)
    finally:
        control.send_signal(signal.SIGTERM)
        try:
            control.wait(15)
        except subprocess.TimeoutExpired:
            control.kill()


async def idle(worker: Worker, pid: int, seconds: float) -> None:
    """What control costs while nothing comes but a worker's gauges."""
    before = threads_us(pid)
    await worker.drive([[]] * round(seconds / FLUSH_S))
    after = threads_us(pid)
    spent = (sum(after.values()) - sum(before.values())) / seconds
    print(f"idle {spent / 1e4:.2f} % of a core, {spent / 1e3:.2f} us an outcome at 1,000 a second: ", end="")
    print(by_thread(before, after, 1e3 * seconds))


def profile(pid: int, seconds: float) -> subprocess.Popen[bytes]:
    """py-spy on control."""
    return subprocess.Popen(
        ["py-spy", "record", "-p", str(pid), "-d", str(int(seconds)), "-r", "200", "-f", "raw", "-o", "outcomes.prof"],
        stdout=subprocess.DEVNULL,
    )


def tell_losses(folder: Path, found: dict[str, float], sent: int) -> int:
    """Print, and say whether anything was lost."""
    with sqlite3.connect(folder / "records.sqlite") as database:
        (rows,) = database.execute("select count(*) from requests").fetchone()
        (checked,) = database.execute("select count(*) from requests where score is not null").fetchone()
    lines = (folder / "access.jsonl").read_bytes().count(b"\n")
    skipped = {k: v for k, v in found.items() if k.startswith("quantgate_checks_skipped_total ") and v}
    lost = {
        "metrics": sent - int(found.get("quantgate_requests_total", 0.0)),
        "access log": sent - lines,
        "records": sent - rows,
        "checks": sum(int(value) for value in skipped.values()),
    }
    print(f"rows {rows:,}, checked {checked:,}; lost: {lost} {skipped or ''}")
    return 1 if any(lost.values()) else 0


def main() -> None:
    """Run once."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rate", type=float, default=1000.0)
    parser.add_argument("--seconds", type=float, default=10.0, help="of one round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--idle", type=float, default=10.0, help="seconds without outcomes before")
    parser.add_argument("--captures", type=float, default=0.0, help="share of outcomes with texts")
    parser.add_argument("--rollout", action="store_true", help="all outcomes belong to a rollout with five guards")
    parser.add_argument("--profile", action="store_true", help="write outcomes.prof with py-spy")
    parser.add_argument("--parts", action="store_true", help="each part by itself, in this process")
    options = parser.parse_args()
    if options.parts:
        outcome_parts.measure()
        return
    if options.profile and shutil.which("py-spy") is None:
        parser.error("--profile needs py-spy: pip install py-spy")
    with tempfile.TemporaryDirectory(prefix="quantgate-outcomes-") as folder:
        raise SystemExit(asyncio.run(measure(options, Path(folder))))


if __name__ == "__main__":
    main()
