"""Sets of patterns that are searched in one pass, and wildcard names. RE2 only: linear time whatever the text. Pure.

Called by ``classifier``.
"""

import re2

from gateway.model.table import TextSet
from gateway.policy.prefilter import needed
from gateway.policy.schema.pattern import quiet_options

KNOWN_MOST = 1_024


class PatternSet:
    """RE2 patterns compiled into one automaton."""

    def __init__(self, patterns: list[str]) -> None:
        self._set = re2.Set.SearchSet(quiet_options())
        for pattern in patterns:
            self._set.Add(pattern)
        self._set.Compile()
        self._needed = tuple(needed(patterns))

    def search(self, text: str) -> list[int]:
        """Indexes of the patterns that match anywhere in ``text``, ascending."""
        if self._needed and not self._possible(text):
            return []
        found = self._set.Match(text.encode())
        return sorted(found) if found else []

    def _possible(self, text: str) -> bool:
        for character in self._needed:  # noqa: SIM110 - compiled, a generator costs more than the loop
            if character in text:
                return True
        return False


class Remembering:
    """A set for texts that come again and again, as an application's system prompt does with every request.

    Keeps hash and length of a text, never the text. The hash is keyed anew in each process, so nobody can make two
    texts agree. Whoever reads while another thread forgets searches once more.
    """

    def __init__(self, patterns: TextSet) -> None:
        self._patterns = patterns
        self._known: dict[tuple[int, int], list[int]] = {}

    def search(self, text: str) -> list[int]:
        """As ``PatternSet.search``; the result is shared and must not be changed."""
        key = (hash(text), len(text))
        found = self._known.get(key)
        if found is None:
            found = self._patterns.search(text)
            if len(self._known) >= KNOWN_MOST:
                self._known = {}
            self._known[key] = found
        return found


def pattern_set(patterns: list[str], *, again: bool = False) -> TextSet | None:
    """``None`` when there is nothing to search for. ``again``: the texts are mostly the same few."""
    if not patterns:
        return None
    found = PatternSet(patterns)
    return Remembering(found) if again else found


def wildcards(patterns: list[str]) -> str:
    """One RE2 pattern for names that match any of these wildcard patterns; case does not count."""
    return f"(?is)(?:{'|'.join(_wildcard(pattern) for pattern in patterns)})"


def _wildcard(pattern: str) -> str:
    return "".join({"*": ".*", "?": "."}.get(character) or str(re2.escape(character)) for character in pattern)
