"""Plausible text."""

import ast
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.simulator.ask import Source
from gateway.simulator.prose import cited, code, looked_up, pieces_of, prose, reworded, topics_of


@given(st.integers(1, 600), st.integers())
def test_prose_has_exactly_its_length(length: int, seed: int) -> None:
    """One piece a token, exactly as many as asked for, and every piece holds something."""
    pieces = prose(Random(seed), ["whale", "ocean"], length)
    assert len(pieces) == length
    assert all(pieces)


def test_prose_reads_as_sentences_about_the_topic() -> None:
    """Text ends in a full stop, begins with a capital and talks about the prompt's words."""
    text = "".join(prose(Random(1), ["whale"], 80))
    assert text.endswith(".")
    assert text[0].isupper()
    assert "whale" in text


@given(st.text())
def test_pieces_lose_nothing(text: str) -> None:
    """Any text cut into pieces is the text again when joined."""
    assert "".join(pieces_of(text)) == text


def test_topics_are_words_of_the_end_of_the_prompt() -> None:
    """The last words say what is asked; dull ones are left out, and there is always one."""
    assert topics_of("What about whales and dolphins?") == ["whales", "dolphins"]
    assert topics_of("") == ["question"]


def test_reworded_keeps_structure() -> None:
    """Other words, same length, same punctuation."""
    pieces = prose(Random(3), ["whale"], 120)
    other = reworded(pieces, Random(4))
    assert other != pieces
    assert len(other) == len(pieces)
    assert [piece for piece in other if piece == "."] == [piece for piece in pieces if piece == "."]


def test_citations_exist_and_quote() -> None:
    """Every marker is one of the prompt's, and the words before it are of that source."""
    sources = [Source("[1]", "the cat sleeps on the mat"), Source("[2]", "dogs bark at night")]
    text = cited(Random(5), ["cat"], sources, 100)
    sentences = [sentence for sentence in text.split(". ") if sentence]
    assert sentences[0].startswith("the cat sleeps on the mat [1]")
    for sentence in sentences:
        quote, _, marker = sentence.rstrip(".").rpartition(" ")
        assert quote in next(source.text for source in sources if source.marker == marker)


def test_table_answers_hold_the_cell_asked_for() -> None:
    """The row and column that the question names give the cell."""
    rows = (("name", "price", "stock"), ("---", "---", "---"), ("apple", "12.50", "3"), ("pear", "7.25", "9"))
    assert looked_up(Random(1), rows, "|x|\nWhat is the stock of pear?") == "The stock of pear is 9."
    assert "12.50" in looked_up(Random(1), rows, "|x|\nprice of apple")


@given(st.integers(), st.integers(1, 300), st.text(max_size=60))
def test_code_parses(seed: int, length: int, text: str) -> None:
    """The fenced block is Python that parses, whatever the prompt."""
    answer = code(Random(seed), text, topics_of(text), length)
    ast.parse(answer.split("```python\n")[1].split("```")[0])


@pytest.mark.parametrize("prompt", ["write `merge_lists` please", "fix def merge_lists(a):"])
def test_code_is_named_as_the_prompt_names_it(prompt: str) -> None:
    """The function carries the symbol of the prompt."""
    assert "def merge_lists(" in code(Random(1), prompt, ["x"], 60)
    assert "def add_one(" in code(Random(1), "Write a python function def add_one(x)", ["x"], 60)
    assert "def class(" not in code(Random(1), "`class` and function for", ["x"], 60)
