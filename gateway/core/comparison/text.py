"""Texts as people read them: normalised, cut into words, compared by what they have in common in order.

Owns normalisation (Unicode NFC, white space, Markdown marks, typographic quotes) and the similarity of two texts.
Must not know about tasks. Called by `agree` for the score and by `explain` to show what changed.
"""

import re
import unicodedata
from typing import Final, NamedTuple

from rapidfuzz.distance import Indel, LCSseq

MOST_CHARS: Final = 200_000
"""Characters of an answer that are looked at; about 50,000 tokens, more than any answer that a person reads."""

MOST_WORDS: Final = 20_000
"""Words that are aligned: the alignment costs words²/64 steps, 10 ms here at the most."""

_TYPOGRAPHY: Final = {
    "‘": "'",
    "’": "'",
    "“": '"',
    "”": '"',
    "–": "-",
    "—": "-",
    "−": "-",
    "…": "...",
}
_TYPOGRAPHIC: Final = re.compile(f"[{''.join(_TYPOGRAPHY)}]")
# Every pattern runs in linear time on hostile text: bounded repeats, and no two neighbours that match the same thing.
_LINE_MARKS: Final = re.compile(
    r"^[ \t]*(?:#{1,6}[ \t]+|>[ \t]?|[-*+•][ \t]+|\d{1,3}[.)][ \t]+|[`~]{3,}[\w+-]*[ \t]*$"
    r"|(?:\|[ \t]*)?:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$)",
    re.MULTILINE,
)
_LINK: Final = re.compile(r"!?\[([^\[\]\n]{0,300})\]\([^()\n]{0,500}\)")
_INLINE_MARKS: Final = re.compile(r"[*`~|]+|(?<!\w)_{1,3}|_{1,3}(?!\w)")
_WORD: Final = re.compile(r"\w+(?:[.,]\d+)*")  # 2,100,000.5 is one word
_WIDE: Final = "\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
_SIGNS: Final = "\u2600-\u27bf\ufffd\U0001f000-\U0001faff"  # emoji and replacement characters say something
_WIDE_WORD: Final = re.compile(rf"[{_WIDE}{_SIGNS}]|[^\W{_WIDE}]+(?:[.,]\d+)*")

_PIECE: Final = re.compile(rf"[{_WIDE}]\s*|[^\W{_WIDE}]+(?:[.,]\d+)*[^\w{_WIDE}]*|\W+")


class Change(NamedTuple):
    """A run of words: ``equal``, ``delete`` (left only) or ``insert`` (right only)."""

    tag: str
    left: str
    right: str


def joined(text: str) -> str:
    """Join surrogate pairs and replace lone surrogates by U+FFFD, so that the text can be written anywhere (B104)."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def plain(text: str) -> str:
    """Normalise a text: what remains equal looks equal to a reader. Letter case stays."""
    text = joined(text[:MOST_CHARS])
    if not text.isascii():
        text = _TYPOGRAPHIC.sub(lambda found: _TYPOGRAPHY[found[0]], unicodedata.normalize("NFC", text))
    text = _LINE_MARKS.sub("", text)
    if "](" in text:
        text = _LINK.sub(r"\1", text)
    return " ".join(_INLINE_MARKS.sub("", text).split())


def words(plain_text: str) -> list[str]:
    """Cut a normalised text into words. Scripts that write without spaces give one word per character."""
    found = _WORD.findall(plain_text) if plain_text.isascii() else _WIDE_WORD.findall(plain_text)
    return found[:MOST_WORDS]


def similarity(left: str, right: str) -> float:
    """Share of words that two normalised texts have in common in the same order: 2·common / (left + right).

    Symmetric, 1 for equal texts. Texts without any word (only punctuation) are compared character by character.
    """
    if left == right:
        return 1.0
    left_words, right_words = words(left), words(right)
    if not left_words and not right_words:
        return float(Indel.normalized_similarity(left[:MOST_WORDS], right[:MOST_WORDS]))
    return word_similarity(left_words, right_words)


def word_similarity(left: list[str], right: list[str]) -> float:
    """The same for words already cut; two empty lists are equal."""
    return float(Indel.normalized_similarity(left, right))


def length_ratio(left: int, right: int) -> float:
    """Shorter over longer; 1 for two empty ones."""
    longer = max(left, right)
    return min(left, right) / longer if longer else 1.0


def changes(left: str, right: str) -> list[Change]:
    """What was kept, removed and added between two texts, word by word, for showing. White space is kept as it is.

    Between two kept runs everything removed comes before everything added.
    """
    left_pieces, right_pieces = _pieces(left), _pieces(right)
    found: list[Change] = []
    gone = come = ""
    for code in LCSseq.opcodes(left_pieces, right_pieces):
        lefts = "".join(left_pieces[code.src_start : code.src_end])
        rights = "".join(right_pieces[code.dest_start : code.dest_end])
        if code.tag != "equal":
            gone, come = gone + lefts, come + rights
            continue
        found.extend(_changed(gone, come))
        gone = come = ""
        found.append(Change("equal", lefts, rights))
    return [*found, *_changed(gone, come)]


def _changed(gone: str, come: str) -> list[Change]:
    removed = [Change("delete", gone, "")] if gone else []
    return [*removed, Change("insert", "", come)] if come else removed


def _pieces(text: str) -> list[str]:
    """Words with the white space and punctuation that follow them, so that joining gives the text back."""
    return _PIECE.findall(joined(text[:MOST_CHARS]))[:MOST_WORDS]
