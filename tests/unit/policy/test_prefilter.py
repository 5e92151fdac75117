"""What a text must contain: never more than a match really contains."""

import pytest
import re2
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.policy.patterns import PatternSet
from gateway.policy.prefilter import needed
from gateway.policy.schema.pattern import quiet_options


@pytest.mark.parametrize(
    ("pattern", "character"),
    [
        ("```", "`"),
        (r"\b(def|class|func|fn) \w+\(", "("),
        (r"(?i)select .* from \w+;", ";"),
        (r"a\{1", "{"),
        ("x:+y", ":"),
        (r"[a-z:]+=\d", "="),
        (r"\p{Greek}-x", "-"),
        (r"\x{28}/", "/"),
        ("[]:]#", "#"),
        ("[[:alpha:]#]%", "%"),
        ("(a|b)!", "!"),
    ],
)
def test_a_character_that_every_match_has(pattern: str, character: str) -> None:
    """Punctuation on the top level that is neither optional nor one of several ways."""
    assert needed([pattern]) == character


@pytest.mark.parametrize(
    "pattern",
    [
        *("translate", "(?i)only from the documents", "", ".*", "a b"),
        *("`?", "`*", "`{0,3}", "`{0}x", "a|`", "(`)?", "(`|b)", "[`]"),
        *("`(?s)?", "`(?i){0}", "(?i)(?s)`"),
        *("\\Q`*\\E", "x{`", "a{,3}`", r"\d", r"\101"),
    ],
)
def test_where_it_is_not_plain_to_see(pattern: str) -> None:
    """Optional, one of several ways, inside a group or class, or spelt in a way that is not read here: searched for."""
    assert needed([pattern]) == ""


def test_one_for_each_pattern_or_none_at_all() -> None:
    """A set is left out only if none of its patterns can match."""
    assert needed(["```", r"f\(", "~`"]) == "`(~"
    assert needed(["```", "translate"]) == ""


PIECES = st.sampled_from(
    [
        *("a", "b", " ", "`", ":", "-", "(", ")", "[", "]", "{", "}", "|", "?", "*", "+", ".", "^", "$", "0", ",", "1"),
        *(
            r"\(",
            r"\)",
            r"\{",
            r"\}",
            r"\|",
            r"\\",
            r"\w",
            r"\b",
            r"\x{28}",
            r"\p{L}",
            "(?:",
            "(?i)",
            "(?s)",
            "(?P<n>",
            "[^",
        ),
        *(
            "[:alpha:]",
            r"\]",
            "{0}",
            "{1,}",
            "{0,1}",
            "{2}",
            r"\Q",
            r"\E",
            r"\x28",
            r"\050",
            r"\pL",
            r"\z",
            "?:",
            "_",
            "#",
            "\n",
        ),
    ]
)
TEXTS = st.text(alphabet="ab `:-()[]{}|?*+.,01\\w_#\n", max_size=12)


@settings(max_examples=1_500)
@given(
    st.lists(st.lists(PIECES, min_size=1, max_size=8).map("".join), min_size=1, max_size=3), st.lists(TEXTS, max_size=8)
)
def test_nothing_that_matches_is_left_out(patterns: list[str], texts: list[str]) -> None:
    """The same indexes as the automaton alone finds, for whatever patterns RE2 takes."""
    alone = re2.Set.SearchSet(quiet_options())
    try:
        for pattern in patterns:
            alone.Add(pattern)
    except re2.error:
        return
    alone.Compile()
    subject = PatternSet(patterns)
    for text in texts:
        assert subject.search(text) == sorted(alone.Match(text) or [])
