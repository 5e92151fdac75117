"""Normalisation, words, similarity and the marked-up difference of two texts."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.comparison.text import Change, changes, joined, length_ratio, plain, similarity, words

ANY_TEXT = st.text(st.characters(), max_size=300)  # lone surrogates included


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("# Title\n\nBody", "Title Body"),
        ("**bold** and _it_ but snake_case", "bold and it but snake_case"),
        ("- one\n* two\n3. three", "one two three"),
        ("```python\nx = 1\n```", "x = 1"),
        ("| a | b |\n|---|:-:|\n| 1 | 2 |", "a b 1 2"),
        ("see [the docs](http://h/p?q=1) now", "see the docs now"),
        ("“so” — it’s", '"so" - it\'s'),
        ("a\u00a0 b\t\n c", "a b c"),
    ],
)
def test_plain_drops_what_a_reader_does_not_see(written: str, read: str) -> None:
    """Markdown marks, white space and typographic variants vanish; words and case stay."""
    assert plain(written) == read


def test_plain_composes_unicode() -> None:
    """A letter with its accent is the same letter however it is encoded."""
    assert plain(unicodedata.normalize("NFD", "Café déjà")) == plain("Café déjà") == "Café déjà"


def test_b104_a_split_surrogate_pair_is_the_emoji_again() -> None:
    """B104: a pair that arrived as two escapes equals the character; a lone half becomes U+FFFD and can be written."""
    assert joined("\ud83d" + "\ude00") == "😀"
    assert joined("a\ud83d") == "a\ufffd"
    assert similarity(plain("\ud83d" + "\ude00 hi"), plain("😀 hi")) == 1.0
    plain("x\ud83d y\ude00").encode()


def test_words_of_scripts_without_spaces_are_characters() -> None:
    """Chinese has no spaces, so one character is the unit; Latin words inside stay whole."""
    assert words("巴黎是France的首都") == ["巴", "黎", "是", "France", "的", "首", "都"]


def test_a_number_is_one_word() -> None:
    """2,100,000 and 2,100,001 share no word, though they share digits."""
    assert words("about 2,100,000.5 people, 3.") == ["about", "2,100,000.5", "people", "3"]


def test_similarity_follows_order_and_content() -> None:
    """More words in common in order, more agreement: equal > one word > half > nothing."""
    base = plain("the cat sat on the mat today")
    one = similarity(base, plain("the dog sat on the mat today"))
    half = similarity(base, plain("the dog lay on a mat"))
    assert 1.0 > one > half > similarity(base, plain("completely different wording here")) == 0.0


def test_similarity_without_words_compares_characters() -> None:
    """Pure punctuation holds no word, yet "!!!" is not "???"."""
    assert similarity("!!!", "???") == 0.0
    assert similarity("!!!", "!!!!") > 0.8


@given(ANY_TEXT, ANY_TEXT)
def test_similarity_is_symmetric_bounded_and_reflexive(left: str, right: str) -> None:
    """Whatever the texts hold, agreement is a number in [0, 1], the same both ways, and 1 with itself."""
    one, two = plain(left), plain(right)
    assert similarity(one, two) == similarity(two, one)
    assert 0.0 <= similarity(one, two) <= 1.0
    assert similarity(one, one) == 1.0


@given(st.text(alphabet=" \t\n*_`#>|-[](){}1.a", max_size=400))
def test_plain_survives_marks_in_any_order(text: str) -> None:
    """Half-open Markdown is what a truncated answer ends in."""
    assert plain(text) == " ".join(plain(text).split())


@pytest.mark.parametrize(
    "text",
    [
        "-" * 100_000 + "x",
        "a" + "_" * 100_000 + "a",
        " " * 100_000 + "x",
        "[](" * 30_000,
        "|---" * 25_000 + "x",
        "`" * 99_999,
    ],
)
def test_hostile_runs_of_marks_are_read(text: str) -> None:
    """Runs that make a backtracking expression explode come back at once (the suite would hang otherwise)."""
    assert isinstance(plain(text), str)


def test_length_ratio() -> None:
    """Shorter over longer; nothing against nothing is no difference."""
    assert (length_ratio(5, 10), length_ratio(10, 5), length_ratio(0, 0), length_ratio(0, 3)) == (0.5, 0.5, 1.0, 0.0)


def test_changes_show_removed_before_added() -> None:
    """A changed word reads as what was there, then what is there."""
    assert changes("the cat sat", "the dog sat") == [
        Change("equal", "the ", "the "),
        Change("delete", "cat ", ""),
        Change("insert", "", "dog "),
        Change("equal", "sat", "sat"),
    ]


@given(ANY_TEXT, ANY_TEXT)
def test_changes_lose_nothing(left: str, right: str) -> None:
    """The runs of each side join to that side's text: nothing is hidden from who reads the difference."""
    found = changes(left, right)
    assert "".join(change.left for change in found) == joined(left)
    assert "".join(change.right for change in found) == joined(right)
    assert all(change.left == change.right for change in found if change.tag == "equal")
