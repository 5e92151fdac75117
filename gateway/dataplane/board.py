"""Counters that all workers of a host share, in one memory-mapped file: limits hold over workers, without a round trip.

A row is a tenant or an endpoint (control assigns rows, stable over reloads). In a row each worker has its own cells,
which only it writes; everybody reads all of them. So a worker keeps its own numbers beside the file too: it writes each
change through, and reads only its neighbours' cells. A reader may see a neighbour's number a few microseconds old,
which is the precision of the limits: at most one request per worker too many. A worker clears its cells when it starts.
"""

from pathlib import Path
from typing import Final

from gateway.dataplane.mapped import OnError, map_shared

ROWS: Final = 4096
CELLS: Final = 8  # int64 each
INFLIGHT: Final = 0
MINUTE: Final = 1
REQUESTS: Final = 2
REQUESTS_BEFORE: Final = 3
TOKENS: Final = 4
TOKENS_BEFORE: Final = 5
FORGOTTEN_S: Final = 120  # of two minutes' counts none is left


class _Own:
    """This worker's numbers of one row, and its ``cells``, in which they stand."""

    __slots__ = ("cells", "inflight", "minute", "requests", "requests_before", "tokens", "tokens_before")

    def __init__(self, cells: "memoryview[int]") -> None:
        self.cells = cells
        self.inflight = 0
        self.minute = 0
        self.requests = 0
        self.requests_before = 0
        self.tokens = 0
        self.tokens_before = 0

    def turn(self, minute: int) -> None:
        """Begin a minute; the one before it goes on to count in part."""
        last = self.minute == minute - 1
        self.requests_before = self.requests if last else 0
        self.tokens_before = self.tokens if last else 0
        self.requests = self.tokens = 0
        self.minute = minute
        cells = self.cells
        cells[REQUESTS_BEFORE] = self.requests_before
        cells[TOKENS_BEFORE] = self.tokens_before
        cells[REQUESTS] = 0
        cells[TOKENS] = 0
        cells[MINUTE] = minute


class Board:
    """One worker's view of the shared counters. ``wall_s`` arguments are seconds since the epoch.

    The file's layout depends on the number of workers, so a gateway with another number needs another ``path``.
    """

    def __init__(self, path: Path, worker: int, workers: int, on_error: OnError | None = None) -> None:
        self._map = map_shared(path, ROWS * workers * CELLS * 8, on_error)
        self._cells = memoryview(self._map).cast("q")
        self._stride = workers * CELLS
        self._worker = worker
        self._rows: list[_Own | None] = [None] * ROWS
        for row in range(ROWS):
            at = row * self._stride + worker * CELLS
            for cell in range(CELLS):
                if self._cells[at + cell]:  # pages that were never written stay unwritten
                    self._cells[at + cell] = 0

    def close(self) -> None:
        """Release the mapping."""
        for own in self._rows:
            if own is not None:
                own.cells.release()
        self._cells.release()
        self._map.close()

    def enter(self, row: int) -> None:
        """One more request in flight; rows below 0 are not counted."""
        if row >= 0:
            own = self._own(row)
            own.inflight += 1
            own.cells[INFLIGHT] = own.inflight

    def leave(self, row: int) -> None:
        """One fewer in flight."""
        if row >= 0:
            own = self._own(row)
            own.inflight -= 1
            own.cells[INFLIGHT] = own.inflight

    def inflight(self, row: int) -> int:
        """In flight over all workers."""
        if row < 0:
            return 0
        if self._stride == CELLS:
            return self._own(row).inflight
        at = row * self._stride
        return sum(self._cells[at : at + self._stride : CELLS])

    def charge(self, row: int, wall_s: float, requests: int, tokens: int) -> None:
        """Count requests and tokens into their minute. Tokens without a request are a correction, and may be negative.

        A correction for an earlier minute goes there, as far as that still counts. A request that comes a moment
        after another one of the next minute counts into that; a clock that was set back begins anew.
        """
        own = self._own(row)
        cells = own.cells
        minute = int(wall_s // 60.0)
        behind = minute - own.minute
        if behind < 0 and not requests:
            if behind == -1:
                own.tokens_before += tokens
                cells[TOKENS_BEFORE] = own.tokens_before
            return
        if behind > 0 or behind < -1:
            own.turn(minute)
        own.tokens += tokens
        cells[TOKENS] = own.tokens
        if requests:
            own.requests += requests
            cells[REQUESTS] = own.requests

    def used(self, row: int, wall_s: float) -> tuple[float, float]:
        """Requests and tokens in the last 60 seconds over all workers: a sliding window of two minutes' counts."""
        minute = int(wall_s // 60.0)
        share = 1.0 - wall_s % 60.0 / 60.0
        own = self._own(row)
        requests = tokens = 0.0
        behind = minute - own.minute
        if behind == 0:
            requests = own.requests + share * own.requests_before
            tokens = own.tokens + share * own.tokens_before
        elif behind == 1:
            requests = share * own.requests
            tokens = share * own.tokens
        elif behind == -1:  # a moment late, or the clock was set back a little: all of it is of the last minute
            requests = float(own.requests + own.requests_before)
            tokens = float(own.tokens + own.tokens_before)
        if self._stride != CELLS:
            more_requests, more_tokens = self._used_by_others(row, minute, share)
            requests += more_requests
            tokens += more_tokens
        return requests, tokens if tokens > 0.0 else 0.0

    def wait_s(self, row: int, wall_s: float, requests: float, tokens: float) -> int:
        """Whole seconds until at most these count as used, if nobody adds to them: 1 to 120, and 120 for what never
        will."""
        low, high = 0, FORGOTTEN_S  # what is used only falls
        while high - low > 1:
            middle = (low + high) // 2
            used = self.used(row, wall_s + middle)
            if used[0] <= requests and used[1] <= tokens:
                high = middle
            else:
                low = middle
        return high

    # inside

    def _own(self, row: int) -> _Own:
        own = self._rows[row]
        if own is None:
            at = row * self._stride + self._worker * CELLS
            own = self._rows[row] = _Own(self._cells[at : at + CELLS])
        return own

    def _used_by_others(self, row: int, minute: int, share: float) -> tuple[float, float]:
        requests = tokens = 0.0
        cells = self._cells
        first = row * self._stride
        for at in range(first, first + self._stride, CELLS):
            if at == first + self._worker * CELLS:
                continue
            behind = minute - cells[at + MINUTE]
            if behind == 0:
                requests += cells[at + REQUESTS] + share * cells[at + REQUESTS_BEFORE]
                tokens += cells[at + TOKENS] + share * cells[at + TOKENS_BEFORE]
            elif behind == 1:
                requests += share * cells[at + REQUESTS]
                tokens += share * cells[at + TOKENS]
            elif behind == -1:
                requests += cells[at + REQUESTS] + cells[at + REQUESTS_BEFORE]
                tokens += cells[at + TOKENS] + cells[at + TOKENS_BEFORE]
        return requests, tokens
