"""Words that most texts do not have: an automaton says so in a fiftieth of the time that ``re`` takes for it.

The checks read every sampled answer and its request, thousands of characters for a handful of words that are seldom
there. Only where the automaton finds something does the exact pattern decide.
"""

import re
from collections.abc import Iterator

import re2


class Seldom:
    """A pattern whose case does not matter, of plain words, ``|``, groups and ``\\b`` beside Latin letters.

    For those RE2 finds at least what ``re`` does: its ``\\b`` knows fewer letters, so it holds in more places. It knows
    nothing of half surrogate pairs, so texts with them go to ``re`` as they are.
    """

    __slots__ = ("_exact", "_there")

    def __init__(self, pattern: str) -> None:
        self._exact = re.compile(pattern, re.IGNORECASE)
        options = re2.Options()
        options.case_sensitive = False
        self._there = re2.compile(pattern, options).search

    def possible(self, text: str) -> bool:
        """False: the pattern is nowhere in the text."""
        try:
            return self._there(text) is not None
        except UnicodeEncodeError:
            return True

    def found_in(self, text: str) -> bool:
        """Whether the pattern is somewhere in the text."""
        return self.possible(text) and self._exact.search(text) is not None

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        """As ``re`` finds them."""
        return self._exact.finditer(text) if self.possible(text) else iter(())
