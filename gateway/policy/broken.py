"""What a file that is no YAML probably meant: the parser's complaint in a policy's words, with a mend.

A parser says where it gave up and in its grammar's terms; people ask what to write instead. Called by ``tree``.
"""

import re
from collections.abc import Callable

import yaml

_KEY_WITHOUT_SPACE = re.compile(r"\s*(?:- )?[\w.-]+:[^\s/:]")
_DASH_WITHOUT_SPACE = re.compile(r"\s*-[^\s-]")
_CONFLICT = ("<<<<<<<", "=======", ">>>>>>>")

Words = tuple[str, str]


def told(error: yaml.MarkedYAMLError, text: str) -> Words:
    """What is wrong and how to mend it; the parser's own words and a general mend where nothing better is known."""
    mark = error.problem_mark or error.context_mark
    lines = text.splitlines()
    if error.context is not None and error.context.endswith(("an alias", "an anchor")):
        mark = error.context_mark  # where its sign stands; the problem is what follows
    row, column = (mark.line, mark.column) if mark is not None else (0, 0)
    line = lines[row] if row < len(lines) else ""
    opened = error.context_mark.line + 1 if error.context_mark is not None else row + 1
    problem, context = error.problem or "", error.context or ""
    for known, words in _KNOWN:
        if known in problem or known in context:
            return words(lines, row, line, column, opened)
    return f"{context} {problem}".strip(), "check the quotes, brackets and indent of this line and the one above"


def _character(lines: list[str], row: int, line: str, column: int, opened: int) -> Words:
    if "\t" in line[: len(line) - len(line.lstrip())] or line[column : column + 1] == "\t":
        return "the line is indented with a tab", "indent with spaces"
    return _reserved(lines, row, line, column, opened)


def _reserved(_lines: list[str], _row: int, line: str, column: int, _opened: int) -> Words:
    return (
        f"a text cannot begin with `{line[column : column + 1]}`, which means something else to YAML",
        "put it in quotes",
    )


def _colon(lines: list[str], row: int, line: str, column: int, _opened: int) -> Words:
    if re.search(r":\s", line[:column]) and not _DASH_WITHOUT_SPACE.match(line):
        return "a second `: ` in one line", "put a value that holds `: ` in quotes, or begin the inner mapping below"
    above = next((number for number in range(row - 1, -1, -1) if lines[number].strip()), row)
    for number in (above, row):
        if _DASH_WITHOUT_SPACE.match(lines[number]):
            return f"line {number + 1} has a dash without a space", "write a list's item with a space: `- name: a`"
        if _KEY_WITHOUT_SPACE.match(lines[number]):
            return f"line {number + 1} has a key without a space behind its colon", "write `key: value`"
    return f"a `:` where line {above + 1} goes on", f"end the key in line {above + 1} with a colon, or check the indent"


def _no_colon(lines: list[str], row: int, _line: str, _column: int, opened: int) -> Words:
    for number in (opened - 1, row):
        if number < len(lines) and lines[number].startswith(_CONFLICT):
            return f"line {number + 1} is left over from a merge", "keep one side of the conflict and remove the marks"
    return f"the key in line {opened} has no colon", "write `key: value`"


def _indent(_lines: list[str], _row: int, _line: str, _column: int, opened: int) -> Words:
    return (
        f"the line does not line up with the keys from line {opened} on",
        "begin all keys of one mapping in the same column, and what is below a key further to the right",
    )


def _items(_lines: list[str], _row: int, _line: str, _column: int, opened: int) -> Words:
    return (
        f"the line does not line up with the list from line {opened} on",
        "begin all items of one list with `- ` in the same column",
    )


def _bracket(closing: str, kind: str) -> Callable[[list[str], int, str, int, int], Words]:
    def words(_lines: list[str], _row: int, _line: str, _column: int, opened: int) -> Words:
        return (
            f"the {kind} that opens in line {opened} goes wrong here",
            f"put a comma between its parts and close it with `{closing}`",
        )

    return words


def _quote(_lines: list[str], _row: int, _line: str, _column: int, opened: int) -> Words:
    return f"the quote that opens in line {opened} is not closed", "close it; a quote inside is written twice: 'it''s'"


def _escape(_lines: list[str], _row: int, _line: str, _column: int, _opened: int) -> Words:
    return (
        "no such escape in double quotes",
        "use single quotes, in which a backslash is a backslash, as patterns need it",
    )


def _second(_lines: list[str], _row: int, _line: str, _column: int, _opened: int) -> Words:
    return "a second document begins here", "one document a file: remove the `---`, or use two files"


def _deep(_lines: list[str], _row: int, _line: str, _column: int, _opened: int) -> Words:
    return "nested too deeply", "no policy needs that many brackets"


# In this order: the first whose words stand in the parser's problem or its context.
_KNOWN = (
    ("character that cannot start", _character),
    ("undefined alias", _reserved),
    ("scanning an alias", _reserved),
    ("scanning an anchor", _reserved),
    ("mapping values are not allowed", _colon),
    ("could not find expected ':'", _no_colon),
    ("expected ',' or ']'", _bracket("]", "list")),
    ("expected ',' or '}'", _bracket("}", "mapping")),
    ("quoted scalar found unexpected end", _quote),
    ("unexpected end of stream", _quote),
    ("unknown escape", _escape),
    ("expected key", _indent),
    ("expected '-' indicator", _items),
    ("another document", _second),
    ("maximum nesting depth", _deep),
)
