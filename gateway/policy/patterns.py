"""Sets of patterns that are searched in one pass, and wildcard names. RE2 only: linear time whatever the text. Pure.

Called by ``compile``.
"""

import re2

from gateway.model.table import TextSet
from gateway.policy.schema.pattern import quiet_options


class PatternSet:
    """RE2 patterns compiled into one automaton."""

    def __init__(self, patterns: list[str]) -> None:
        self._set = re2.Set.SearchSet(quiet_options())
        for pattern in patterns:
            self._set.Add(pattern)
        self._set.Compile()

    def search(self, text: str) -> list[int]:
        """Indexes of the patterns that match anywhere in ``text``, ascending."""
        return sorted(self._set.Match(text) or ())


def pattern_set(patterns: list[str]) -> TextSet | None:
    """``None`` when there is nothing to search for."""
    return PatternSet(patterns) if patterns else None


def wildcards(patterns: list[str]) -> str:
    """One RE2 pattern for names that match any of these wildcard patterns; case does not count."""
    return f"(?is)(?:{'|'.join(_wildcard(pattern) for pattern in patterns)})"


def _wildcard(pattern: str) -> str:
    return "".join({"*": ".*", "?": "."}.get(character) or str(re2.escape(character)) for character in pattern)
