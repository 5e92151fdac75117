"""Code fences and inline code in an answer: where code is, where prose is, and which fence never closes.

Owns the reading of CommonMark §4.5 (fenced code blocks) as far as answers need it. Must not judge the code. Used by
the view that all checks share.

Two deliberate departures: a fence may be indented more than three columns, since models put code into list items; and
inside a ``markdown`` fence an inner fence with an info string nests, since models write whole README files that way.
"""

import re
from typing import Final

import msgspec

MAX_FENCES: Final = 64

_FENCE_LINE: Final = re.compile(r"^[ \t]*(?:(?:[-*+>]|\d{1,3}[.)])[ \t]+)*(`{3,}|~{3,})[ \t]*([^\n]*)$", re.MULTILINE)
_INLINE: Final = re.compile(r"(?<!`)(`{1,2})(?!`)[^`\n]+\1(?!`)")
_NOT_NEWLINE: Final = re.compile(r"[^\n]")
_NESTING: Final = frozenset({"markdown", "md", "mdx"})


class Fence(msgspec.Struct, frozen=True):
    """One fenced block. ``start`` is its opening line, ``body_start`` and ``body_end`` bound the code itself."""

    language: str
    start: int
    body_start: int
    body_end: int
    closed: bool


def find_fences(text: str) -> tuple[Fence, ...]:
    """All fenced blocks in order, outermost only; the last one may be open."""
    fences: list[Fence] = []
    stack: list[tuple[str, str, re.Match[str]]] = []  # (mark, language, opening line)
    for line in _FENCE_LINE.finditer(text):
        mark, info = line[1], line[2].strip()
        if not stack:
            if mark[0] == "`" and "`" in info:
                continue  # three backticks around inline code
            stack.append((mark, _language(info), line))
            continue
        open_mark, language, opening = stack[-1]
        if mark[0] == open_mark[0] and len(mark) >= len(open_mark) and not info:
            stack.pop()
            if not stack:
                fences.append(Fence(language, opening.start(), _body_start(opening, text), line.start(), True))
                if len(fences) >= MAX_FENCES:
                    return tuple(fences)
        elif language in _NESTING and info and "`" not in info:
            stack.append((mark, _language(info), line))
    if stack:
        _, language, opening = stack[0]
        fences.append(Fence(language, opening.start(), _body_start(opening, text), len(text), False))
    return tuple(fences)


def blank_code(text: str, fences: tuple[Fence, ...]) -> str:
    """The text with all code replaced by spaces, so that offsets stay and prose remains."""
    for fence in fences:
        end = text.find("\n", fence.body_end)
        end = len(text) if end < 0 or not fence.closed else end
        text = text[: fence.start] + _NOT_NEWLINE.sub(" ", text[fence.start : end]) + text[end:]
    if "`" in text:
        text = _INLINE.sub(lambda found: " " * len(found[0]), text)
    return text


def _language(info: str) -> str:
    word = info.split(maxsplit=1)[0] if info else ""
    return word.strip("{}.").split(",")[0].split(":")[0].lower()


def _body_start(opening: re.Match[str], text: str) -> int:
    return min(opening.end() + 1, len(text))
