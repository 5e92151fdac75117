"""Optional plug-ins and what they may do to a score."""

import pytest

from gateway.core.comparison.opinions import OpinionFailedError, blend, rate_all
from gateway.core.comparison.parts import Part
from gateway.core.quality import Asked


class Fixed:
    """A plug-in that always says the same; ``asked`` counts how often it was."""

    def __init__(self, value: object, weight: float = 0.0, part: Part = Part.EMBEDDING) -> None:
        self.value, self.weight, self.part, self.asked = value, weight, part, 0

    def rate(self, asked: Asked, reference: str, other: str) -> float:
        self.asked += 1
        if isinstance(self.value, Exception):
            raise self.value
        return self.value  # type: ignore[return-value]


def test_an_opinion_without_weight_is_reported_only() -> None:
    """Off by default also means: adding one to watch it moves no score."""
    rated = rate_all([Fixed(0.2)], Asked(), "a", "b")
    assert rated == [(Part.EMBEDDING, 0.2, 0.0)]
    assert blend(0.9, rated) == 0.9


def test_opinions_take_their_share() -> None:
    """A quarter of the score is the plug-in's; weights beyond 1 leave the parts nothing."""
    assert blend(1.0, [(Part.JUDGE, 0.0, 0.25)]) == 0.75
    assert blend(1.0, [(Part.JUDGE, 0.2, 0.8), (Part.EMBEDDING, 0.4, 0.8)]) == pytest.approx(0.3)
    assert blend(0.4, []) == 0.4


def test_equal_texts_are_not_asked_about() -> None:
    """Equal texts agree without a model's help, so an answer always agrees with itself."""
    plugin = Fixed(0.0, weight=1.0)
    assert rate_all([plugin], Asked(), "same", "same") == [(Part.EMBEDDING, 1.0, 1.0)]
    assert plugin.asked == 0


@pytest.mark.parametrize("value", [ValueError("down"), float("nan"), 1.5, -0.1, None, "x"])
def test_a_broken_opinion_is_no_number(value: object) -> None:
    """Without weight it is left out; with weight the pair has no score, since another mixture is another metric."""
    assert rate_all([Fixed(value)], Asked(), "a", "b") == []
    with pytest.raises(OpinionFailedError):
        rate_all([Fixed(value, weight=0.5)], Asked(), "a", "b")
