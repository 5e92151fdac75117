"""A policy as plain data in which every value still knows its file, line and column.

Owns how a place is found for a path and how a path is written. Filled by ``reading``; nothing here knows YAML, so
that workers, which compile a checked policy, do not load a reader. Called by all that find faults.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from gateway.errors import PolicyError

Path = tuple[str | int, ...]


class Place(msgspec.Struct, frozen=True):
    """Where something stands, 1-based."""

    file: str
    line: int
    column: int

    def finding(self, message: str, mend: str = "", severity: str = "error") -> PolicyError:
        """A finding at this place."""
        return PolicyError(self.file, self.line, self.column, message, mend, severity)


class Tree(msgspec.Struct):
    """Data and places by path.

    A scalar's place is itself, a collection's is its key; ``keys`` are the places of keys.
    """

    data: dict[str, Any]
    places: dict[Path, Place]
    keys: dict[Path, Place]

    def place(self, path: Path) -> Place:
        """The place of ``path``, or of the nearest thing around it."""
        for length in range(len(path), -1, -1):
            if (found := self.places.get(path[:length])) is not None:
                return found
        return Place("policy", 1, 1)


def dotted(path: Path) -> str:
    """A path as people write it: ``routes[2].when.model``."""
    return "".join(_steps(path)).lstrip(".") or "policy"


def _steps(path: Path) -> Iterator[str]:
    for step in path:
        yield f"[{step}]" if isinstance(step, int) else f".{step}"
