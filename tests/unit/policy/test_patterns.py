"""Pattern sets and wildcard names."""

import re2
from hypothesis import given
from hypothesis import strategies as st

from gateway.policy.patterns import pattern_set, wildcards


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
