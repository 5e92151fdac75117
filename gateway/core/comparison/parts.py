"""The words and numbers of a comparison: its parts, kinds, verdicts, and how much each part weighs.

Owns the closed sets (they become metric labels) and the tables of weights and caps. Must not look at an answer.
Read by `agree`, which fills an `Agreement`, and by `legs`, which turns agreements into the judge's values.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

import msgspec


class Kind(StrEnum):
    """What the request asked for, so which parts matter."""

    CHAT = "chat"
    CODE = "code"
    RAG = "rag"
    STRUCTURED = "structured"
    TOOLS = "tools"


class Part(StrEnum):
    """One aspect of agreement. Every value lies in [0, 1]; 1 = no difference."""

    EXACT = "exact"  # same text after normalisation, same calls; never weighs: equal text is no quality (B114)
    TEXT = "text"  # words in common, in order
    JSON = "json"  # leaves in common, path by path
    SCHEMA = "schema"  # both satisfy the requested schema, or neither does
    TOOLS = "tools"  # names of the tools called
    ARGUMENTS = "arguments"  # their arguments
    NUMBERS = "numbers"
    CITATIONS = "citations"
    SYMBOLS = "symbols"  # identifiers in code
    REFUSAL = "refusal"  # 0 = one refused and the other did not
    LANGUAGE = "language"  # 0 = they are written in different languages
    LENGTH = "length"  # shorter over longer
    FINISH = "finish"  # both ended the same way
    DEGENERATE = "degenerate"  # 0 = one loops or is garbage and the other is not
    EMBEDDING = "embedding"  # opinion of an optional plug-in
    JUDGE = "judge"  # opinion of an optional plug-in


class Verdict(StrEnum):
    """Whether a pair could be compared at all. A missing leg is data, so it is a verdict and never left out."""

    COMPARED = "compared"
    REFERENCE_FAILED = "reference_failed"
    OTHER_FAILED = "other_failed"
    BOTH_FAILED = "both_failed"  # an incident, not agreement
    UNSCORED = "unscored"


class Unscored(StrEnum):
    """Why a pair has no score."""

    NONE = ""
    MISSING_LEG = "missing_leg"  # shed, dropped, or never captured
    TOO_DEEP = "too_deep"  # JSON nested beyond what is read
    OPINION_FAILED = "opinion_failed"  # a weighing plug-in broke
    COMPARATOR_ERROR = "comparator_error"


class Agreement(msgspec.Struct, frozen=True):
    """How far two answers to one request agree. Holds no text, so it may be stored for ever.

    ``score`` in [0, 1]: 0 where a leg failed, None where unscored. ``parts`` holds what applied to this pair, averaged
    over the choices. ``kind`` is the one whose weights were used. ``capped_by``: the flip that held the score down.
    """

    verdict: Verdict
    kind: Kind
    score: float | None = None
    parts: tuple[tuple[Part, float], ...] = ()
    capped_by: Part | None = None
    unscored: Unscored = Unscored.NONE

    @property
    def incident(self) -> bool:
        """Both legs failed: says nothing about the candidate, and a lot about the platform."""
        return self.verdict is Verdict.BOTH_FAILED


_CHAT: Final = {
    Part.TEXT: 0.50,
    Part.NUMBERS: 0.15,
    Part.SYMBOLS: 0.10,
    Part.CITATIONS: 0.05,
    Part.LENGTH: 0.10,
    Part.FINISH: 0.10,
}
_CODE: Final = {
    Part.SYMBOLS: 0.40,
    Part.TEXT: 0.30,
    Part.NUMBERS: 0.10,
    Part.LENGTH: 0.05,
    Part.FINISH: 0.15,
}
_RAG: Final = {
    Part.TEXT: 0.35,
    Part.CITATIONS: 0.30,
    Part.NUMBERS: 0.20,
    Part.LENGTH: 0.05,
    Part.FINISH: 0.10,
}
_STRUCTURED: Final = {
    Part.JSON: 0.80,
    Part.SCHEMA: 0.10,
    Part.FINISH: 0.10,
}
_TOOLS: Final = {
    Part.TOOLS: 0.40,
    Part.ARGUMENTS: 0.45,
    Part.TEXT: 0.05,
    Part.FINISH: 0.10,
}

WEIGHTS: Final[Mapping[Kind, Mapping[Part, float]]] = MappingProxyType(
    {
        Kind.CHAT: MappingProxyType(_CHAT),
        Kind.CODE: MappingProxyType(_CODE),
        Kind.RAG: MappingProxyType(_RAG),
        Kind.STRUCTURED: MappingProxyType(_STRUCTURED),
        Kind.TOOLS: MappingProxyType(_TOOLS),
    }
)
"""Weight of each part per kind; each row sums to 1. A part that does not apply to a pair drops out and the others keep
their proportions."""

STRUCTURED_TEXT_WEIGHTS: Final[Mapping[Part, float]] = MappingProxyType(
    {Part.TEXT: 0.80, Part.SCHEMA: 0.10, Part.FINISH: 0.10}
)
"""Weights where structure was asked for and neither answer is JSON: all that is left to compare is text."""

CAPS: Final[Mapping[Part, float]] = MappingProxyType(
    {
        Part.JSON: 0.0,  # one is JSON and the other is not, or no leaf is in common
        Part.TOOLS: 0.0,  # one calls and the other does not (also: its call leaked as text), or no tool is in common
        Part.DEGENERATE: 0.1,
        Part.REFUSAL: 0.2,
        Part.LANGUAGE: 0.4,
        Part.SCHEMA: 0.5,
    }
)
"""Most that a pair can score where this part is 0. Such a flip is no matter of degree, and a mean would hide it."""
