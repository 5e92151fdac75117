"""Which language an answer is in, as far as a flip can be seen."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.comparison.language import language_of, same_language


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("The capital of France is Paris and it is the largest city in the country.", "en"),
        ("La capitale de la France est Paris et c'est la plus grande ville du pays, dans le nord.", "fr"),
        ("Der Hund ist nicht auf dem Tisch und die Katze ist im Haus.", "de"),
        ("La ciudad de Madrid es la capital de España y la más grande del país, con los museos.", "es"),
        ("巴黎是法国的首都，也是最大的城市。", "han"),
        ("東京は日本の首都です。とても大きい。", "kana"),
        ("Париж является столицей Франции.", "cyrillic"),
        ("def run(x): return x + yy * zz", "latin"),
        ("Paris", ""),
        ("", ""),
    ],
)
def test_languages_are_told_where_they_can_be(text: str, language: str) -> None:
    """A sentence tells its language, code only its script, a word nothing."""
    assert language_of(text) == language


def test_a_mixed_text_has_no_language() -> None:
    """Chinese prose about English product names must not count as a flip of the model."""
    assert language_of("使用 PostgreSQL 的 transaction isolation 可以解决这个问题") == ""


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ("en", "en", True),
        ("en", "han", False),
        ("en", "fr", False),
        ("latin", "fr", True),
        ("latin", "han", False),
        ("", "han", True),
        ("cyrillic", "latin", False),
    ],
)
def test_only_a_clear_change_is_a_flip(left: str, right: str, same: bool) -> None:
    """Unknown agrees with everything, unnamed Latin with every Latin language."""
    assert same_language(left, right) is same
    assert same_language(right, left) is same


@given(st.text(max_size=200))
def test_a_text_has_its_own_language(text: str) -> None:
    """No text is a flip against itself, and none makes the reading fail."""
    assert same_language(language_of(text), language_of(text))
