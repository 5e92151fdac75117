"""The comparison: what agrees, and the report of what was checked.

Owns the tolerance (numbers to relative 1e-6 or absolute 1e-200, decisions exactly). A section, entry or field that is
not understood counts as a failure: skipping it would report a pass that was never checked. Called by the sections'
runners.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import inf
from typing import Any

import msgspec

RELATIVE = 1e-6
ABSOLUTE = 1e-200
"""Below this a double loses digits for good; both sides then mean 'nothing'."""

Entry = Mapping[str, Any]


class Mismatch(msgspec.Struct, frozen=True):
    """One difference, with its path in the file."""

    path: str
    expected: Any
    measured: Any


class VectorReport(msgspec.Struct):
    """What was checked and how it went."""

    numbers: int = 0
    exacts: int = 0
    largest: float = 0.0
    largest_path: str = ""
    mismatches: list[Mismatch] = []
    unsupported: list[str] = []

    @property
    def passed(self) -> bool:
        """Whether everything in the file was understood and agreed (an empty file proves nothing)."""
        return not self.mismatches and not self.unsupported and self.numbers + self.exacts > 0

    def number(self, path: str, expected: Any, measured: float) -> None:
        """Compare one number."""
        if not isinstance(expected, int | float):
            self.mismatches.append(Mismatch(path, expected, measured))
            return
        self.numbers += 1
        gap = abs(measured - expected)
        if gap <= ABSOLUTE:
            return
        relative = gap / abs(expected) if expected else inf
        if relative > self.largest:
            self.largest, self.largest_path = relative, path
        if not relative <= RELATIVE:
            self.mismatches.append(Mismatch(path, expected, measured))

    def numbers_of(self, path: str, expected: Sequence[Any], measured: Sequence[float]) -> None:
        """Compare a list of numbers."""
        if len(expected) != len(measured):
            self.mismatches.append(Mismatch(f"{path} (length)", len(expected), len(measured)))
        for index, (one, other) in enumerate(zip(expected, measured, strict=False)):
            self.number(f"{path}[{index}]", one, other)

    def exact(self, path: str, expected: Any, measured: Any) -> None:
        """Compare a decision."""
        self.exacts += 1
        if expected != measured:
            self.mismatches.append(Mismatch(path, expected, measured))

    def fields(self, path: str, entry: Entry, known: str) -> None:
        """Report fields that this runner does not read; words (names, notes) carry nothing to check."""
        for key in entry.keys() - set(known.split()):
            if not isinstance(entry[key], str):
                self.unsupported.append(f"{path}.{key}")


def entries_of(name: str, section: Any) -> Iterable[tuple[str, Any]]:
    """Entries of a section with their paths; a section may be a single entry."""
    if isinstance(section, list):
        return [(f"{name}[{index}]", entry) for index, entry in enumerate(section)]
    return [(name, section)]
