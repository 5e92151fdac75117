"""What a text must contain for a pattern to match at all, where that is plain to see. Pure.

Looking for one character costs a hundredth of what the automaton costs, and most texts of a chat hold no backtick, no
parenthesis, no brace. Only ASCII punctuation is looked for: it is the same under every flag and in every case. Whatever
is not understood here needs nothing, so its pattern is always searched for. Called by ``patterns``.
"""

import re
from collections.abc import Iterable

_PUNCTUATION = frozenset("!\"#%&',-/:;<=>@_`~")
_ESCAPED = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_FLAGS = re.compile(r"\(\?[A-Za-z-]+\)")  # what repeats after it repeats what stands before it
_ATOM = re.compile(
    r"""
      \\[pPx]\{[^}]*\}                                  # a class or character by its name
    | \\(?P<escape>.)
    | \[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\]           # a class
    | (?P<plain>[^\\\[{])
    | (?P<repeat>\{\d+(?:,\d*)?\})
    """,
    re.VERBOSE | re.DOTALL,
)


def needed(patterns: Iterable[str]) -> str:
    """One character each of which a text must have at least one for any of the RE2 patterns to match; "" = no such."""
    found = [_needed(pattern) for pattern in patterns]
    return "".join(dict.fromkeys(found)) if all(found) else ""


def _needed(pattern: str) -> str:
    """A character that every match contains; "" if none is plain to see."""
    begins = _FLAGS.match(pattern)
    at = begins.end() if begins else 0
    if "\\Q" in pattern or _FLAGS.search(pattern, at):
        return ""
    depth, needs = 0, ""
    while at < len(pattern):
        atom = _ATOM.match(pattern, at)
        if atom is None:  # a brace that repeats nothing is a character, and whatever else RE2 reads in its own way
            return ""
        at = atom.end()
        plain = atom["plain"]
        if plain == "|" and depth == 0:
            return ""
        depth += (plain == "(") - (plain == ")")
        if depth == 0 and not needs and pattern[at : at + 1] not in ("*", "?", "{"):
            needs = _literal(atom)
    return needs


def _literal(atom: re.Match[str]) -> str:
    plain, escape = atom["plain"], atom["escape"]
    if plain is not None:
        return plain if plain in _PUNCTUATION else ""
    return escape if escape is not None and escape in _ESCAPED else ""
