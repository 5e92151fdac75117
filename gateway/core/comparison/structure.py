"""JSON answers compared leaf by leaf.

Owns finding the JSON in an answer and the share of leaves that two JSON values have in common. Numbers are compared by
their digits: 1.0 equals 1, two 20-digit numbers that differ in the last digit differ (B106). Must not judge whether
the JSON is right; schemas are the quality checks' business. Called by `agree`, `calls` and `explain`.
"""

from collections.abc import Iterator
from typing import Any, Final

import msgspec
from rapidfuzz.distance import LCSseq

from gateway.core.assemble.exact_json import JsonProblemError, parse_exact, write_exact
from gateway.core.comparison.marks import split_code
from gateway.core.comparison.text import MOST_CHARS, plain, similarity

PROSE_CHARS: Final = 40
"""Strings this long on both sides are prose: they agree by degrees. Shorter ones are values: equal or not."""

_ALIGN_DEPTH: Final = 8  # lists below this level are compared by position: aligning costs one spelling per level
_ALIGN_ITEMS: Final = 2_000
_PLAIN: Final = frozenset({int, bool, type(None)})  # equal as values = equal as JSON; floats may be spelled out
_DEEP: Final = "nested deeper"


class Json(msgspec.Struct, frozen=True):
    """What a text holds as JSON. ``found`` False: it is none. ``whole``: nothing else is in the text. ``too_deep``: it
    may be JSON, but is not read (B107)."""

    found: bool
    value: Any = None
    whole: bool = False
    too_deep: bool = False


def read_json(text: str) -> Json:
    """Read the JSON of an answer: the whole text, else its first fenced block, else the object or the list of objects
    that prose surrounds (a bracket alone is more often a citation)."""
    text = text[:MOST_CHARS].strip()
    too_deep = False
    for candidate in _candidates(text):
        try:
            return Json(found=True, value=parse_exact(candidate), whole=candidate == text)
        except JsonProblemError as problem:
            too_deep = too_deep or problem.message.startswith(_DEEP)
    return Json(found=False, too_deep=too_deep)


def read_arguments(text: str) -> Json:
    """Read a tool call's arguments: the whole text or nothing. Blank text is the empty object (B31, B32)."""
    try:
        return Json(found=True, value=parse_exact(text) if text.strip() else {})
    except JsonProblemError as problem:
        return Json(found=False, too_deep=problem.message.startswith(_DEEP))


def json_similarity(left: Any, right: Any) -> float:
    """Share of leaves in common: 2·common / (leaves left + leaves right). Symmetric; 1 for equal values.

    A leaf counts at its path. List items are aligned first, so one item more or less does not shift the rest. An empty
    object or list is one leaf. Long strings count by degrees (`PROSE_CHARS`).
    """
    common, left_leaves, right_leaves = _match(left, right, 0)
    return 2 * common / (left_leaves + right_leaves)


def differences(left: Any, right: Any, most: int = 50) -> list[tuple[str, str, str]]:
    """Paths whose leaves differ, as (path, left, right) in JSON spelling; an absent side is empty. For showing."""
    found: list[tuple[str, str, str]] = []
    for path, one, two in _walk("$", left, right, 0):
        found.append((path, one, two))
        if len(found) >= most:
            break
    return found


def _candidates(text: str) -> Iterator[str]:
    yield text
    yield from split_code(text)[0][:1]
    start, end = text.find("{"), text.rfind("}") + 1
    if 0 <= start < end:
        opening, closing = text[:start].rstrip(), text[end:].lstrip()
        if opening.endswith("[") and closing.startswith("]"):
            start, end = len(opening) - 1, len(text) - len(closing) + 1
        if (start, end) != (0, len(text)):
            yield text[start:end]


def _match(left: Any, right: Any, depth: int) -> tuple[float, int, int]:
    """Leaves in common, leaves left, leaves right. Recursion is bounded by the parser's nesting limit."""
    if isinstance(left, dict) and isinstance(right, dict) and (left or right):
        return _match_objects(left, right, depth)
    if isinstance(left, list) and isinstance(right, list) and (left or right):
        return _match_lists(left, right, depth)
    if isinstance(left, dict | list) or isinstance(right, dict | list):
        same = type(left) is type(right) and not left and not right
        return float(same), _leaves(left), _leaves(right)
    return _leaf_similarity(left, right), 1, 1


def _match_objects(left: dict[str, Any], right: dict[str, Any], depth: int) -> tuple[float, int, int]:
    common, left_leaves, right_leaves = 0.0, 0, 0
    for key, value in left.items():
        if key in right:
            inner, one, two = _match(value, right[key], depth + 1)
            common, left_leaves, right_leaves = common + inner, left_leaves + one, right_leaves + two
        else:
            left_leaves += _leaves(value)
    right_leaves += sum(_leaves(value) for key, value in right.items() if key not in left)
    return common, left_leaves, right_leaves


def _match_lists(left: list[Any], right: list[Any], depth: int) -> tuple[float, int, int]:
    common, left_leaves, right_leaves = 0.0, 0, 0
    for one, two in _pairs(left, right, depth):
        if one is _NOTHING:
            right_leaves += _leaves(two)
        elif two is _NOTHING:
            left_leaves += _leaves(one)
        else:
            inner, lefts, rights = _match(one, two, depth + 1)
            common, left_leaves, right_leaves = common + inner, left_leaves + lefts, right_leaves + rights
    return common, left_leaves, right_leaves


_NOTHING: Final = object()


def _pairs(left: list[Any], right: list[Any], depth: int) -> Iterator[tuple[Any, Any]]:
    """Pair the items of two lists: equal items in order first, what lies between them by position."""
    if depth > _ALIGN_DEPTH or max(len(left), len(right)) > _ALIGN_ITEMS:
        yield from _zipped(left, right)
        return
    left_keys = [write_exact(item, sort=True) for item in left]
    right_keys = [write_exact(item, sort=True) for item in right]
    if left_keys > right_keys:  # several alignments can be longest; one order of the arguments makes it one choice
        yield from ((one, two) for two, one in _aligned(right, left, right_keys, left_keys))
    else:
        yield from _aligned(left, right, left_keys, right_keys)


def _aligned(left: list[Any], right: list[Any], left_keys: list[str], right_keys: list[str]) -> Iterator[Any]:
    gone: list[Any] = []
    come: list[Any] = []
    for code in LCSseq.opcodes(left_keys, right_keys):
        lefts, rights = left[code.src_start : code.src_end], right[code.dest_start : code.dest_end]
        if code.tag == "equal":
            yield from _zipped(gone, come)
            gone, come = [], []
            yield from zip(lefts, rights, strict=True)
        else:
            gone, come = gone + lefts, come + rights
    yield from _zipped(gone, come)


def _zipped(left: list[Any], right: list[Any]) -> Iterator[tuple[Any, Any]]:
    shorter = min(len(left), len(right))
    yield from zip(left[:shorter], right[:shorter], strict=True)
    yield from ((item, _NOTHING) for item in left[shorter:])
    yield from ((_NOTHING, item) for item in right[shorter:])


def _leaves(value: Any) -> int:
    """Scalars below a value; an empty container is one leaf."""
    if isinstance(value, dict):
        return sum(map(_leaves, value.values())) or 1
    if isinstance(value, list):
        return sum(map(_leaves, value)) or 1
    return 1


def _leaf_similarity(left: Any, right: Any) -> float:
    if isinstance(left, str) and isinstance(right, str):
        if left == right:
            return 1.0
        if min(len(left), len(right)) < PROSE_CHARS:
            return 0.0
        return similarity(plain(left), plain(right))
    if type(left) is type(right) and type(left) in _PLAIN:
        return float(left == right)
    return float(write_exact(left, sort=True) == write_exact(right, sort=True))


def _walk(path: str, left: Any, right: Any, depth: int) -> Iterator[tuple[str, str, str]]:
    if isinstance(left, dict) and isinstance(right, dict):
        for key in dict.fromkeys([*left, *right]):
            inner = f"{path}.{key}" if key.isidentifier() else f"{path}[{write_exact(key)}]"
            yield from _walk(inner, left.get(key, _NOTHING), right.get(key, _NOTHING), depth + 1)
    elif isinstance(left, list) and isinstance(right, list):
        for index, (one, two) in enumerate(_pairs(left, right, depth)):
            yield from _walk(f"{path}[{index}]", one, two, depth + 1)
    elif left is _NOTHING or right is _NOTHING or write_exact(left, sort=True) != write_exact(right, sort=True):
        yield path, _spelling(left), _spelling(right)


def _spelling(value: Any) -> str:
    return "" if value is _NOTHING else write_exact(value)
