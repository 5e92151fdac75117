"""A string that a regular expression accepts, for the ``pattern`` of a JSON Schema.

Owns the walk over the parsed expression. Pure. Look-around and back references are beyond it: ``text_for`` then returns
None and the caller says so by leaving the pattern unmet. ``instance`` calls it.
"""

import re
import string
from collections.abc import Iterable
from random import Random
from typing import Any

# The parser that ``re`` itself uses; it has no public name, and its tree is stable across 3.11 to 3.14.
op: Any = re._constants  # type: ignore[attr-defined]
parser: Any = re._parser  # type: ignore[attr-defined]

_ANY = string.ascii_lowercase
_CATEGORIES = {
    op.CATEGORY_DIGIT: string.digits,
    op.CATEGORY_WORD: string.ascii_lowercase + string.digits,
    op.CATEGORY_SPACE: " ",
    op.CATEGORY_NOT_DIGIT: string.ascii_lowercase,
    op.CATEGORY_NOT_WORD: "-",
    op.CATEGORY_NOT_SPACE: string.ascii_lowercase,
}
_PRINTABLE = string.ascii_letters + string.digits + string.punctuation + " "
_MOST_REPEATS = 8


class _BeyondError(Exception):
    """The expression holds something this generator does not build."""


def text_for(pattern: str, random: Random) -> str | None:
    """A text in which ``pattern`` is found (JSON Schema searches, it does not anchor), or None if it is beyond this."""
    try:
        text = _build(parser.parse(pattern), random)
        return text if re.search(pattern, text) else None
    except (_BeyondError, re.error, RecursionError, OverflowError):
        return None


def _build(tree: Iterable[Any], random: Random) -> str:
    return "".join(_node(kind, value, random) for kind, value in tree)


def _node(kind: Any, value: Any, random: Random) -> str:
    if kind is op.LITERAL:
        return chr(value)
    if kind is op.AT:
        return ""
    if kind is op.ANY:
        return random.choice(_ANY)
    if kind is op.IN:
        return _one_of(value, random)
    if kind is op.NOT_LITERAL:
        return random.choice([char for char in _ANY if ord(char) != value])
    if kind in (op.MAX_REPEAT, op.MIN_REPEAT):
        low, high, body = value
        times = random.randint(low, max(low, min(int(high), low + _MOST_REPEATS)))
        return "".join(_build(body, random) for _ in range(times))
    if kind is op.SUBPATTERN:
        return _build(value[3], random)
    if kind is op.BRANCH:
        return _build(random.choice(value[1]), random)
    raise _BeyondError(kind)


def _one_of(members: list[Any], random: Random) -> str:
    negated = bool(members) and members[0][0] is op.NEGATE
    allowed = "".join(_members(members[1:] if negated else members))
    if negated:
        allowed = "".join(char for char in _PRINTABLE if char not in allowed)
    if not allowed:
        raise _BeyondError(members)
    return random.choice(allowed)


def _members(members: list[Any]) -> Iterable[str]:
    for kind, value in members:
        if kind is op.LITERAL:
            yield chr(value)
        elif kind is op.RANGE:
            low, high = value
            yield "".join(map(chr, range(low, min(high, low + 512) + 1)))
        elif kind is op.CATEGORY:
            yield _CATEGORIES[value]
        else:
            raise _BeyondError(kind)
