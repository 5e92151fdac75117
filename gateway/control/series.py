"""Counters and histograms that cost little to move, with a hard bound on how many series each may have.

Owns the numbers as plain lists in dicts keyed by label values; turning them into text is ``control.exposition``'s.
A label set over the bound is counted under ``other``, so nothing a client chooses can grow memory or the scrape. Counts
only grow and belong to control: a worker that dies takes nothing away.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from gateway.core import columns

OTHER = "other"
NONE = "none"
SERIES_MOST = 1000

Key = tuple[str, ...]


class Family(msgspec.Struct, frozen=True):
    """One metric with its samples at one moment. Histogram rows: one count per bound, one above, then the sum."""

    kind: Literal["counter", "gauge", "histogram"]
    name: str
    help: str
    labels: tuple[str, ...]
    samples: Mapping[Key, Sequence[float]]
    bounds: tuple[float, ...] = ()


class _Bounded:
    """Rows by label values. The first label is the finest: it becomes ``other`` before the whole key does."""

    def __init__(self, name: str, help_: str, labels: tuple[str, ...], width: int, most: int) -> None:
        self.name = name
        self.help = help_
        self.labels = labels
        self.rows: dict[Key, list[float]] = {}
        self._width = width
        self._most = most
        self._overflow: Key = (OTHER,) * len(labels)

    def row(self, key: Key) -> list[float]:
        """The live row of ``key``; callers may keep it."""
        row = self.rows.get(key)
        if row is not None:
            return row
        admitted = self._admit(key)
        return self.rows.setdefault(admitted, [0.0] * self._width)

    def _admit(self, key: Key) -> Key:
        room = self._most - len(self.rows)
        if room > self._most // 10:
            return key
        coarse = (OTHER, *key[1:])
        if coarse in self.rows or room > 1:
            return coarse
        return self._overflow

    def _samples(self) -> dict[Key, Sequence[float]]:
        return {key: tuple(row) for key, row in self.rows.items()}


class Counter(_Bounded):
    """A family of counters."""

    def __init__(self, name: str, help_: str, labels: tuple[str, ...] = (), most: int = SERIES_MOST) -> None:
        super().__init__(name, help_, labels, 1, most)

    def add(self, key: Key, amount: float = 1.0) -> None:
        """Count ``amount`` more."""
        self.row(key)[0] += amount

    def family(self) -> Family:
        """A copy to expose."""
        return Family("counter", self.name, self.help, self.labels, self._samples())


class Histogram(_Bounded):
    """A family of histograms with common ascending upper bounds."""

    def __init__(
        self,
        name: str,
        help_: str,
        labels: tuple[str, ...],
        bounds: tuple[float, ...],
        most: int = SERIES_MOST,
    ) -> None:
        super().__init__(name, help_, labels, len(bounds) + 2, most)
        self.bounds = bounds

    def observe(self, row: list[float], value: float) -> None:
        """Put a value into a row of this family."""
        row[bisect_left(self.bounds, value)] += 1.0
        row[-1] += value

    def observe_each(self, rows: tuple[list[float] | None, ...], values: list[float]) -> None:
        """Put each value into the row beside it; a value below zero is unknown and counts nowhere, as does a value
        without a row."""
        columns.observe(self.bounds, rows, values)

    def family(self) -> Family:
        """A copy to expose."""
        return Family("histogram", self.name, self.help, self.labels, self._samples(), self.bounds)


class Names:
    """A growing set of names that may become label values, up to ``most``; everything else reads ``other``."""

    def __init__(self, most: int = SERIES_MOST) -> None:
        self.most = most
        self._known: set[str] = set()

    def admit(self, name: str) -> str:
        """``name`` if it is known or there is room for it."""
        if name in self._known:
            return name
        if len(self._known) < self.most:
            self._known.add(name)
            return name
        return OTHER

    def label(self, name: str) -> str:
        """``name`` if it is known; ``none`` for the empty one."""
        if name in self._known:
            return name
        return OTHER if name else NONE


def gauge(name: str, help_: str, labels: tuple[str, ...], values: Mapping[Key, float]) -> Family:
    """A gauge family read at this moment."""
    return Family("gauge", name, help_, labels, {key: (value,) for key, value in values.items()})
