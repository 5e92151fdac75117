"""The gateway beside nginx and, with ``--with-rust-routers``, vllm-router and sglang-router: one run, one table.

    python -m benchmarks.compare [--rounds 5] [--with-rust-routers] [--json FILE]

Starts everything itself on loopback: a canned backend and the load on the second core, each contender on the first.
Rounds are interleaved and medians quoted, because a machine's speed drifts; what counts are the ratios to nginx, taken
within each round. ``benchmarks/README.md`` says how to read the table.
"""

import argparse
import contextlib
import json
import os
import platform
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from benchmarks.contenders import (
    KEY,
    SAID_CHARS,
    CannotStartError,
    Contender,
    install_routers,
    nginx_binary,
    start_checking_gateway,
    start_gateway,
    start_nginx,
    start_router,
)
from benchmarks.processes import ROOT, Program, free_ports, wait_until

# column: (unit, what it is)
COLUMNS = {
    "flood": ("1/s", "requests a second at saturation"),
    "busy": ("%", "share of its core that the proxy used meanwhile"),
    "cpu_req": ("µs", "processor time of all its processes per request"),
    "p50": ("µs", "median latency above the backend's own"),
    "p99": ("µs", "99th percentile above the backend's own"),
    "cpu_event": ("µs", "processor time of all its processes per streamed event"),
    "gap_p99": ("ms", "99th percentile of the gap between reads of a 20 ms stream"),
    "stream": ("KiB", "memory of all its processes per open stream, measured once"),
}
# column, rival, most or least, bound. Rival None = an absolute bound.
FLOORS = (
    ("cpu_req", "nginx", "most", 2.2),
    ("cpu_req", "vllm-router", "most", 0.9),
    ("cpu_event", "nginx", "most", 1.3),
    ("p50", "nginx", "most", 1.6),
    ("flood", "nginx", "least", 0.55),
    ("stream", None, "most", 24.0),
)
GATEWAY = "quantgate"


@dataclass
class Row:
    """One contender's numbers, one per round and column."""

    values: dict[str, list[float]] = field(default_factory=dict)
    failed: int = 0

    def note(self, column: str, value: float) -> None:
        self.values.setdefault(column, []).append(value)

    def median(self, column: str) -> float | None:
        values = self.values.get(column)
        return statistics.median(values) if values else None


def ratio(row: Row, rival: Row, column: str) -> float | None:
    """Median over the rounds of the ratio within a round, which drift of the machine does not touch."""
    pairs = zip(row.values.get(column, []), rival.values.get(column, []), strict=False)
    ratios = [mine / theirs for mine, theirs in pairs if theirs > 0]
    return statistics.median(ratios) if ratios else None


class Bench:
    """One run: the contenders, their rows, and how each column is measured."""

    def __init__(self, options: argparse.Namespace, folder: Path, cores: tuple[int, int], output: IO[Any]) -> None:
        self.options = options
        self.folder = folder
        self.cores = cores
        self.output = output
        self.contenders: list[Contender] = []
        self.rows: dict[str, Row] = {"direct": Row()}
        self.left_out: list[str] = []

    def start(self, held: contextlib.ExitStack) -> str:
        """Backend and contenders; the backend's URL."""
        (backend,) = free_ports(1)
        command = [sys.executable, "-m", "benchmarks.backend", str(backend)]
        program = Program("backend", command, self.cores[1:], self.output)
        held.callback(program.stop)
        url = f"http://127.0.0.1:{backend}/v1/chat/completions"
        wait_until(
            lambda: self._load(url, "plain", rate=10, seconds=0.1, check=False) is not None, "no backend", lambda: True
        )
        for make in self._starters(backend):
            try:
                made = make()
            except CannotStartError as error:
                self.output.flush()
                said = Path(self.output.name).read_text(errors="replace")[-SAID_CHARS:]
                self._leave_out(f"{error}; the last that the others said:\n{said}")
                continue
            for contender in made:
                held.callback(contender.program.stop)
                self.contenders.append(contender)
                self.rows[contender.name] = Row()
        return url

    def _starters(self, backend: int) -> Iterator[Any]:
        place = (self.folder, backend, self.cores, self.output)
        if nginx_binary():
            yield lambda: [start_nginx(*place)]
        else:
            self._leave_out("nginx is not installed (Debian: nginx-light), so there are no ratios")
        yield lambda: start_gateway(*place)
        yield lambda: [start_checking_gateway(*place)]
        if self.options.with_rust_routers:
            for name in install_routers(self._say):
                yield lambda name=name: [start_router(name, *place)]

    def run(self, direct: str) -> None:
        """All rounds."""
        for contender in self._programs():
            contender.prepare()
            self._load(contender.url, "plain", rate=1000, seconds=2)
            self._load(contender.url, "stream", streams=10, seconds=1, pace="20x10")
            self._memory(contender)
        for number in range(self.options.rounds):
            self._say(f"round {number + 1} of {self.options.rounds}")
            base = self._load(direct, "plain", rate=self.options.rate, seconds=self.options.seconds)
            self.rows["direct"].note("p50", base["p50_us"])
            self.rows["direct"].note("p99", base["p99_us"])
            for contender in self.contenders:
                contender.prepare()
                self._answers(contender, base)
                self._streams(contender)

    def _programs(self) -> list[Contender]:
        firsts: dict[str, Contender] = {}
        for contender in self.contenders:
            firsts.setdefault(contender.program.name, contender)
        return list(firsts.values())

    def _answers(self, contender: Contender, base: dict[str, Any]) -> None:
        row, program, seconds = self.rows[contender.name], contender.program, self.options.seconds
        flood, cpu_s = self._spent(program, contender.url, "flood", connections=32, seconds=seconds)
        row.note("busy", cpu_s / flood["seconds"] * 100)
        row.note("flood", flood["per_second"])
        plain, cpu_s = self._spent(program, contender.url, "plain", rate=self.options.rate, seconds=seconds)
        row.note("cpu_req", cpu_s / max(1, plain["done"]) * 1e6)
        row.note("p50", plain["p50_us"] - base["p50_us"])
        row.note("p99", plain["p99_us"] - base["p99_us"])
        row.failed += flood["failed"] + plain["failed"]

    def _spent(self, program: Program, url: str, mode: str, **options: Any) -> tuple[Any, float]:
        """One load, and all the processor time that it cost: also what the program puts off until it is over."""
        before_s = program.settled_cpu_s()
        result = self._load(url, mode, **options)
        return result, program.settled_cpu_s() - before_s

    def _streams(self, contender: Contender) -> None:
        row, program = self.rows[contender.name], contender.program
        seconds = self.options.seconds
        stream, cpu_s = self._spent(program, contender.url, "stream", streams=200, seconds=seconds, pace="100x20")
        events = max(1, stream["done"] * 101)  # the last write carries finish reason, usage and [DONE]
        row.note("cpu_event", cpu_s / events * 1e6)
        row.note("gap_p99", (stream["gap_p99_us"] or 0.0) / 1000)
        row.failed += stream["failed"]

    def _memory(self, contender: Contender) -> None:
        """Once, before anything else has filled free lists that would hide it: streams open against none."""
        row, program, streams = self.rows[contender.name], contender.program, self.options.streams
        idle_kib = program.memory_kib()
        command = self._load_command(contender.url, "hold", streams=streams, pace="8x1000")
        load = Program("hold", command, self.cores[1:], self.output, stdout=subprocess.PIPE, text=True)
        try:
            assert load.process.stdout is not None
            opened = json.loads(load.process.stdout.readline() or '{"open": 0}')["open"]
            if opened:
                row.note("stream", max(0.0, (program.memory_kib() - idle_kib) / opened))
            row.failed += json.loads(load.process.stdout.readline() or f'{{"failed": {streams}}}')["failed"]
        finally:
            load.stop()

    def _load_command(self, url: str, mode: str, **options: Any) -> list[str]:
        words = [word for key, value in options.items() for word in (f"--{key}", str(value))]
        return [sys.executable, "-m", "benchmarks.load", url, mode, "--key", KEY, *words]

    def _load(self, url: str, mode: str, check: bool = True, **options: Any) -> Any:
        command = ["taskset", "-c", str(self.cores[1]), *self._load_command(url, mode, **options)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=ROOT, check=False)
        if done.returncode == 0:
            return json.loads(done.stdout)
        if check:
            raise RuntimeError(f"the load failed on {url}: {done.stderr[-500:]}")
        return None

    def _leave_out(self, why: str) -> None:
        self.left_out.append(why)
        self._say(why)

    def _say(self, line: str) -> None:
        print(line, file=sys.stderr, flush=True)


def floors(rows: dict[str, Row]) -> list[dict[str, Any]]:
    """Each floor of the project with what was reached; ``ok`` None = the rival was not measured."""
    found = []
    gateway = rows.get(GATEWAY, Row())
    for column, rival, kind, bound in FLOORS:
        value = gateway.median(column) if rival is None else ratio(gateway, rows.get(rival, Row()), column)
        ok = None if value is None else (value <= bound if kind == "most" else value >= bound)
        found.append({"column": column, "rival": rival, kind: bound, "reached": value, "ok": ok})
    return found


def table(rows: dict[str, Row]) -> str:
    """Medians, ratios to nginx, floors."""
    width = max(len(name) for name in rows) + 2
    lines = [" " * width + "".join(f"{f'{name} {unit}':>16}" for name, (unit, _) in COLUMNS.items()) + f"{'failed':>9}"]
    for name, row in rows.items():
        cells = "".join(f"{_number(row.median(column)):>16}" for column in COLUMNS)
        lines.append(f"{name:<{width}}{cells}{row.failed:>9}")
    nginx = rows.get("nginx")
    if nginx is not None:
        lines += ["", "ratios to nginx, median over the rounds"]
        for name, row in rows.items():
            if name not in ("nginx", "direct"):
                cells = "".join(f"{_number(ratio(row, nginx, column), 2):>16}" for column in COLUMNS)
                lines.append(f"{name:<{width}}{cells}")
    lines += ["", "floors"]
    for floor in floors(rows):
        kind = "most" if "most" in floor else "least"
        rival = f" of {floor['rival']}" if floor["rival"] else " " + COLUMNS[floor["column"]][0]
        word = {None: "not measured", True: "ok", False: "MISS"}[floor["ok"]]
        reached = _number(floor["reached"], 2)
        lines.append(f"  {floor['column']:<10} at {kind:<5} {floor[kind]:>5}{rival:<16} reached {reached:>7}  {word}")
    return "\n".join(lines)


def _number(value: float | None, digits: int = 1) -> str:
    return "-" if value is None else f"{value:,.{digits}f}" if abs(value) < 1000 else f"{value:,.0f}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4.0, help="length of each measurement")
    parser.add_argument("--rate", type=int, default=1000, help="requests a second for cpu_req, p50 and p99")
    parser.add_argument("--streams", type=int, default=1000, help="open streams for the memory column")
    parser.add_argument("--with-rust-routers", action="store_true", help="install (once) and measure the Rust routers")
    parser.add_argument("--strict", action="store_true", help="exit status 1 if a floor is missed")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every number of every round")
    options = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        parser.error("two cores are needed: one for the proxy, one for load and backend")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with contextlib.ExitStack() as held:
        folder = Path(held.enter_context(tempfile.TemporaryDirectory(prefix="quantgate-bench-")))
        output = held.enter_context((folder / "output.log").open("w"))
        bench = Bench(options, folder, (cores[0], cores[1]), output)
        bench.run(bench.start(held))
    print(table(bench.rows))
    if options.json:
        result = {
            "machine": {"platform": platform.platform(), "python": platform.python_version(), "cores": len(cores)},
            "options": {key: value for key, value in vars(options).items() if key != "json"},
            "rounds": {name: {**row.values, "failed": row.failed} for name, row in bench.rows.items()},
            "floors": floors(bench.rows),
            "left_out": bench.left_out,
        }
        options.json.write_text(json.dumps(result, indent=1) + "\n")
    failed = any(row.failed for row in bench.rows.values())
    missed = options.strict and any(floor["ok"] is False for floor in floors(bench.rows))
    return 1 if failed or missed else 0


if __name__ == "__main__":
    sys.exit(main())
