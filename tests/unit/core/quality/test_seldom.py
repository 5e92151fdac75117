"""A pattern behind an automaton finds what the pattern alone finds, in any text."""

import re

from hypothesis import given
from hypothesis import strategies as st

from gateway.core.quality.seldom import Seldom

SOURCE = r"\b(english|thai|latin)(?:-(one|two))?\b|(中文|英语)|translat"
PATTERN = Seldom(SOURCE)
ALONE = re.compile(SOURCE, re.IGNORECASE)
# The dotless i is an i for ``re`` when case does not matter, and for nobody else.
texts = st.lists(
    st.sampled_from(
        ["english", "Thai", "LATIN", "-one", "-TWO", "中文", "英语", "Translated", "ſ", "\u212a", "\ud800", "é", "_"]
    )
    | st.text(st.characters(exclude_characters="ı"), max_size=8)
).map("".join)


@given(texts)
def test_it_finds_what_the_pattern_finds(text: str) -> None:
    """The same places, and never a text ruled out that has one: boundaries, scripts, half surrogate pairs."""
    places = [found.span() for found in ALONE.finditer(text)]
    assert [found.span() for found in PATTERN.finditer(text)] == places
    assert PATTERN.found_in(text) == bool(places)
    assert PATTERN.possible(text) or not places


def test_texts_without_it_are_ruled_out() -> None:
    """Or it would be for nothing."""
    assert not PATTERN.possible("nothing of that kind in here " * 100)
    assert PATTERN.possible("an ENGLISH word")
