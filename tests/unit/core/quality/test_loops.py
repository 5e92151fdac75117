"""Loops, and texts that only look a little like one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.assemble import Answer, Choice
from gateway.core.quality.asked import Asked
from gateway.core.quality.finding import Finding, Verdict
from gateway.core.quality.loops import check_repetition
from gateway.core.quality.view import view_of

GOOD = (
    "The harbour is small, and the boats lie close together. In the morning the fishermen come back with herring and "
    "cod, and the restaurant on the quay buys what it needs for lunch. "
)


def check(text: str, finish: str = "stop", user: str = "Tell me.") -> Finding:
    """The finding on one text."""
    choice = Choice(text=text, finish_reason=finish)
    return check_repetition(view_of(Asked(user=user), Answer(choices=(choice,), done=True), choice))


@pytest.mark.parametrize(
    "text",
    [
        GOOD + "It is quiet. " * 12,
        GOOD + "the light of " * 10,
        GOOD + "\n" * 100,
        "".join(f"{n}. Keep a regular schedule and rest well.\n" for n in range(9)),
        "- same line here\n" * 7,
        "美丽的" * 30,
        "toDD toDDD to toD " * 20,
        (GOOD * 6).replace("herring", "herring and more herring"),
    ],
)
def test_loops(text: str) -> None:
    """One unit, one phrase, blanks, counted lines, equal lines, CJK, word pieces, whole paragraphs."""
    assert check(text).verdict == Verdict.FAIL


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        "yes yes yes yes yes yes yes",
        "| a | b |\n|---|---|\n" + "".join(f"| {n} | {n * 7} |\n" for n in range(30)),
        "Part\n" + "-" * 120 + "\nEnd of the part, as promised.",
        "```python\n" + "x = [0, 0, 0, 0, 0, 0, 0, 0]\n" * 9 + "```",
        '{"rows": [' + ", ".join(f'{{"id": {n}, "ok": true}}' for n in range(60)) + "]}",
        "La la la, the cat has sat,\nLa la la, upon my hat,\nLa la la, and that was that.",
    ],
)
def test_no_loops(text: str) -> None:
    """Prose, short echoes, tables, rulers, data in code and JSON, refrains."""
    assert check(text).verdict == Verdict.PASS


def test_less_evidence_is_enough_at_the_limit() -> None:
    """The same short loop passes when the text ended by itself and fails when it ran into the limit."""
    text = GOOD + "and so on, " * 5
    assert check(text).verdict == Verdict.PASS
    assert check(text, "length").verdict == Verdict.FAIL


def test_repetition_on_request_is_skipped() -> None:
    """Who asks for a line ten times gets it; at the limit it still counts."""
    text = "All work and no play.\n" * 10
    assert check(text, user="Repeat the line ten times.").verdict == Verdict.SKIP
    assert check(text, user="重复十遍").verdict == Verdict.SKIP
    assert check(text, "length", user="Repeat the line ten times.").verdict == Verdict.FAIL


def test_evidence_starts_where_the_loop_starts() -> None:
    """The offset points at the first round, not at the text's beginning."""
    found = check(GOOD + "It is quiet. " * 12)
    assert len(GOOD) - 2 <= found.start <= len(GOOD) + 13


@given(st.text(min_size=5, max_size=40).filter(lambda unit: unit.strip() and any(c.isalpha() for c in unit)))
def test_any_unit_repeated_often_enough_is_a_loop(unit: str) -> None:
    """Sixty rounds of anything that holds a letter are a loop, whatever the unit."""
    assert check((unit.replace("`", "") + " ab") * 60).verdict == Verdict.FAIL


@given(st.text(max_size=300), st.sampled_from(["stop", "length"]))
def test_any_text_gets_a_verdict(text: str, finish: str) -> None:
    """No text makes the check raise or hang."""
    assert check(text, finish).verdict in set(Verdict)


@pytest.mark.parametrize("text", [".", "!" * 30, " " * 30, "\n" * 24, ")" * 40, '"' * 25])
def test_texts_without_content(text: str) -> None:
    """Nothing but marks or blanks ends in a verdict too."""
    assert check(text).verdict in set(Verdict)
