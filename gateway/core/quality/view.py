"""What every check looks at: one choice, the request behind it, and the answer's texts cut to a bounded length.

Owns the caps on text length and the one-time preparation that checks share (code apart from prose). Must not judge.
Built once per choice by `inspect`.
"""

from typing import Final

import msgspec

from gateway.core.assemble.answer import Answer, Choice
from gateway.core.quality.asked import Asked
from gateway.core.quality.markdown import Fence, blank_code, find_fences
from gateway.core.quality.scripts import weights

TEXT_CHARS: Final = 65_536
"""Characters of answer text that the checks read; a longer text keeps its beginning here and its end in ``tail``."""

JSON_CHARS: Final = 1_048_576
"""Longest text that is parsed as JSON."""

TAIL_CHARS: Final = 8_192


class View(msgspec.Struct, frozen=True):
    """One choice, prepared. ``prose`` has the length of ``text``, with code blanked out, ``letters`` weighs its
    scripts. ``at_limit``: the token limit ended it; ``cut``: it is incomplete for whatever reason, so an open end is
    no fault of form."""

    asked: Asked
    answer: Answer
    choice: Choice
    text: str
    tail: str
    over_cap: bool
    fences: tuple[Fence, ...]
    prose: str
    letters: dict[str, float]
    at_limit: bool
    cut: bool


def view_of(asked: Asked, answer: Answer, choice: Choice) -> View:
    """Prepare one choice for the checks."""
    text = choice.text[:TEXT_CHARS]
    fences = find_fences(text) if "```" in text or "~~~" in text else ()
    prose = blank_code(text, fences)
    at_limit = choice.finish_reason == "length"
    return View(
        asked=asked,
        answer=answer,
        choice=choice,
        text=text,
        tail=choice.text[-TAIL_CHARS:],
        over_cap=len(choice.text) > TEXT_CHARS,
        fences=fences,
        prose=prose,
        letters=weights(prose),
        at_limit=at_limit,
        cut=at_limit or answer.truncated or (choice.finish_reason is None and bool(answer.errors)),
    )
