"""Latency as an exceedance: a quantile limit is a limit on how often a threshold is passed.

Owns the exact equivalence "the P-quantile is at most L if and only if P(X > L) <= 1 - P", the scaled thresholds of
the ratio guard, and the control's quantile tracked over EARLIER blocks only (a threshold that saw the block it judges
would not be fair). Called by control when it turns latencies into outcomes; must not know meters.
"""

from collections import deque
from math import ceil, log

import msgspec

_EQUAL_WITHIN = 1e-12
"""Relative slack of a scaled threshold: 1.15 times 1000 ms is 1150 ms although its double is not."""

_BIN_RATIO = 1.01
"""Latency bins grow by 1 %: the tracked quantile is at most that much too high, and 2,800 bins span 1 ns to 20 min."""
_LOG_BIN_RATIO = log(_BIN_RATIO)
_NEVER = -(2**62)
_STORED_GROUPS = 8
"""Into how many groups of blocks a window is put together when it is stored: one by one they are a hundred times it."""


def exceedance_limit(quantile: float) -> float:
    """Limit of the rate guard for a quantile limit: P99 gives 0.01."""
    if not 0.0 < quantile < 1.0:
        raise ValueError(f"a quantile must lie strictly between 0 and 1, got {quantile!r}")
    # Decimal quantiles should give decimal limits: 1 - 0.99 is 0.010000000000000009.
    return round(1.0 - quantile, 12)


def is_slow(latency: float | None, limit: float) -> bool:
    """Whether a request exceeds the limit, in the same unit; None = nothing came within it. Equal is not slow."""
    return latency is None or latency > limit * (1.0 + _EQUAL_WITHIN)


def is_slow_for_arm(latency: float | None, *, candidate: bool, control_quantile: float, tolerated_ratio: float) -> bool:
    """Event of the ratio guard: the control exceeds its own quantile, the candidate ``tolerated_ratio`` times that."""
    return is_slow(latency, tolerated_ratio * control_quantile if candidate else control_quantile)


def _rank(quantile: float, number: int) -> int:
    # The slack keeps 0.95 * 20 = 19.000000000000004 from asking for rank 20.
    return max(1, ceil(quantile * number - 1e-9))


_Bins = tuple[tuple[int, int], ...]


class QuantileState(msgspec.Struct, frozen=True, array_like=True):
    """Counts by bin of the latencies of each block, as they are stored, and the thresholds that were given.

    ``recent`` puts older blocks together, under the newest of them.
    """

    recent: tuple[tuple[int, _Bins], ...] = ()
    newest: int = _NEVER
    fixed: tuple[tuple[int, float | None], ...] = ()


class ControlQuantile:
    """The control's quantile over its last ``window_blocks`` blocks, as the threshold for each next block.

    None until ``least`` latencies are known. A block's threshold is fixed the first time it is asked for, so all its
    requests are judged alike whenever they resolve.
    """

    __slots__ = ("_fixed", "_newest", "_put_together", "_recent", "least", "quantile", "window_blocks")

    def __init__(self, quantile: float, window_blocks: int = 360, least: int | None = None) -> None:
        self.quantile = quantile
        self.window_blocks = window_blocks
        # Ten expected exceedances: below that the estimated quantile is mostly noise.
        self.least = least if least is not None else ceil(10.0 / exceedance_limit(quantile))
        self._recent: dict[int, dict[int, int]] = {}
        self._newest = _NEVER
        self._put_together: dict[int, tuple[int, int, _Bins]] = {}  # groups with their first and last block, as stored
        self._fixed: deque[tuple[int, float | None]] = deque(maxlen=64)

    def observe(self, block: int, latency: float) -> None:
        """Count one latency (> 0) of the control, dispatched in ``block``."""
        bin_number = ceil(log(max(latency, 1e-9)) / _LOG_BIN_RATIO)
        self._newest = max(self._newest, block)
        if block <= self._newest - self.window_blocks:
            return
        bins = self._recent.setdefault(block, {})
        bins[bin_number] = bins.get(bin_number, 0) + 1
        if self._put_together:
            self._put_together.pop(self._group_of(block), None)

    def threshold(self, block: int) -> float | None:
        """Upper end of the bin that holds the quantile of blocks before ``block``; None if too few are known."""
        for number, fixed in reversed(self._fixed):  # the block that is asked for is among the newest
            if number == block:
                return fixed
        value = self._quantile_before(block)
        self._fixed.append((block, value))
        return value

    def shift(self, blocks: int) -> None:
        """The clock was set by that many blocks."""
        self._recent = {number + blocks: bins for number, bins in self._recent.items()}
        self._put_together = {}
        self._newest += blocks if self._newest != _NEVER else 0
        fixed = [(number + blocks, threshold) for number, threshold in self._fixed]
        self._fixed = deque(fixed, maxlen=self._fixed.maxlen)

    def state(self) -> QuantileState:
        """What must survive a restart. A group is forgotten as a whole, and counts for no block before its newest."""
        groups: dict[int, list[int]] = {}
        for number in sorted(self._recent):
            if self._newest - self.window_blocks < number < self._newest:
                groups.setdefault(self._group_of(number), []).append(number)
        self._put_together = {group: self._merged(group, numbers) for group, numbers in groups.items()}
        recent = [(last, bins) for _, last, bins in self._put_together.values()]
        if self._newest in self._recent:  # it is still being counted, and what it holds is for none before it
            recent.append((self._newest, tuple(sorted(self._recent[self._newest].items()))))
        return QuantileState(tuple(recent), self._newest, tuple(self._fixed))

    def _group_of(self, block: int) -> int:
        return block // max(1, self.window_blocks // _STORED_GROUPS)

    def _merged(self, group: int, numbers: list[int]) -> tuple[int, int, _Bins]:
        known = self._put_together.get(group)
        if known is not None and known[:2] == (numbers[0], numbers[-1]):
            return known
        totals: dict[int, int] = {}
        for number in numbers:
            for bin_number, count in self._recent[number].items():
                totals[bin_number] = totals.get(bin_number, 0) + count
        return numbers[0], numbers[-1], tuple(sorted(totals.items()))

    def restore(self, state: QuantileState) -> None:
        """Go on from what was stored."""
        self._recent = {number: dict(bins) for number, bins in state.recent}
        self._put_together = {}
        self._newest = state.newest
        self._fixed = deque(state.fixed, maxlen=self._fixed.maxlen)

    def _quantile_before(self, block: int) -> float | None:
        self._recent = {number: bins for number, bins in self._recent.items() if number >= block - self.window_blocks}
        totals: dict[int, int] = {}
        for number, bins in self._recent.items():
            if number < block:
                for bin_number, count in bins.items():
                    totals[bin_number] = totals.get(bin_number, 0) + count
        total = sum(totals.values())
        if total < self.least:
            return None
        # The bins' counts add up to the total, so the rank is reached within them.
        rank = _rank(self.quantile, total)
        bins_in_order = iter(sorted(totals))
        bin_number = next(bins_in_order)
        while rank > totals[bin_number]:
            rank -= totals[bin_number]
            bin_number = next(bins_in_order)
        return float(_BIN_RATIO**bin_number)
