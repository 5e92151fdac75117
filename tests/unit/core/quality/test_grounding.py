"""Numbers against the given material."""

import pytest

from gateway.core.assemble import Answer, Choice
from gateway.core.quality.asked import Asked
from gateway.core.quality.finding import Verdict
from gateway.core.quality.grounding import check_numbers
from gateway.core.quality.view import view_of

TABLE = "| quarter | units | share |\n|---|---|---|\n| Q1 | 1,204 | 2.5% |\n| Q2 | 1,377 | 16.48% |\n"
TEXT = (
    "Answer only from the documents.\nThe ferry carries 2,050 people. It cost 3.42 million and sails twenty-three days."
)


def verdict(text: str, context: str = TABLE, user: str = "Which?", finish: str = "stop") -> Verdict:
    """The verdict on one text."""
    choice = Choice(text=text, finish_reason=finish)
    return check_numbers(
        view_of(Asked(context=context, user=user), Answer(choices=(choice,), done=True), choice)
    ).verdict


@pytest.mark.parametrize(
    "text", ["1204 units", "It was 2.5 %", "about 16.5%", "a share of 0.025", "Q2: 1,377 [99]", "Row 55 says 1,204"]
)
def test_numbers_of_a_table(text: str) -> None:
    """As given, without separators, as a fraction, rounded; citations and row numbers aside."""
    assert verdict(text) == Verdict.PASS


@pytest.mark.parametrize("text", ["1240 units", "It was 5.2 %", "1,204 and 1,378"])
def test_invented_numbers(text: str) -> None:
    """Swapped digits, another share, one wrong of two."""
    assert verdict(text) == Verdict.FAIL


@pytest.mark.parametrize("text", ["2050 people", "3,420,000 in all", "3.4 million", "23 days"])
def test_numbers_of_a_document(text: str) -> None:
    """Scaled, rounded at scale, and spelled out in the document."""
    assert verdict(text, TEXT) == Verdict.PASS


def test_small_counts_and_list_marks_are_excused() -> None:
    """A list of fifteen things is no fifteen claims."""
    assert verdict("1. a\n2. b\n13. c\n14) d\nand 3 more") == Verdict.NOT_APPLICABLE


def test_computing_is_not_held_against_the_answer() -> None:
    """New numbers may be right where the request asks to compute."""
    assert verdict("2,581 in all", user="What is the total?") == Verdict.SKIP
    assert verdict("共2581件", user="总共多少件？") == Verdict.SKIP


def test_a_number_at_the_cut_may_be_half_of_one() -> None:
    """13 of 1,377 at the token limit is no invention."""
    assert verdict("It sold 13", finish="length") == Verdict.NOT_APPLICABLE


@pytest.mark.parametrize("context", ["", "Tell me a story about 1905.", "x" * 500])
def test_free_requests_are_not_judged(context: str) -> None:
    """Without table or documents any number may be said."""
    assert verdict("In 1984", context) == Verdict.NOT_APPLICABLE


def test_csv_is_a_table() -> None:
    """Rows of comma-separated values are material too."""
    context = "Use this:\nname,team,points\nIvo,red,71\nMia,blue,88\n"
    assert verdict("Mia has 89", context) == Verdict.FAIL
    assert verdict("Mia has 88", context) == Verdict.PASS
