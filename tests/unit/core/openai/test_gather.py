"""Slices are bounded, sizes are bytes, marks are structure, digests are stable."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.openai import gather


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_size_is_utf8(text: str) -> None:
    """Bytes, because a byte-level tokenizer never gives more tokens than those."""
    assert gather.size_bytes([text, "a"]) == len(text.encode()) + 1


@given(st.integers(0, 60_000))
def test_clip_is_bounded_and_keeps_both_ends(length: int) -> None:
    """A short text is itself; a long one keeps its head and its tail."""
    text = "h" * (length // 2) + "t" * (length - length // 2)
    clipped = gather.clip(text)
    assert len(clipped) <= gather.HEAD_CHARS + gather.TAIL_CHARS + 1
    assert clipped[:1] == text[:1] and clipped[-1:] == text[-1:]


def test_join_is_bounded() -> None:
    """Any number of system messages stays within the head's length."""
    assert gather.join([]) == ""
    assert gather.join(["a"]) == "a"
    assert gather.join(["a", "b"]) == "a\nb"
    assert len(gather.join(["x" * 20_000] * 3)) == gather.HEAD_CHARS


@pytest.mark.parametrize(
    ("text", "fence", "table", "cited"),
    [
        ("plain text", False, False, False),
        ("```py\nx\n```", True, False, False),
        ("a `quoted` word", False, False, False),
        ("|a|b|\n|---|---|\n|1|2|", False, True, False),
        ("a | b\n--- | ---\n1 | 2", False, True, False),
        ("a || b | c", False, False, False),
        ("as shown [1] and [23]", False, False, True),
        ("see [doc 4], [Source 2]", False, False, True),
        ("x[i] = [a, b]", False, False, False),
        ("结论【3】", False, False, True),
    ],
)
def test_marks(text: str, fence: bool, table: bool, cited: bool) -> None:
    """Fences, separator rows and numbered references; ordinary brackets, pipes and backticks are none."""
    assert gather.marks(text) == (fence, table, cited)


def test_digest_depends_on_what_it_should() -> None:
    """Model, system and first message tell conversations apart; the digest is the same in every process."""
    base = {"model": "m", "system": "s", "first": "f"}
    digest, named = gather.conversation_of(None, None, None, **base)
    assert not named
    assert digest.hex() == "f057ee501a55d34ce6f186bacdf72422"
    for field in base:
        assert gather.conversation_of(None, None, None, **{**base, field: "other"})[0] != digest


def test_an_explicit_hint_is_used_alone() -> None:
    """With a hint the messages do not matter, and odd hints do not count."""
    first = gather.conversation_of(b"abc", "k", "u", model="m", system="", first="x")
    assert first == gather.conversation_of(b"abc", None, None, model="n", system="y", first="z")
    assert first[1]
    for odd in ("", None, 3, ["k"]):
        assert not gather.conversation_of(b"", odd, odd, model="m", system="", first="x")[1]
