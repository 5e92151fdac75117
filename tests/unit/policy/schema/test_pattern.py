"""Patterns are RE2 or refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from gateway.policy.patterns import PatternSet
from gateway.policy.schema.pattern import Pattern

READ = TypeAdapter(Pattern)


@pytest.mark.parametrize(
    ("written", "said"),
    [("(?=x)", "not a valid RE2 pattern"), ("(a", "missing )"), (r"(a)\1", "RE2"), ("a" * 2001, "longer than 2000")],
)
def test_what_re2_cannot_do_is_refused_with_its_reason(written: str, said: str) -> None:
    """Look-around, back-references and broken patterns are found when the policy is read."""
    with pytest.raises(ValidationError, match=said.replace("(", r"\(").replace(")", r"\)")):
        READ.validate_python(written)


@pytest.mark.parametrize("written", ["", ".*", "a?", r"\d*", "(?i)", "^", "x|"])
def test_what_matches_every_text_is_refused(written: str) -> None:
    """Every request would have the task, every answer would be a refusal, every place would be redacted."""
    with pytest.raises(ValidationError, match="matches every text"):
        READ.validate_python(written)


@pytest.mark.parametrize("written", ["^$", r"^\s*$", ".+", "(?s).", r"[^\x01]*x"])
def test_what_misses_some_texts_is_taken(written: str) -> None:
    """No text at all is a kind of text, and any text is another."""
    assert READ.validate_python(written) == written


@given(st.text(max_size=20))
def test_what_is_accepted_compiles_into_a_set(written: str) -> None:
    """A policy that loads never fails later for a pattern."""
    try:
        pattern = READ.validate_python(written)
    except ValidationError:
        return
    assert PatternSet([pattern]).search("some text") in ([], [0])
