"""Where time goes, per bucket and pool, as sketches of this process: for the admin API and whoever merges replicas.

Owns one set of sketches per (bucket, pool) and quarter of an hour, for the last hour and since the start. Bounded: over
``CELLS_MOST`` cells of a quarter further ones count as ``other``. Prometheus has its own histograms; these give
quantiles to 1 % without choosing bounds before. Called by the recorder with every outcome, about a microsecond each.
"""

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Generic, NamedTuple, TypeVar

from gateway.core.batch import Batch, ByKind
from gateway.core.sketch import Sketch
from gateway.model.enums import Result
from gateway.model.outcome import Kind

BLOCK_S = 900.0
BLOCKS = 4  # complete ones that are kept beside the one that fills
CELLS_MOST = 500  # with five sketches of some 60 bins each: 15 MB a block when all are in use
OTHER = "other"
SETTLE_EVERY = 8192  # outcomes; a few hundred kilobytes wait at most
QUANTILES = (("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99))

_OK = Result.OK.value

Key = tuple[str, str]
T = TypeVar("T")


class Parts(NamedTuple, Generic[T]):
    """One thing for each part of a request's time."""

    queue: T
    ttft: T
    tpot: T
    gap: T
    total: T


NAMES = Parts._fields


class Cell:
    """One pool in one bucket. Durations wait in lists until ``settle`` puts them into the sketches, many at once."""

    __slots__ = ("cached_tokens", "hits", "prompt_tokens", "sketches", "told", "waiting")

    def __init__(self) -> None:
        self.sketches = Parts(*(Sketch() for _ in NAMES))
        self.waiting: Parts[list[float]] = Parts(*([] for _ in NAMES))
        self.told = self.hits = self.prompt_tokens = self.cached_tokens = 0

    def settle(self) -> None:
        """Count what waits."""
        for sketch, waiting in zip(self.sketches, self.waiting, strict=True):
            sketch.extend(waiting)
            waiting.clear()

    def merge(self, other: "Cell") -> None:
        """Count what another cell, which is settled, counted."""
        for sketch, others in zip(self.sketches, other.sketches, strict=True):
            sketch.merge(others)
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
        self._unsettled = 0
        self._by_kind = ByKind(self._cell_of)

    def take_batch(self, batch: Batch) -> None:
        """Finished requests from the recorder. Only whole answers measure the pool."""
        self._turn()
        for kind, cell, queue_s, total_s, ttft_s, gap_s, per_token_s, prompt, cached in zip(
            batch.kind,
            self._by_kind.of(batch),
            batch.queue_s,
            batch.total_s,
            batch.ttft_s,
            batch.longest_gap_s,
            batch.per_token_s,
            batch.prompt_tokens,
            batch.cached_tokens,
            strict=True,
        ):
            if cell is None:
                continue
            waiting = cell.waiting
            if queue_s >= 0.0:
                waiting.queue.append(queue_s)
            if prompt > 0 and cached >= 0:
                cell.told += 1
                cell.hits += cached > 0
                cell.prompt_tokens += prompt
                cell.cached_tokens += cached
            if kind.result != _OK:
                continue
            waiting.total.append(total_s)
            if kind.stream:
                if ttft_s >= 0.0:
                    waiting.ttft.append(ttft_s)
                if gap_s >= 0.0:
                    waiting.gap.append(gap_s)
                if per_token_s >= 0.0:
                    waiting.tpot.append(per_token_s)
        self._unsettled += len(batch.kind)
        if self._unsettled >= SETTLE_EVERY:
            self._settle()

    def cells(self, within_s: float | None = None) -> dict[Key, Cell]:
        """Sketches since the start, or of the blocks that reach into the last ``within_s`` seconds."""
        self._turn()
        self._settle()
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
        self._settle()
        for key, cell in self._current.items():
            self._cell(self._since_start, key).merge(cell)
        self._done.append((now, self._current))
        self._current = {}
        self._by_kind.clear()
        self._began_at = now

    def _settle(self) -> None:
        self._unsettled = 0
        for cell in self._current.values():
            cell.settle()

    def _cell_of(self, kind: Kind) -> Cell | None:
        return self._cell(self._current, (kind.bucket, kind.pool)) if kind.pool else None

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
    for name, sketch in zip(NAMES, cell.sketches, strict=True):
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
