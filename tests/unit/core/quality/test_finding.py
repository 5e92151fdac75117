"""The vocabulary of findings: closed, complete, and gravest first."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.core.quality.finding import (
    CLASS_OF,
    SNIPPET_CHARS,
    STRUCTURAL,
    Check,
    FailureClass,
    Finding,
    Inspection,
    Verdict,
    failed,
    failure_classes,
    passed,
    score,
    worst,
)


def test_every_check_has_a_class_and_every_class_a_check() -> None:
    """A new check without a class, or a class that nothing can reach, is a mistake."""
    assert set(Check) == set(CLASS_OF)
    assert set(FailureClass) == set(CLASS_OF.values())


def test_structural_checks_are_fifteen_of_the_checks() -> None:
    """The split into structural and weighed checks covers what docs/checks.md says."""
    assert {"repetition", "garbage", "script", "refusal", "citations", "numbers"} == set(Check) - STRUCTURAL


@given(st.lists(st.sampled_from(FailureClass), unique=True))
def test_score_is_bounded_and_falls_with_each_failure(failures: list[FailureClass]) -> None:
    """1 without failure, never below 0, never higher for one failure more."""
    value = score(failures)
    assert 0.0 <= value <= 1.0
    assert (value == 1.0) == (not failures)
    assert score([*failures, FailureClass.PROTOCOL]) <= value


def test_failure_classes_come_once_and_in_order() -> None:
    """Two failures of one class are one label; passes count for nothing."""
    findings = [failed(Check.SQL, ""), failed(Check.PYTHON, ""), failed(Check.JSON, ""), passed(Check.EMPTY, "")]
    assert failure_classes(findings) == (FailureClass.FORMAT_ERROR, FailureClass.CODE_ERROR)


def test_worst_verdict() -> None:
    """Fail beats skip beats pass beats not applicable; nothing at all is not applicable."""
    assert worst([Verdict.PASS, Verdict.FAIL, Verdict.SKIP]) == Verdict.FAIL
    assert worst([Verdict.PASS, Verdict.SKIP]) == Verdict.SKIP
    assert worst([]) == Verdict.NOT_APPLICABLE


def test_snippets_are_bounded() -> None:
    """No finding carries more than 80 characters of text."""
    assert len(failed(Check.JSON, "", snippet="x" * 500).snippet) == SNIPPET_CHARS


def test_inspection_verdict_is_the_worst_of_its_choices() -> None:
    """With several choices one bad one decides."""
    findings = (passed(Check.EMPTY, ""), Finding(Check.EMPTY, Verdict.FAIL, "", choice=1))
    inspection = Inspection("chat", False, 2, 0, findings, failure_classes(findings), 0.0)
    assert inspection.verdict(Check.EMPTY) == Verdict.FAIL
    assert not inspection.ok
