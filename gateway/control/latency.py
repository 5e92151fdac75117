"""Where time goes, per bucket and pool, as sketches of this process: for the admin API and whoever merges replicas.

Owns one set of sketches per (bucket, pool) and quarter of an hour, for the last hour and since the start. Bounded: over
``CELLS_MOST`` cells of a quarter further ones count as ``other``. Prometheus has its own histograms; these give
quantiles to 1 % without choosing bounds before. Called by the recorder with every outcome.
"""

from collections import deque
from collections.abc import Callable, Iterable
from operator import add
from typing import Any, Generic, NamedTuple, TypeVar

from gateway.core.batch import Batch, ByKind, numbers
from gateway.core.columns import count_parts, gather
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

_Waiting = list[float] | None
_Places = tuple[_Waiting, _Waiting, _Waiting, _Waiting, _Waiting, list[int] | None]


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

    __slots__ = ("cache", "sketches", "waiting")

    def __init__(self) -> None:
        self.sketches = Parts(*(Sketch() for _ in NAMES))
        self.waiting: Parts[list[float]] = Parts(*([] for _ in NAMES))
        self.cache = [0, 0, 0, 0]  # requests whose cached tokens are known, those with any, prompt tokens, cached ones

    def settle(self) -> None:
        """Count what waits."""
        for sketch, waiting in zip(self.sketches, self.waiting, strict=True):
            sketch.extend(waiting)
            waiting.clear()

    def merge(self, other: "Cell") -> None:
        """Count what another cell, which is settled, counted."""
        for sketch, others in zip(self.sketches, other.sketches, strict=True):
            sketch.merge(others)
        self.cache[:] = map(add, self.cache, other.cache)


class Latency:
    """Sketches of the last hour and since the start. ``monotonic`` is a clock in seconds."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._since_start: dict[Key, Cell] = {}
        self._current: dict[Key, Cell] = {}
        self._done: deque[tuple[float, dict[Key, Cell]]] = deque(maxlen=BLOCKS)
        self._began_at = monotonic()
        self._unsettled = 0
        self._by_kind = ByKind(self._places_of)

    def take_batch(self, batch: Batch) -> None:
        """Finished requests from the recorder. Only whole answers measure the pool."""
        self._turn()
        if not batch.kind:
            return
        queue, ttft, tpot, gap, total, cache = zip(*self._by_kind.of(batch), strict=True)
        gather(queue, numbers(batch.queue_s))
        gather(ttft, numbers(batch.ttft_s))
        gather(tpot, numbers(batch.per_token_s))
        gather(gap, numbers(batch.longest_gap_s))
        gather(total, numbers(batch.total_s))
        count_parts(cache, numbers(batch.prompt_tokens), numbers(batch.cached_tokens))
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

    def _places_of(self, kind: Kind) -> _Places:
        """Where the columns of a kind's outcomes go."""
        if not kind.pool:
            return None, None, None, None, None, None
        cell = self._cell(self._current, (kind.bucket, kind.pool))
        queue, ttft, tpot, gap, total = cell.waiting
        if kind.result != _OK:
            return queue, None, None, None, None, cell.cache
        return (
            (queue, ttft, tpot, gap, total, cell.cache) if kind.stream else (queue, None, None, None, total, cell.cache)
        )

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
    told, hits, prompt_tokens, cached_tokens = cell.cache
    found["prefix_cache"] = {
        "requests": told,
        "requests_with_hit": hits,
        "prompt_tokens": prompt_tokens,
        "cached_tokens": cached_tokens,
        "cached_share": cached_tokens / prompt_tokens if prompt_tokens else None,
    }
    return found
