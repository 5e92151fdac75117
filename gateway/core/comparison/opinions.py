"""Plug-ins that have an opinion on two texts: an embedding similarity, a judge model. None is built in, none is on.

Owns the interface and what an opinion may do to a score. Must not implement one: a similarity that is made up would be
worse than none. Given to `agree` by whoever composed the scorer; an opinion may use a local model or the network, so
it runs where that is allowed (the scorer's processes) and never on a worker's loop.
"""

import math
from collections.abc import Sequence
from typing import Protocol

from gateway.core.comparison.parts import Part
from gateway.core.quality.asked import Asked


class Opinion(Protocol):
    """One plug-in. ``part`` is `Part.EMBEDDING` or `Part.JUDGE`; ``weight`` in [0, 1] is its share of the score, 0 =
    reported only. Asked for free text alone (chat, code, rag), and only where the texts differ."""

    @property
    def part(self) -> Part:
        """The part it fills."""
        ...

    @property
    def weight(self) -> float:
        """Its share of the score."""
        ...

    def rate(self, asked: Asked, reference: str, other: str) -> float:
        """Agreement of two texts in [0, 1], 1 = the same in all that matters. May raise: then it has no opinion."""
        ...


class OpinionFailedError(Exception):
    """A plug-in whose weight is above 0 gave no usable number: the pair has no score, since a score without this part
    would be another metric."""


def rate_all(opinions: Sequence[Opinion], asked: Asked, reference: str, other: str) -> list[tuple[Part, float, float]]:
    """Ask every plug-in; gives (part, value, weight). Equal texts are 1 without asking. Raises `OpinionFailedError`."""
    found: list[tuple[Part, float, float]] = []
    for opinion in opinions:
        value = 1.0 if reference == other else _rate(opinion, asked, reference, other)
        if value is not None:
            found.append((opinion.part, value, opinion.weight))
        elif opinion.weight > 0:
            raise OpinionFailedError(opinion.part)
    return found


def blend(score: float, rated: Sequence[tuple[Part, float, float]]) -> float:
    """Mix opinions into a score by their weights; weights that sum to more than 1 leave the score nothing."""
    weighed = [(value, weight) for _, value, weight in rated if weight > 0]
    total = sum(weight for _, weight in weighed)
    if not total:
        return score
    mean = sum(value * weight for value, weight in weighed) / total
    share = min(total, 1.0)
    return (1 - share) * score + share * mean


def _rate(opinion: Opinion, asked: Asked, reference: str, other: str) -> float | None:
    try:
        value = float(opinion.rate(asked, reference, other))
    except Exception:  # foreign code; whatever it raises means that it has no opinion
        return None
    return value if math.isfinite(value) and 0.0 <= value <= 1.0 else None
