"""Strings for regular expressions."""

import re
from random import Random

import pytest

from gateway.simulator.pattern import text_for

PATTERNS = [
    r"^[A-Z]{2}-\d{4}$",
    r"^\w+@\w+\.(com|org)$",
    r"a|b|c{2,3}",
    r"^[^0-9]{3,5}$",
    r"^(?:red|green)(?:-\w{1,4})?$",
    r"\d{3}-\d{2}",
    r"^.{5}$",
    r"^\S+\s\S+$",
    r"^[\w.-]+$",
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_text_matches_its_pattern(pattern: str) -> None:
    """Every text made for a pattern is found by it."""
    for seed in range(50):
        text = text_for(pattern, Random(seed))
        assert text is not None
        assert re.search(pattern, text)


@pytest.mark.parametrize("pattern", [r"(?=.*\d)x", r"(a)\1", "[", r"(?<!a)b$x"])
def test_what_is_beyond_it_is_said(pattern: str) -> None:
    """Look-around, back references and nonsense give None."""
    assert text_for(pattern, Random(1)) is None
