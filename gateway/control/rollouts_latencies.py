"""Whether an answer was slow, for each guard on latencies: by its limit, or by what the baseline has shown before.

Owns the baseline's quantiles of one bucket. A block is judged by the quantile of the blocks before it, so that all its
requests are judged alike. Called by ``rollouts_feeds``, and by ``rollouts_pairs`` for mirrored legs.
"""

from collections.abc import Collection, Iterable, Mapping

from gateway.control import guards
from gateway.control.guards import Shape, Wanted
from gateway.core.evidence.latency import ControlQuantile, QuantileState, is_slow, is_slow_for_arm
from gateway.core.evidence.timeline import block_number


class Latencies:
    """The quantiles of the guards behind ``wanted``."""

    def __init__(self, wanted: Iterable[Wanted]) -> None:
        self._quantiles: dict[str, ControlQuantile] = {}
        self._block_s: dict[str, float] = {}
        self._observers: dict[str, str] = {}  # one series a guard, or each latency would count as several
        for one in wanted:
            if one.guard.name not in self._quantiles:
                self._block_s[one.guard.name] = one.guard.block_s
                self._quantiles[one.guard.name] = ControlQuantile(one.guard.quantile or 0.99)
                self._observers[one.name] = one.guard.name

    def value(
        self, one: Wanted, second: int, latency: float | None, *, candidate: bool, timed_out: bool
    ) -> float | None:
        """1 = slow, 0 = not, None = nobody knows: not measured, or not yet known what the baseline does."""
        guard, quantiles = one.guard, self._quantiles[one.guard.name]
        block = block_number(second, guard.block_s)
        known = quantiles.threshold(block)
        if latency is not None and not candidate and one.name in self._observers:
            quantiles.observe(block, latency)
        if latency is None and not timed_out:
            return None
        if one.shape is Shape.SHARE:
            ratio = guards.ratio_of(guard)
            if known is None or ratio is None:
                return None
            slow = is_slow_for_arm(latency, candidate=candidate, control_quantile=known, tolerated_ratio=ratio)
            return 1.0 if slow else 0.0
        limit = guard.limit or 0.0
        if guard.or_ratio is not None and known is not None:
            limit = max(limit, guard.or_ratio * known)
        return 1.0 if is_slow(latency, limit) else 0.0

    def shift(self, was_s: float, now_s: float) -> None:
        """The clock was set from one moment to another."""
        for name, quantile in self._quantiles.items():
            block_s = self._block_s[name]
            quantile.shift(block_number(now_s, block_s) - block_number(was_s, block_s))

    def state(self) -> dict[str, QuantileState]:
        """What must survive a restart, by the series that is counted from."""
        return {name: self._quantiles[guard].state() for name, guard in self._observers.items()}

    def restore(self, same: Collection[str], stored: Mapping[str, QuantileState]) -> None:
        """Go on from what was stored of the series that ask the ``same``, by name."""
        for name, guard in self._observers.items():
            if name in same and name in stored:
                self._quantiles[guard].restore(stored[name])
