"""Where time goes, per bucket and pool, as sketches of this process: for the admin API and whoever merges replicas.

Owns one set of sketches per (bucket, pool) and quarter of an hour, for the last hour and since the start. Bounded: over
``CELLS_MOST`` cells of a quarter further ones count as ``other``. Prometheus has its own histograms; these give
quantiles to 1 % without choosing bounds before. Called by the recorder with every outcome, a few microseconds each.
"""

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from gateway.core.sketch import Sketch
from gateway.model.enums import Result
from gateway.model.messages import Outcomes
from gateway.model.outcome import Outcome

BLOCK_S = 900.0
BLOCKS = 4  # complete ones that are kept beside the one that fills
CELLS_MOST = 500  # with five sketches of some 60 bins each: 15 MB a block when all are in use
OTHER = "other"
NAMES = ("queue", "ttft", "tpot", "gap", "total")
QUANTILES = (("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99))

_OK = Result.OK.value

Key = tuple[str, str]


class Cell:
    """One pool in one bucket."""

    __slots__ = ("cached_tokens", "gap", "hits", "prompt_tokens", "queue", "told", "total", "tpot", "ttft")

    def __init__(self) -> None:
        self.queue = Sketch()
        self.ttft = Sketch()
        self.tpot = Sketch()
        self.gap = Sketch()
        self.total = Sketch()
        self.told = self.hits = self.prompt_tokens = self.cached_tokens = 0

    def add(self, outcome: Outcome) -> None:
        """Count a request that ended at this pool. Only whole answers measure the pool."""
        if outcome.queue_s >= 0.0:
            self.queue.add(outcome.queue_s)
        if outcome.prompt_tokens > 0 and outcome.cached_tokens >= 0:
            self.told += 1
            self.hits += outcome.cached_tokens > 0
            self.prompt_tokens += outcome.prompt_tokens
            self.cached_tokens += outcome.cached_tokens
        if outcome.result != _OK:
            return
        self.total.add(outcome.total_s)
        if outcome.stream:
            if outcome.ttft_s >= 0.0:
                self.ttft.add(outcome.ttft_s)
            if outcome.longest_gap_s >= 0.0:
                self.gap.add(outcome.longest_gap_s)
            if outcome.completion_tokens > 1 and outcome.first_to_last_s >= 0.0:
                self.tpot.add(outcome.first_to_last_s / (outcome.completion_tokens - 1))

    def merge(self, other: "Cell") -> None:
        """Count what another cell counted."""
        for name in NAMES:
            getattr(self, name).merge(getattr(other, name))
        self.told += other.told
        self.hits += other.hits
        self.prompt_tokens += other.prompt_tokens
        self.cached_tokens += other.cached_tokens


class Latency:
    """Sketches of the last hour and since the start. ``monotonic`` is a clock in seconds."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._since_start: dict[Key, Cell] = {}
        self._current: dict[Key, Cell] = {}
        self._done: deque[tuple[float, dict[Key, Cell]]] = deque(maxlen=BLOCKS)
        self._began_at = monotonic()

    def take_batch(self, message: Outcomes) -> None:
        """Finished requests from the recorder."""
        self._turn()
        current = self._current
        for outcome in message.batch:
            if outcome.pool:
                self._cell(current, (outcome.bucket, outcome.pool)).add(outcome)

    def cells(self, within_s: float | None = None) -> dict[Key, Cell]:
        """Sketches since the start, or of the blocks that reach into the last ``within_s`` seconds."""
        self._turn()
        now = self._monotonic()
        blocks: list[dict[Key, Cell]] = [self._current]
        if within_s is None:
            blocks.append(self._since_start)
        else:
            blocks += [cells for ended_at, cells in self._done if now - ended_at < within_s]
        merged: dict[Key, Cell] = {}
        for block in blocks:
            for key, cell in block.items():
                merged.setdefault(key, Cell()).merge(cell)
        return merged

    def _turn(self) -> None:
        """Begin a new block when the current one is full; what is complete also counts since the start."""
        now = self._monotonic()
        if now - self._began_at < BLOCK_S:
            return
        for key, cell in self._current.items():
            self._cell(self._since_start, key).merge(cell)
        self._done.append((now, self._current))
        self._current = {}
        self._began_at = now

    @staticmethod
    def _cell(cells: dict[Key, Cell], key: Key) -> Cell:
        cell = cells.get(key)
        if cell is None:
            if len(cells) >= CELLS_MOST:
                key = (OTHER, OTHER)
            cell = cells.setdefault(key, Cell())
        return cell


def as_values(cells: Iterable[tuple[Key, Cell]], *, with_sketches: bool = False) -> list[dict[str, Any]]:
    """One object per bucket and pool, for JSON. Durations in seconds; a number that nobody knows is null."""
    return [_values(bucket, pool, cell, with_sketches) for (bucket, pool), cell in sorted(cells, key=lambda i: i[0])]


def _values(bucket: str, pool: str, cell: Cell, with_sketches: bool) -> dict[str, Any]:
    found: dict[str, Any] = {"bucket": bucket, "pool": pool}
    for name in NAMES:
        sketch: Sketch = getattr(cell, name)
        found[name] = {
            "count": sketch.count,
            "mean": sketch.mean,
            **{short: sketch.quantile(at) for short, at in QUANTILES},
            "max": sketch.most,
        }
        if with_sketches:
            found[name]["sketch"] = sketch.encode().hex()
    found["prefix_cache"] = {
        "requests": cell.told,
        "requests_with_hit": cell.hits,
        "prompt_tokens": cell.prompt_tokens,
        "cached_tokens": cell.cached_tokens,
        "cached_share": cell.cached_tokens / cell.prompt_tokens if cell.prompt_tokens else None,
    }
    return found
