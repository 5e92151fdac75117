"""How numbers, intervals and verdicts are spelled."""

import pytest

from gateway.core.report import Tally, Unit, build, layout
from gateway.core.report.flat import to_csv
from gateway.core.report.html import to_html
from gateway.core.report.markdown import to_markdown
from tests.unit.core.report.report_rows import int4, report, row


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (None, Unit.SHARE, "–"),
        (0.0, Unit.SHARE, "0 %"),
        (0.0312, Unit.SHARE, "3.12 %"),
        (0.000031, Unit.SHARE, "0.003 %"),
        (0.0123, Unit.SECONDS, "12.3 ms"),
        (12.345, Unit.SECONDS, "12.3 s"),
        (0.000001, Unit.SECONDS, "<0.01 ms"),
        (1234.5, Unit.PER_SECOND, "1,234"),
        (0.98765, Unit.SCORE, "0.988"),
    ],
)
def test_numbers_have_units_and_three_digits(value, unit, text):
    """None is a dash and never a zero."""
    assert layout.number(value, unit) == text


def test_differences_have_signs():
    """Points of shares, percent of latencies."""
    assert layout.delta(0.0345, Unit.SHARE) == "+3.5 pt"
    assert layout.delta(-0.5, Unit.SECONDS) == "−50.0 %"
    assert layout.delta(-0.02, Unit.SCORE) == "−0.020"
    assert layout.delta(None, Unit.SHARE) == ""


def test_lines_leave_out_what_nobody_has_and_say_what_one_lacks():
    """A metric without data in any column is no row; without data in one it is a dash with a question mark."""
    tally = Tally()
    tally.add_requests([row(), int4(score=None, findings="[]")])
    found = {line.label: line for line in layout.lines(build(tally, 0.0).sections[0])}
    assert "tool failures" not in found
    assert [cell.text for cell in found["format errors"].cells][1] == "– ?"
    assert found["requests"].cells[0].value == "1"


def test_verdicts_are_said_in_words_first():
    """Each line begins with its verdict; quantiles of one latency share its name."""
    lines = layout.finding_lines(report())
    assert lines[0] == "worse: int4 against bf16 in chat: quality score −0.160, format errors +20.0 pt"
    assert lines[1].startswith("better: int4 against bf16 in chat: TTFT P50 −50.0 %, P95 −50.0 %")


def test_an_empty_report_says_so():
    """In words, in each format."""
    made = build(Tally(), 0.0)
    assert layout.summary(made) == ["There are no records in this span, so nothing can be said of any pool."]
    assert "nothing can be said" in to_markdown(made) and "nothing can be said" in to_html(made)
    assert to_csv(made).count("\n") == 1
