"""A text as it reads once its JSON escapes are taken for what they mean, and where each part of it came from.

Called by ``core.redaction``.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable
from typing import Final

Span = tuple[int, int]
"""Where something begins, and where it has ended."""

_ESCAPE: Final = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|[\"\\/bfnrt])"
)
_SHORT: Final = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t"}


class View:
    """A text, and the one that it was read from."""

    def __init__(
        self, text: bytes, parent: "View | None" = None, pieces: tuple[list[int], list[int]] = ([], [])
    ) -> None:
        self.text = text
        self._parent = parent
        # Every piece: where it begins here, and where in the parent's text; pieces alternate between what was copied
        # and what an escape stood for.
        self._here, self._there = pieces

    def unescaped(self) -> "View | None":
        """One level further; None if there is no escape."""
        here: list[int] = []
        there: list[int] = []
        parts: list[bytes] = []
        length = done = 0
        for match in _ESCAPE.finditer(self.text):
            for piece, begins in ((self.text[done : match.start()], done), (_meaning(match.group()), match.start())):
                here.append(length)
                there.append(begins)
                parts.append(piece)
                length += len(piece)
            done = match.end()
        if not parts:
            return None
        here.append(length)
        there.append(done)
        parts.append(self.text[done:])
        return View(b"".join(parts), self, (here, there))

    def origin(self, start: int, end: int) -> Span:
        """Where in the first text a part of this one came from; an escape is never divided."""
        if self._parent is None:
            return start, end
        return self._parent.origin(self._before(start), self._after(end))

    def _before(self, at: int) -> int:
        piece = bisect_right(self._here, at) - 1
        escape = piece % 2 == 1
        return self._there[piece] + (0 if escape else at - self._here[piece])

    def _after(self, at: int) -> int:
        piece = bisect_right(self._here, at - 1) - 1
        escape = piece % 2 == 1
        return self._there[piece + 1] if escape else self._there[piece] + at - self._here[piece]


def merged(spans: Iterable[Span]) -> list[Span]:
    """In order, those that touch as one."""
    found: list[Span] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((start, end))
    return found


def _meaning(escape: bytes) -> bytes:
    if escape[1:2] != b"u":
        return _SHORT.get(escape[1:], escape[1:])
    units = [int(part, 16) for part in escape[2:].split(b"\\u")]
    if len(units) == 2:
        return chr(0x10000 + ((units[0] - 0xD800) << 10) + units[1] - 0xDC00).encode()
    return chr(units[0]).encode("utf-8", "surrogatepass")
