"""The closed words and the tables of weights and caps."""

import pytest

from gateway.core.comparison.parts import (
    CAPS,
    STRUCTURED_TEXT_WEIGHTS,
    WEIGHTS,
    Agreement,
    Kind,
    Part,
    Unscored,
    Verdict,
)


def test_part_names_are_closed() -> None:
    """Part names are metric labels: a new one must be added here, on dashboards and in the docs on purpose."""
    assert [str(part) for part in Part] == [
        "exact", "text", "json", "schema", "tools", "arguments", "numbers", "citations", "symbols", "refusal",
        "language", "length", "finish", "degenerate", "embedding", "judge",
    ]  # fmt: skip


def test_verdicts_and_reasons_are_closed() -> None:
    """The same for verdicts and for the reasons why a pair has no score."""
    assert [str(verdict) for verdict in Verdict] == [
        "compared", "reference_failed", "other_failed", "both_failed", "unscored",
    ]  # fmt: skip
    assert [str(reason) for reason in Unscored] == [
        "", "missing_leg", "too_deep", "opinion_failed", "comparator_error",
    ]  # fmt: skip


@pytest.mark.parametrize("kind", list(Kind))
def test_every_kind_has_weights_that_sum_to_one(kind: Kind) -> None:
    """No kind is without weights, and a row is a weighted mean."""
    assert sum(WEIGHTS[kind].values()) == pytest.approx(1.0)
    assert all(weight > 0 for weight in WEIGHTS[kind].values())


def test_structured_text_weights_sum_to_one() -> None:
    """The row for structured requests whose answers are no JSON is a weighted mean too."""
    assert sum(STRUCTURED_TEXT_WEIGHTS.values()) == pytest.approx(1.0)


def test_b114_exact_text_never_weighs() -> None:
    """B114: that two texts differ at all is no loss by itself, so it is reported and weighs nothing anywhere."""
    assert all(Part.EXACT not in weights for weights in WEIGHTS.values())
    assert Part.EXACT not in CAPS


def test_caps_lie_below_full_agreement() -> None:
    """A cap that does not hold a score down would be a flip without consequence."""
    assert all(0.0 <= cap < 1.0 for cap in CAPS.values())


def test_only_both_failed_is_an_incident() -> None:
    """Two failures are an incident of the platform; one failure is the evidence against the leg that failed."""
    incidents = [verdict for verdict in Verdict if Agreement(verdict, Kind.CHAT).incident]
    assert incidents == [Verdict.BOTH_FAILED]
