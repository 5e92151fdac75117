"""Pattern sets and wildcard names."""

import re2
from hypothesis import given
from hypothesis import strategies as st

from gateway.policy.patterns import KNOWN_MOST, Remembering, pattern_set, wildcards


def test_a_set_says_which_patterns_match_anywhere() -> None:
    """In one pass, ascending, also for text outside ASCII."""
    found = pattern_set(["b+", "^a", "(?i)ÄÖ"])
    assert found is not None
    assert found.search("abba äö") == [0, 1, 2]
    assert found.search("") == []
    assert pattern_set([]) is None


def test_many_patterns_over_long_text_stay_linear_and_right() -> None:
    """A set that would explode as an automaton still answers."""
    found = pattern_set([rf"(x+x+)+y{n}" for n in range(50)])
    assert found is not None
    assert found.search("x" * 20_000) == []
    assert found.search("x" * 20_000 + "y7") == [7]


class Counting:
    """Says what it is told to, and counts how often it was asked."""

    def __init__(self) -> None:
        self.asked = 0

    def search(self, text: str) -> list[int]:
        self.asked += 1
        return [len(text)]


def test_a_text_that_comes_again_is_searched_once() -> None:
    """And a full memory begins anew; what it says stays true."""
    inner = Counting()
    subject = Remembering(inner)
    assert [subject.search("abc"), subject.search("abc"), subject.search("abcd")] == [[3], [3], [4]]
    assert inner.asked == 2
    for number in range(KNOWN_MOST):
        assert subject.search(f"{number:05}") == [5]
    assert subject.search("abc") == [3]
    assert inner.asked == 2 + KNOWN_MOST + 1


@given(st.lists(st.sampled_from(["a", "ab", "ba", "", "xé"]), max_size=20))
def test_remembering_changes_no_answer(texts: list[str]) -> None:
    """Whatever came before."""
    plain, again = pattern_set(["a", "b$", "é"]), pattern_set(["a", "b$", "é"], again=True)
    assert plain is not None and again is not None
    assert [again.search(text) for text in texts] == [plain.search(text) for text in texts]


@given(st.text(max_size=12), st.text(max_size=12))
def test_a_name_without_wildcards_matches_itself_alone(pattern: str, name: str) -> None:
    """Signs that mean something in patterns mean themselves in names."""
    plain = pattern.replace("*", "").replace("?", "")
    matches = re2.compile(wildcards([plain])).fullmatch(name) is not None
    if plain == name:
        assert matches
    elif plain.isascii() and name.isascii():
        assert matches == (plain.lower() == name.lower())


def test_wildcards() -> None:
    """``*`` is any run of characters, ``?`` exactly one; case does not count; the whole name counts."""
    found = re2.compile(wildcards(["pay_*", "*.write", "run?"]))
    assert all(found.fullmatch(name) for name in ("pay_", "PAY_me", "disk.write", "runx", "pay_\n"))
    assert not any(found.fullmatch(name) for name in ("xpay_", "disk.writes", "run", "runxx"))
