"""Outcomes on their way to the judge, equal ones together.

A block is a bag of values, so what is counted in it may come in any order and any portions; and of what one bucket
sends in a moment nearly everything is the same few values. Owned by ``rollouts_feeds``.
"""

from gateway.core.evidence import Judge, SeriesKey
from gateway.core.evidence.blocks import ONLY_LANE


class Booking:
    """Counts of one bucket's outcomes until ``settle`` hands them on."""

    def __init__(self, judge: Judge, bucket: str) -> None:
        self._judge = judge
        self._bucket = bucket
        self._counts: dict[tuple[str, str, float, float | None, float], int] = {}

    def count(
        self, series: str, pool: str, second: float, value: float | None, *, lane: float = ONLY_LANE, number: int = 1
    ) -> None:
        """Count outcomes of requests of a second for the series of that name and pool; None = resolved unscored."""
        at = (series, pool, second, value, lane)
        self._counts[at] = self._counts.get(at, 0) + number

    def settle(self) -> None:
        """Tell the judge."""
        counts, self._counts = self._counts, {}
        for (series, pool, second, value, lane), number in counts.items():
            key = SeriesKey(series, self._bucket, pool)
            if value is None:
                self._judge.accept_unscored(key, second, number, lane)
            else:
                self._judge.accept(key, second, value, number, lane)
