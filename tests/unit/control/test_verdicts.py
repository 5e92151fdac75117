"""Counting what the checks found."""

from gateway.control.scoring import Scored
from gateway.control.verdicts import Verdicts
from gateway.core.quality import Check
from tests.unit.control.conftest import outcome
from tests.unit.control.exchanges import scored


def test_verdicts_count_per_bucket_and_pool() -> None:
    """Answers by whether anything failed, classes, and single checks where they applied."""
    verdicts = Verdicts()
    verdicts.take_scored([scored("a"), scored("b", Check.SCHEMA), scored("c", pool="int4")])
    assert {key: row[0] for key, row in verdicts.answers.rows.items()} == {
        ("m/short", "bf16", "pass"): 1,
        ("m/short", "bf16", "fail"): 1,
        ("m/short", "int4", "pass"): 1,
    }
    assert {key: row[0] for key, row in verdicts.failures.rows.items()} == {("m/short", "bf16", "format_error"): 1}
    checks = {key[2:]: row[0] for key, row in verdicts.checks.rows.items() if key[1] == "bf16"}
    assert checks == {("json", "pass"): 2, ("schema", "fail"): 1}


def test_unchecked_outcomes_count_nowhere() -> None:
    """A share of checked answers must not be thinned by those that nobody looked at."""
    verdicts = Verdicts()
    verdicts.take_scored([Scored(outcome())])
    assert (verdicts.answers.rows, verdicts.checks.rows, verdicts.failures.rows) == ({}, {}, {})
