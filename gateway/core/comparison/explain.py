"""What two answers do not share, in words a person can check.

Owns the differences behind each part, with text of the answers in them: for the terminal and for pairs that may be
captured, never for metrics or stored scores. Must not score. Called by `quantgate compare` and `quantgate diff`.
"""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple

from gateway.core.assemble.answer import Answer
from gateway.core.assemble.exact_json import canonical_text
from gateway.core.comparison.calls import pair_calls
from gateway.core.comparison.parts import Kind, Part
from gateway.core.comparison.reading import Reading, read
from gateway.core.comparison.structure import differences, read_arguments
from gateway.core.comparison.text import Change, changes
from gateway.core.quality.asked import Asked

MOST_NAMED: Final = 20
_MOST_PATHS: Final = 12
_SHOWN_CHARS: Final = 120


class Difference(NamedTuple):
    """One difference of one choice. ``reference`` and ``other`` are what that side has; empty = nothing."""

    part: Part
    what: str
    reference: str
    other: str
    choice: int = 0


class SideBySide(NamedTuple):
    """One choice's texts as runs of words that both have, or only one."""

    choice: int
    changes: tuple[Change, ...]


def explain(reference: Answer, other: Answer, asked: Asked, kind: Kind = Kind.CHAT) -> list[Difference]:
    """List what differs, choice by choice, in the order of the parts. ``kind`` is the agreement's: only a structured
    answer is taken apart as JSON."""
    left, right = read(asked, reference).choices, read(asked, other).choices
    found: list[Difference] = []
    for index in sorted({*left, *right}):
        if index in left and index in right:
            found.extend(d._replace(choice=index) for d in _of_choice(left[index], right[index], kind))
        else:
            there, gone = ("the choice", "") if index in left else ("", "the choice")
            found.append(Difference(Part.EXACT, "only one side has this choice", there, gone, index))
    return sorted(found, key=lambda d: (d.choice, _ORDER[d.part]))


_ORDER: Final = {part: number for number, part in enumerate(Part)}


def side_by_side(reference: Answer, other: Answer, asked: Asked) -> list[SideBySide]:
    """The texts of all choices, cut into what is kept, removed and added."""
    left, right = read(asked, reference).choices, read(asked, other).choices
    return [
        SideBySide(index, tuple(changes(_text(left.get(index)), _text(right.get(index)))))
        for index in sorted({*left, *right})
    ]


def _text(reading: Reading | None) -> str:
    return "" if reading is None else reading.text


def _of_choice(left: Reading, right: Reading, kind: Kind) -> Iterator[Difference]:
    yield from _of_calls(left, right)
    if kind is Kind.STRUCTURED:
        yield from _of_structure(left, right)
    yield from _of_sets(Part.NUMBERS, left.marks.numbers, right.marks.numbers)
    yield from _of_sets(Part.CITATIONS, left.marks.citations, right.marks.citations)
    yield from _of_sets(Part.SYMBOLS, left.marks.symbols, right.marks.symbols)
    for part, what, one, two in (
        (Part.REFUSAL, "refuses", _yes(left.refuses), _yes(right.refuses)),
        (Part.LANGUAGE, "language", left.language or "unclear", right.language or "unclear"),
        (Part.FINISH, "ended", left.ending, right.ending),
        (Part.DEGENERATE, "loops or garbage", _yes(left.degenerate), _yes(right.degenerate)),
        (Part.LENGTH, "words", str(len(left.words)), str(len(right.words))),
    ):
        if one != two:
            yield Difference(part, what, one, two)


def _of_structure(left: Reading, right: Reading) -> Iterator[Difference]:
    if left.json.found and right.json.found:
        for path, one, two in differences(left.json.value, right.json.value, _MOST_PATHS):
            yield Difference(Part.JSON, path, _short(one), _short(two))
    elif left.json.found or right.json.found:
        yield Difference(Part.JSON, "is JSON", _yes(left.json.found), _yes(right.json.found))
    if left.fits_schema is not right.fits_schema:
        yield Difference(Part.SCHEMA, "matches the schema", _known(left.fits_schema), _known(right.fits_schema))


def _of_calls(left: Reading, right: Reading) -> Iterator[Difference]:
    for pairing in pair_calls(left.choice.tool_calls, right.choice.tool_calls):
        one, two = pairing.left, pairing.right
        if one is None or two is None:
            call = one or two
            assert call is not None  # noqa: S101 (a pairing has at least one side)
            shown = f"{call.name}({_short(call.arguments)})"
            yield Difference(Part.TOOLS, "called", shown if one else "", shown if two else "")
        elif pairing.arguments < 1.0 or canonical_text(one.arguments) != canonical_text(two.arguments):
            read, other = read_arguments(one.arguments), read_arguments(two.arguments)
            if not read.found or not other.found:
                yield Difference(Part.ARGUMENTS, one.name, _short(one.arguments), _short(two.arguments))
                continue
            for path, mine, theirs in differences(read.value, other.value, _MOST_PATHS):
                yield Difference(Part.ARGUMENTS, f"{one.name} {path}", _short(mine), _short(theirs))


def _of_sets(part: Part, left: AbstractSet[str], right: AbstractSet[str]) -> Iterator[Difference]:
    if left != right:
        yield Difference(part, "only here", _listed(part, left - right), _listed(part, right - left))


def _listed(part: Part, names: AbstractSet[str]) -> str:
    shown = sorted(_readable(name) if part is Part.NUMBERS else name for name in names)
    more = len(shown) - MOST_NAMED
    return ", ".join(shown[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _readable(number: str) -> str:
    """Spell a canonical number (digits, ``e``, power of ten) as people write it, where that stays short."""
    digits, _, power = number.partition("e")
    sign, digits = ("-", digits[1:]) if digits.startswith("-") else ("", digits)
    if not power or not digits.isdigit():
        return number
    shift = int(power)
    if 0 <= shift <= 12:
        return sign + digits + "0" * shift
    if -12 <= shift < 0:
        padded = digits.rjust(1 - shift, "0")
        return f"{sign}{padded[:shift]}.{padded[shift:]}"
    return number


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARS else text[: _SHOWN_CHARS - 1] + "…"


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _known(value: bool | None) -> str:
    return "no JSON to check" if value is None else _yes(value)
