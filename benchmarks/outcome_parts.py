"""What each part of control costs per outcome, one after the other in this process.

    python -m benchmarks.outcomes --parts

The parts see the batches that the recorder makes of a worker's messages at 1,000 outcomes a second, in real time:
between two batches a processor's caches forget, and code in a loop would look twice as cheap as it is. Medians, in
microseconds of processor time an outcome.
"""

import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.outcome_values import packed, policy, samples
from gateway.control import frames
from gateway.control.access_log import AccessLog, BatchWriter
from gateway.control.archive import Archive
from gateway.control.joining import Joining
from gateway.control.latency import Latency
from gateway.control.metrics import Metrics
from gateway.control.recorder import GATHER_S
from gateway.control.rehearsal.scenario import Quiet
from gateway.control.rollouts import Engine
from gateway.control.scoring import Scoring
from gateway.core.batch import Kinds
from gateway.core.evidence import Budget
from gateway.dataplane.link import FLUSH_S
from gateway.model.messages import Outcomes, Start, Starts
from gateway.model.table import Table
from gateway.policy.compile import compile_table
from gateway.policy.load import load

RATE = 1_000
BATCHES = 36
WARM = 4


class Stopwatch:
    """Processor time of this thread by part."""

    def __init__(self) -> None:
        self.spent: dict[str, list[float]] = {}

    def time(self, part: str, count: int, work: Callable[..., Any], *arguments: Any) -> Any:
        """Do it, and note what it cost an outcome."""
        began = time.thread_time_ns()
        result = work(*arguments)
        self.spent.setdefault(part, []).append((time.thread_time_ns() - began) / 1e3 / count)
        return result


def engine(table: Table) -> Engine:
    """A rollout engine that has taken up nothing, under the benchmark's policy."""
    made = Engine(Quiet())
    made.apply(table, Budget(), {}, time.time())  # noqa: TID251 - a program of its own
    made.restore([], None, time.time())  # noqa: TID251 - a program of its own
    return made


def measure(batches: int = BATCHES, warm: int = WARM) -> None:
    """Print a line a part, of so many batches after the first ``warm``."""
    with tempfile.TemporaryDirectory(prefix="quantgate-parts-") as name:
        folder = Path(name)
        (folder / "policy.yaml").write_text(policy(rollout=True))
        table = compile_table(load(folder / "policy.yaml").document, 1, {}, lambda _: "")
        watch = _measured(folder, table, warm + batches)
    for part, spent in watch.spent.items():
        print(f"{statistics.median(spent[warm:]):6.2f} {part}")


def _measured(folder: Path, table: Table, batches: int) -> Stopwatch:
    watch, rng = Stopwatch(), random.Random(1)
    metrics, kinds, latency = Metrics(), Kinds(), Latency(time.monotonic)
    metrics.take_table(table)
    log = AccessLog(BatchWriter(folder / "access.jsonl"))
    archive = Archive(folder, time.monotonic, time.time)  # noqa: TID251 - a program of its own
    joining, scoring, rollouts = Joining(archive.put), Scoring(0), engine(table)
    archive.start()
    scoring.subscribe("archive", archive.take_scored, archive.take_batch)
    messages, size = 1 + int(GATHER_S / FLUSH_S), round(RATE * FLUSH_S)
    for number in range(batches):
        now = time.time()  # noqa: TID251 - a program of its own
        first, count = number * messages * size, messages * size
        made = [samples(size, now, rng, first + part * size, rollout=True) for part in range(messages)]
        sent = [Outcomes(0, 0, batch) for part in made for batch in packed(part)]
        received = [frames.encode(message)[frames.HEAD_BYTES :] for message in sent]
        time.sleep(messages * FLUSH_S)
        decoded = watch.time("frame", count, list, map(frames.decode_to_control, received))
        outcomes = [outcome for part in made for outcome in part]
        batch = watch.time("read, by column", count, kinds.batch, [message.batch for message in decoded])
        watch.time("metrics", count, metrics.take_batch, batch)
        watch.time("access log", count, log.take_batch, batch)
        watch.time("latency sketches", count, latency.take_batch, batch)
        watch.time("memory for feedback", count, joining.take_batch, batch)
        watch.time("record, queued", count, scoring.take_batch, batch)
        starts = Starts(0, [Start(int(one.at), one.kind.bucket, one.kind.pool, 1) for one in outcomes])
        watch.time("rollout, announced", count, rollouts.take_starts, starts)
        outcomes = watch.time("rollout, as objects", count, batch.outcomes)
        watch.time("rollout, finished", count, rollouts.take_outcomes, outcomes, now)
        watch.time("rollout, unchecked", count, rollouts.take_unchecked, outcomes)
        watch.time("rollout, turn", count, rollouts.turn, now)
    archive.stop(10.0)
    return watch
