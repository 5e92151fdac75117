"""A number keeps the way it was written where it is a word."""

import pytest

from gateway.policy.numbers import as_written, written


@pytest.mark.parametrize(
    ("number", "text"),
    [(580.1, "580.10"), (float("inf"), "12e4567"), (123, "0123"), (16, "0x10"), (7, "7"), (1.5, "1.5")],
)
def test_a_number_remembers_its_text(number: float, text: str) -> None:
    """And is the number all the same."""
    kept = written(number, text)
    assert kept == number
    assert as_written(kept) == text


def test_truth_values_are_words_of_the_language_and_text_stays() -> None:
    """Python's own words for them are none of a policy's."""
    assert (as_written(True), as_written(False), as_written("a"), as_written(None)) == ("true", "false", "a", None)
