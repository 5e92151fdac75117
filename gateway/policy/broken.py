"""What a file that is no YAML probably meant: the parser's complaint in a policy's words, with its place and a mend.

A parser says where it gave up and in its grammar's terms; people ask what to write instead. Called by ``reading``.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

import yaml

_ODD_INDENT = re.compile(r"\s*[^\S \t\r\n]")
_KEY_WITHOUT_SPACE = re.compile(r"\s*(?:- )?[\w.-]+:[^\s/:]")
_DASH_WITHOUT_SPACE = re.compile(r"\s*-[^\s-]")
_CONFLICT = ("<<<<<<<", "=======", ">>>>>>>")

Words = tuple[str, str]


class _Spot(NamedTuple):
    """Where the parser gave up: the file's lines, a row and column among them, and the line where it all began."""

    lines: list[str]
    row: int
    column: int
    opened: int

    @property
    def line(self) -> str:
        return self.lines[self.row] if self.row < len(self.lines) else ""


class Told(NamedTuple):
    """A complaint at its place, 1-based, with its mend."""

    line: int
    column: int
    message: str
    mend: str


def told(error: yaml.MarkedYAMLError, text: str) -> Told:
    """What is wrong and how to mend it; the parser's own words and a general mend where nothing better is known."""
    mark = error.problem_mark or error.context_mark
    if error.context is not None and error.context.endswith(("an alias", "an anchor")):
        mark = error.context_mark  # where its sign stands; the problem is what follows
    row, column = (mark.line, mark.column) if mark is not None else (0, 0)
    opened = error.context_mark.line + 1 if error.context_mark is not None else row + 1
    spot = _Spot(text.splitlines(), row, column, opened)
    for number in (row, row - 1, opened - 1):
        if 0 <= number < len(spot.lines) and _ODD_INDENT.match(spot.lines[number]):
            message = "the line is indented with what is no plain space"
            return Told(number + 1, 1, message, "indent with spaces of your keyboard")
    problem, context = error.problem or "", error.context or ""
    for known, words in _KNOWN.items():
        if known in problem or known in context:
            message, mend = words(spot) if callable(words) else words
            return Told(row + 1, column + 1, message.replace("@opened", str(opened)), mend)
    mend = "check the quotes, brackets and indent of this line and the one above"
    return Told(row + 1, column + 1, f"{context} {problem}".strip(), mend)


def _character(spot: _Spot) -> Words:
    line, column = spot.line, spot.column
    if "\t" in line[: len(line) - len(line.lstrip())] or line[column : column + 1] == "\t":
        return "the line is indented with a tab", "indent with spaces"
    return _reserved(spot)


def _unnamed(spot: _Spot) -> Words:
    name = re.match(r"[*&]([^\s,\[\]{}]*)", spot.line[spot.column :])
    mark = f"&{name[1] if name else ''}"
    mend = f"mark it with `{mark}` further up in this file, or put it in quotes if it is text"
    return f"`*` repeats what is marked `{mark}`, and nothing is", mend


def _reserved(spot: _Spot) -> Words:
    sign = spot.line[spot.column : spot.column + 1]
    return f"a text cannot begin with `{sign}`, which means something else to YAML", "put it in quotes"


def _colon(spot: _Spot) -> Words:
    lines, row = spot.lines, spot.row
    if re.search(r":\s", spot.line[: spot.column]) and not _DASH_WITHOUT_SPACE.match(spot.line):
        return "a second `: ` in one line", "put a value that holds `: ` in quotes, or begin the inner mapping below"
    above = next((number for number in range(row - 1, -1, -1) if lines[number].strip()), row)
    for number in (above, row):
        if _DASH_WITHOUT_SPACE.match(lines[number]):
            return f"line {number + 1} has a dash without a space", "write a list's item with a space: `- name: a`"
        if _KEY_WITHOUT_SPACE.match(lines[number]):
            return f"line {number + 1} has a key without a space behind its colon", "write `key: value`"
    return f"a `:` where line {above + 1} goes on", f"end the key in line {above + 1} with a colon, or check the indent"


def _no_colon(spot: _Spot) -> Words:
    for number in (spot.opened - 1, spot.row):
        if number < len(spot.lines) and spot.lines[number].startswith(_CONFLICT):
            return f"line {number + 1} is left over from a merge", "keep one side of the conflict and remove the marks"
    if _KEY_WITHOUT_SPACE.match(spot.lines[spot.opened - 1]):
        return "line @opened has a key without a space behind its colon", "write `key: value`"
    line, above = spot.lines[spot.opened - 1], spot.lines[spot.opened - 2] if spot.opened > 1 else ""
    if above.lstrip().startswith("- ") and _indent(above) == _indent(line):
        return "line @opened stands among a list's items without a dash", "begin every item of the list with `- `"
    return "the key in line @opened has no colon", "write `key: value`"


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


# In this order: the first that stands in the parser's problem or its context. ``@opened`` is the line where it began.
_KNOWN: dict[str, Words | Callable[[_Spot], Words]] = {
    "character that cannot start": _character,
    "undefined alias": _unnamed,
    "scanning an alias": _reserved,
    "scanning an anchor": _reserved,
    "mapping values are not allowed": _colon,
    "could not find expected ':'": _no_colon,
    "expected ',' or ']'": (
        "the list that opens in line @opened goes wrong here",
        "put a comma between its parts and close it with `]`",
    ),
    "expected ',' or '}'": (
        "the mapping that opens in line @opened goes wrong here",
        "put a comma between its parts and close it with `}`",
    ),
    "unexpected end of stream": (
        "the quote that opens in line @opened is not closed",
        "close it; a quote inside is written twice: 'it''s'",
    ),
    "unknown escape": (
        "no such escape in double quotes",
        "use single quotes, in which a backslash is a backslash, as patterns need it",
    ),
    "expected key": (
        "the line does not line up with the keys from line @opened on",
        "begin all keys of one mapping in the same column, and what is below a key further to the right",
    ),
    "expected '-' indicator": (
        "the line does not line up with the list from line @opened on",
        "begin all items of one list with `- ` in the same column",
    ),
    "another document": (
        "a second document begins here",
        "one document a file: remove the `---`, or use two files",
    ),
    "maximum nesting depth": ("nested too deeply", "no policy needs that many brackets"),
}
