"""What an answer names: numbers, citations and code symbols, each as a set, and how far two sets agree.

Owns the extraction. Must not judge whether a number or a citation is right: that is the quality checks' business, with
the request in hand. Called by `agree` for the score and by `explain` to show what only one side has.
"""

import re
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple

from gateway.core.assemble.exact_json import canonical_number
from gateway.core.comparison.text import MOST_CHARS
from gateway.core.quality.markdown import blank_code, find_fences

_WIDE_DIGITS: Final = str.maketrans("０１２３４５６７８９．，－−％", "0123456789.,--%")
_WIDE_DIGIT: Final = re.compile("[０-９−－]")
_CHUNK: Final = re.compile(
    r"(?<![A-Za-z_0-9.])[vV]?(-?)(\d{1,400}(?:[.,]\d{1,400}){0,20})(?:[eE]([+-]?\d{1,4})(?!\w))?"
)
_THOUSANDS: Final = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?\Z")
_ORDINAL: Final = re.compile(r"^[ \t]*\d{1,3}[.)、][ \t]+", re.MULTILINE)

_URL: Final = re.compile(r"https?://[^\s<>\"'`)\]}】]{1,500}")
_MARKER: Final = r"\^?(?:[A-Za-z][A-Za-z.]{0,15}[ _-]?)?\d{1,4}"
_BRACKETED: Final = re.compile(rf"[\[［〔]({_MARKER}(?:[ ]?[,;，–-][ ]?{_MARKER}){{0,20}})[\]］〕](?!\()")
_LENTICULAR: Final = re.compile(r"【([^【】\n]{1,80})】")
_AUTHOR_YEAR: Final = re.compile(r"\(([A-Z][^()\n]{1,80}?),? ?((?:19|20)\d{2}[a-z]?)\)")
_SPLIT: Final = re.compile(r"[,;，]")
_RANGE: Final = re.compile(r"(\d{1,4})[–-](\d{1,4})\Z")
_MOST_RANGE: Final = 50

_INLINE: Final = re.compile(r"`([^`\n]{1,200})`")
_IDENTIFIER: Final = re.compile(r"\w+")
# Words that only code writes. Each starts at a word's edge, so a scan is linear.
_CALLED: Final = re.compile(r"\b(\w++)\(")
_SNAKE: Final = re.compile(r"\b[A-Za-z0-9]++_\w++")
_CAMEL: Final = re.compile(r"\b[a-z]++[A-Z]\w*+")
# Strings and comments of the usual languages. Every branch also matches without its end, so a scan is linear.
_NO_CODE: Final = re.compile(
    r'"""[\s\S]*?(?:"""|\Z)'
    r"|'''[\s\S]*?(?:'''|\Z)"
    r'|"(?:[^"\\\n]|\\.)*"?'
    r"|'(?:[^'\\\n]|\\.)*'?"
    r"|/\*[\s\S]*?(?:\*/|\Z)"
    r"|(?:#|//|--[ ])[^\n]*"
)
_MOST_NAME: Final = 200
_KEYWORD_LINES: Final = """
and as async await begin bool break case catch char class const continue def default del do double elif else
elsif end enum except export extends false final finally float fn for foreach from func function global go if
impl import in int interface is lambda let long match mod module mut namespace new nil none not null or package
pass private protected pub public raise return select self static string struct super switch then this throw
throws trait true try type typeof union unsigned use using var void where while with yield
"""
_KEYWORDS: Final = frozenset(_KEYWORD_LINES.split())


class Marks(NamedTuple):
    """Everything an answer names."""

    numbers: frozenset[str]
    citations: frozenset[str]
    symbols: frozenset[str]


def read_marks(text: str) -> Marks:
    """Extract numbers, citations and code symbols of one answer."""
    code, prose = split_code(text[:MOST_CHARS])
    inline = _INLINE.findall(prose) if "`" in prose else []
    cited, rest = _take_citations(blank_code(prose, ()))
    symbols = _symbols_of_code(code) if code else _symbols_of_prose(prose, inline)
    return Marks(numbers("\n".join([rest, *inline, *code])), cited, symbols)


def overlap(left: AbstractSet[str], right: AbstractSet[str]) -> float:
    """How far two sets agree, as F1: 2·common / (left + right). Symmetric; 1 for two empty sets."""
    total = len(left) + len(right)
    return 2 * len(left & right) / total if total else 1.0


def numbers(text: str) -> frozenset[str]:
    """Numbers in a text, spelled canonically: ``1,000`` = ``1000.0``. Ordinals of list items are layout, not numbers.

    Digits are never rounded. Dates and times give their fields; versions (``1.2.3``) stay one word.
    """
    if not text.isascii() and _WIDE_DIGIT.search(text):
        text = text.translate(_WIDE_DIGITS)
    text = _ORDINAL.sub("", text)
    found: set[str] = set()
    for match in _CHUNK.finditer(text):
        sign, chunk, exponent = match[1], match[2], match[3]
        before = text[match.start() - 1] if match.start() else " "
        if sign and (before.isalnum() or before in ")]"):
            sign = ""  # a hyphen or an operator between two values
        if _THOUSANDS.match(chunk):
            chunk = chunk.replace(",", "")
        if "," in chunk or chunk.count(".") > 1:
            found.add(chunk)
        else:
            found.add(canonical_number(f"{sign}{chunk}" + (f"e{exponent}" if exponent else "")))
    return frozenset(found)


def split_code(text: str) -> tuple[list[str], str]:
    """The code of all fenced blocks, and the text around them (inline code stays in it)."""
    fences = find_fences(text) if "```" in text or "~~~" in text else ()
    prose: list[str] = []
    at = 0
    for fence in fences:
        prose.append(text[at : fence.start])
        end = text.find("\n", fence.body_end)
        at = len(text) if end < 0 or not fence.closed else end
    prose.append(text[at:])
    return [text[fence.body_start : fence.body_end] for fence in fences], "".join(prose)


def _take_citations(prose: str) -> tuple[frozenset[str], str]:
    """Sources that an answer points to, and the text without them, so that their digits are not numbers too.

    Read are ``[1, 3-5]``, ``[doc 2]``, ``[^note1]``, ``【4†source】``, URLs and ``(Author, 2020)``.
    """
    found: set[str] = set()

    def url(match: re.Match[str]) -> str:
        found.add(match[0].rstrip(".,;:!?。，；"))
        return " "

    def bracketed(match: re.Match[str]) -> str:
        for piece in _SPLIT.split(match[1]):
            found.update(_expand("".join(piece.split()).lower()))
        return " "

    def whole(match: re.Match[str]) -> str:
        found.add(" ".join(word.strip() for word in match.groups() if word).lower())
        return " "

    if "://" in prose:
        prose = _URL.sub(url, prose)
    prose = _BRACKETED.sub(bracketed, prose)
    prose = _AUTHOR_YEAR.sub(whole, _LENTICULAR.sub(whole, prose))
    return frozenset(found), prose


def _expand(marker: str) -> list[str]:
    """``3-5`` means 3, 4 and 5."""
    found = _RANGE.match(marker)
    if found is None:
        return [marker]
    first, last = int(found[1]), int(found[2])
    return [str(number) for number in range(first, last + 1)] if 0 <= last - first <= _MOST_RANGE else [marker]


def _symbols_of_code(blocks: Iterable[str]) -> frozenset[str]:
    """Identifiers, without strings, comments and the words of the languages themselves."""
    found: set[str] = set()
    for code in blocks:
        found.update(_IDENTIFIER.findall(_NO_CODE.sub(" ", code)))
    return _names(found)


def _symbols_of_prose(prose: str, inline: Iterable[str]) -> frozenset[str]:
    """Names outside of fences: in back quotes, and words that only code writes (``call(``, ``snake_case``, ``aB``)."""
    found: set[str] = set()
    for quoted in inline:
        found.update(_IDENTIFIER.findall(quoted))
    for pattern in (_CALLED, _SNAKE, _CAMEL):
        found.update(pattern.findall(prose))
    return _names(found)


def _names(found: set[str]) -> frozenset[str]:
    return frozenset(
        name for name in found if not name[0].isdigit() and len(name) <= _MOST_NAME and name.lower() not in _KEYWORDS
    )
