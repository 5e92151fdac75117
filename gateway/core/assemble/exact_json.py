"""JSON from strangers: parsed without losing a digit, without recursion errors, with the place of what is wrong.

Owns strict parsing of texts that a model wrote (`parse_exact`), tolerant parsing of what a runtime wrote
(`parse_envelope`), and the canonical spelling that makes two JSON texts comparable (`canonical_text`). Must not know
what the JSON means. Called by the assembler, the checks and the comparison of answers.

Digits stay exact: integers are Python integers, and a number that a float would round is a `Literal`, a float that
keeps its source text. So two 20-digit numbers that differ in the last digit differ here too.
"""

import json
import re
from typing import Any, Final

import orjson

MAX_DEPTH: Final = 200
"""Deepest nesting that is read. Real answers stay under 20; beyond this a reader's own stack would be at stake."""

_MAX_INT_DIGITS: Final = 4000  # Python refuses int(text) beyond 4,300 digits
_TOKENS: Final = re.compile(r'"(?:[^"\\]|\\.)*"?|[\[\]{}]', re.DOTALL)
_CUT_ESCAPE: Final = re.compile(r"\\?u?[0-9a-fA-F]{0,4}")
_CUT_NUMBER: Final = re.compile(r"\.|[eE][+-]?")
_CUT_TOKENS: Final = ("true", "false", "null")
_NUMBER: Final = re.compile(r"(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d{1,18}))?\Z")


class JsonProblemError(ValueError):
    """Why a text is no JSON. ``position`` counts characters; ``cut``: what is there is a correct beginning."""

    def __init__(self, message: str, position: int, *, cut: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.position = position
        self.cut = cut


class Literal(float):
    """A number whose digits a float would lose. Computes as the float, spells and compares by ``text``."""

    __slots__ = ("text",)
    text: str


def parse_exact(text: str) -> Any:
    """Parse strict JSON (RFC 8259: no NaN, no trailing comma). Raises `JsonProblemError`, nothing else."""
    return _parse(text, strict=True)


def parse_envelope(raw: bytes, *, exact: bool = False) -> Any:
    """Parse a runtime's JSON body or event; NaN, Infinity, raw control characters and bad UTF-8 are let through.

    ``exact`` keeps all digits (slower); without it numbers beyond 64 bits may be rounded. Raises `JsonProblemError`.
    """
    if not exact:
        try:
            return orjson.loads(raw)
        except orjson.JSONDecodeError:
            pass  # orjson refuses lone surrogates, NaN and deep nesting alike; the slow path tells them apart
    return _parse(raw.decode("utf-8-sig", "replace"), strict=False)


def write_exact(value: Any, *, sort: bool = False) -> str:
    """Spell a value from `parse_exact` as compact JSON with its original digits; ``sort`` orders object keys."""
    if isinstance(value, dict):
        items = sorted(value.items()) if sort else value.items()
        return "{" + ",".join(f"{_quote(str(key))}:{write_exact(item, sort=sort)}" for key, item in items) + "}"
    if isinstance(value, list):
        return "[" + ",".join(write_exact(item, sort=sort) for item in value) + "]"
    if isinstance(value, str):
        return _quote(value)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    text = value.text if isinstance(value, Literal) else repr(value)
    return canonical_number(text) if sort else text


def canonical_text(text: str) -> str:
    """One spelling for all texts that hold the same JSON value; blank text is the empty object, like absent arguments.

    Key order, white space, escapes and the spelling of numbers (``1.0``, ``1e0``, ``1``) vanish; digits never do. A
    text that is no JSON comes back as it is.
    """
    if not text.strip():
        return "{}"
    try:
        return write_exact(parse_exact(text), sort=True)
    except JsonProblemError:
        return text


def canonical_number(text: str) -> str:
    """Spell a JSON number as sign, significant digits and power of ten, without rounding."""
    found = _NUMBER.match(text)
    if found is None:
        return text
    sign, whole, fraction, exponent = found[1], found[2], found[3] or "", int(found[4] or 0)
    digits = (whole + fraction).lstrip("0")
    power = exponent - len(fraction) + len(digits) - len(digits.rstrip("0"))
    digits = digits.rstrip("0")
    return f"{sign}{digits}e{power}" if digits else "0"


def line_and_column(text: str, position: int) -> tuple[int, int]:
    """Return the 1-based line and column of a character position."""
    before = text[:position]
    return before.count("\n") + 1, position - (before.rfind("\n") + 1) + 1


def _parse(text: str, *, strict: bool) -> Any:
    deep = _too_deep_at(text)
    if deep >= 0:
        raise JsonProblemError(f"nested deeper than {MAX_DEPTH} levels", deep)
    constant = _refuse_constant if strict else float
    try:
        return json.loads(text, strict=strict, parse_int=_int, parse_float=_float, parse_constant=constant)
    except json.JSONDecodeError as error:
        raise JsonProblemError(error.msg, error.pos, cut=_is_cut(text, error)) from None
    except _ConstantError as error:
        raise JsonProblemError(f"{error} is no JSON number", max(text.find(str(error)), 0)) from None
    except (ValueError, RecursionError) as error:
        raise JsonProblemError(str(error), 0) from None


class _ConstantError(Exception):
    """NaN, Infinity or -Infinity in strict JSON."""


def _refuse_constant(word: str) -> float:
    raise _ConstantError(word)


def _int(text: str) -> int | float:
    return int(text) if len(text) <= _MAX_INT_DIGITS else _literal(text)


def _float(text: str) -> float:
    value = float(text)
    return value if repr(value) == text else _literal(text)


def _literal(text: str) -> Literal:
    value = Literal(text)
    value.text = text
    return value


def _quote(text: str) -> str:
    return json.dumps(text)


def _too_deep_at(text: str) -> int:
    """Position of the bracket that passes `MAX_DEPTH`, or -1. Counts first: few brackets cannot nest deeply."""
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return -1
    depth = 0
    for token in _TOKENS.finditer(text):
        mark = token[0]
        if mark in {"[", "{"}:
            depth += 1
            if depth > MAX_DEPTH:
                return token.start()
        elif mark in {"]", "}"}:
            depth -= 1
    return -1


def _is_cut(text: str, error: json.JSONDecodeError) -> bool:
    """Whether the text is wrong only because it ends too early."""
    end = len(text.rstrip(" \t\n\r"))
    if error.pos >= end:
        # a complete value followed by nothing never raises, so an error at the end means that more was to come
        return error.msg != "Extra data"
    if error.msg.startswith("Unterminated string"):
        return True
    rest = text[error.pos : end]
    if error.msg.startswith("Invalid \\uXXXX"):
        return _CUT_ESCAPE.fullmatch(rest) is not None
    if error.msg == "Expecting value":
        return rest == "-" or any(word.startswith(rest) for word in _CUT_TOKENS)
    return _CUT_NUMBER.fullmatch(rest) is not None
