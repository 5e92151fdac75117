"""Counters that all workers of a host share, in one memory-mapped file: limits hold over workers, without a round trip.

A row is a tenant or an endpoint (control assigns rows, stable over reloads). In a row each worker has its own cells,
which only it writes; everybody reads all of them. A reader may see a neighbour's number a few microseconds old, which
is the precision of the limits: at most one request per worker too many. A worker clears its cells when it starts.
"""

from pathlib import Path

from gateway.dataplane.mapped import map_shared

ROWS = 4096
CELLS = 8  # int64 each
INFLIGHT, MINUTE, REQUESTS, REQUESTS_BEFORE, TOKENS, TOKENS_BEFORE = range(6)


class Board:
    """One worker's view of the shared counters. ``wall_s`` arguments are seconds since the epoch.

    The file's layout depends on the number of workers, so a gateway with another number needs another ``path``.
    """

    def __init__(self, path: Path, worker: int, workers: int) -> None:
        self._map = map_shared(path, ROWS * workers * CELLS * 8)
        self._cells = memoryview(self._map).cast("q")
        self._stride = workers * CELLS
        self._own = worker * CELLS
        for row in range(ROWS):
            at = row * self._stride + self._own
            for cell in range(CELLS):
                if self._cells[at + cell]:  # pages that were never written stay holes in the file
                    self._cells[at + cell] = 0

    def close(self) -> None:
        """Release the mapping."""
        self._cells.release()
        self._map.close()

    def enter(self, row: int) -> None:
        """One more request in flight; rows below 0 are not counted."""
        if row >= 0:
            self._cells[row * self._stride + self._own] += 1

    def leave(self, row: int) -> None:
        """One fewer in flight."""
        if row >= 0:
            self._cells[row * self._stride + self._own] -= 1

    def inflight(self, row: int) -> int:
        """In flight over all workers."""
        at = row * self._stride
        cells = self._cells
        if self._stride == CELLS:
            return cells[at]
        return sum(cells[at : at + self._stride : CELLS])

    def charge(self, row: int, wall_s: float, requests: int, tokens: int) -> None:
        """Count requests and tokens into their minute. Tokens without a request are a correction, and may be negative.

        A correction for an earlier minute goes there, as far as that still counts. A request that comes a moment
        after another one of the next minute counts into that; a clock that was set back begins anew.
        """
        at = row * self._stride + self._own
        cells = self._cells
        minute = int(wall_s // 60)
        behind = minute - cells[at + MINUTE]
        if behind < 0 and not requests:
            if behind == -1:
                cells[at + TOKENS_BEFORE] += tokens
            return
        if behind > 0 or behind < -1:
            cells[at + REQUESTS_BEFORE] = cells[at + REQUESTS] if behind == 1 else 0
            cells[at + TOKENS_BEFORE] = cells[at + TOKENS] if behind == 1 else 0
            cells[at + REQUESTS] = 0
            cells[at + TOKENS] = 0
            cells[at + MINUTE] = minute
        cells[at + REQUESTS] += requests
        cells[at + TOKENS] += tokens

    def used(self, row: int, wall_s: float) -> tuple[float, float]:
        """Requests and tokens in the last 60 seconds over all workers: a sliding window of two minutes' counts."""
        minute, second = divmod(wall_s, 60.0)
        share = 1.0 - second / 60.0
        requests = tokens = 0.0
        cells = self._cells
        first = row * self._stride
        for at in range(first, first + self._stride, CELLS):
            behind = int(minute) - cells[at + MINUTE]
            if behind == 0:
                requests += cells[at + REQUESTS] + share * cells[at + REQUESTS_BEFORE]
                tokens += cells[at + TOKENS] + share * cells[at + TOKENS_BEFORE]
            elif behind == 1:
                requests += share * cells[at + REQUESTS]
                tokens += share * cells[at + TOKENS]
        return requests, max(tokens, 0.0)
