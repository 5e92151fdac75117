"""Which of the scored tokens are the answer's: matching what tokens spell against a text.

Owns the search for an answer at the end of a scored prompt. Must not know any runtime. Called by `scoring`.
"""

from collections.abc import Sequence
from itertools import accumulate, takewhile
from typing import Final, NamedTuple

from gateway.core.comparison.likelihood import TokenScores

_FRAGMENT: Final = "\ufffd"  # what runtimes spell for a token that is only part of a character
_MOST_CLOSING: Final = 4
"""Tokens that a template may put after the last message although it was asked to leave it open."""


class Token(NamedTuple):
    """A scored token: how the runtime spells it, its log-probability, its vocabulary number (-1 = not told)."""

    text: str
    logprob: float
    id: int


def find_answer(tokens: Sequence[Token], answer: str) -> TokenScores | None:
    """The last tokens that together spell the answer, which a template may have trimmed; None if none do.

    A token that reaches over the answer's beginning (a line break merged with the first word) is left out.
    """
    spelled = "".join(token.text for token in tokens)
    for wanted in (answer, answer.strip()):
        at = spelled.rfind(wanted)
        if at >= 0:
            end = at + len(wanted)
            ends = accumulate(len(token.text) for token in tokens)
            return _scores([t for t, to in zip(tokens, ends, strict=True) if to - len(t.text) >= at and to <= end])
    return None


def trust_tail(tail: Sequence[Token], answer: str) -> TokenScores | None:
    """Tokens whose place is known from their numbers: accepted if they spell the answer but for character fragments."""
    for wanted in (answer, answer.strip()):
        for closing in range(min(_MOST_CLOSING, len(tail)) + 1):
            kept = tail[: len(tail) - closing]
            if _spells_loosely("".join(token.text for token in kept), wanted):
                return _scores(kept)
    return None


def shared_length(left: Sequence[object], right: Sequence[object]) -> int:
    """Length of the beginning that two sequences share."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(left, right, strict=False)))


def _scores(tokens: Sequence[Token]) -> TokenScores | None:
    if not tokens:
        return None
    texts, logprobs, ids = zip(*tokens, strict=True)
    told = all(number >= 0 for number in ids)
    return TokenScores(tuple(text.encode("utf-8", "replace") for text in texts), logprobs, ids if told else ())


def _spells_loosely(spelled: str, wanted: str) -> bool:
    """Whether the whole pieces between fragments occur in order, each gap no wider than its fragments."""
    at = gap = 0
    for number, piece in enumerate(spelled.split(_FRAGMENT)):
        if number:
            gap += 1
        if not piece:
            continue
        found = wanted.find(piece, at, at + gap + len(piece))
        if found < 0:
            return False
        at, gap = found + len(piece), 0
    return 0 <= len(wanted) - at <= gap
