"""Which scored tokens are the answer's."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.core.comparison.likelihood import TokenScores
from gateway.core.comparison.spelling import Token, find_answer, shared_length, trust_tail


def tokens(*texts: str) -> list[Token]:
    return [Token(text, -float(number), 100 + number) for number, text in enumerate(texts)]


def test_the_last_occurrence_is_the_answer() -> None:
    """The prompt may quote the answer; what counts is the end."""
    found = find_answer(tokens("<s>", "Paris", "?", "\n", "Paris"), "Paris")
    assert found == TokenScores((b"Paris",), (-4.0,), (104,))


def test_a_template_may_trim_and_close() -> None:
    """White space around the answer may be gone, and the message may be closed after it."""
    found = find_answer(tokens("user", "Hi", "assistant\n", "It", " is", "<|im_end|>"), " It is\n")
    assert found is not None and found.pieces == (b"It", b" is")


def test_a_token_over_the_border_is_left_out() -> None:
    """A line break merged with the first word belongs to neither."""
    found = find_answer(tokens("assistant", "\nIt", " is", " so"), "It is so")
    assert found is not None and found.pieces == (b" is", b" so")


def test_what_is_not_there_is_not_found() -> None:
    """Another text, or a text that lies inside of one token only."""
    assert find_answer(tokens("a", "b"), "c") is None
    assert find_answer(tokens("xabcx"), "abc") is None


def test_fragments_are_trusted_where_the_place_is_known() -> None:
    """An emoji cut into three tokens spells U+FFFD thrice; the rest must fit, and a closing mark may follow."""
    tail = tokens("Hi", " \ufffd", "\ufffd", "\ufffd", "!", "<|im_end|>")
    found = trust_tail(tail, "Hi 😀!")
    assert found is not None and found.ids == (100, 101, 102, 103, 104)
    assert trust_tail(tail, "Hi 😀 you!") is None
    assert trust_tail(tail, "Ho 😀!") is None
    assert trust_tail([], "Hi") is None


def test_unknown_numbers_are_dropped() -> None:
    """One token without its number makes the numbers useless for alignment."""
    found = find_answer([Token("a", -1.0, 7), Token("b", -1.0, -1)], "ab")
    assert found is not None and found.ids == ()


@given(st.lists(st.text(min_size=1, max_size=4), min_size=1, max_size=12), st.integers(0, 11))
def test_any_cut_of_an_answer_is_found(pieces: list[str], prompt: int) -> None:
    """However prompt and answer are cut, the tokens found spell the answer or its trimmed form, or begin later."""
    split = min(prompt, len(pieces) - 1)
    answer = "".join(pieces[split:])
    found = find_answer(tokens(*pieces), answer)
    if found is not None:
        assert answer.encode("utf-8", "replace").strip().endswith(b"".join(found.pieces).strip())


def test_shared_length() -> None:
    """The beginning that two sequences share, also when one ends first."""
    assert [shared_length("abc", "abd"), shared_length("ab", "abc"), shared_length("", "a")] == [2, 2, 0]
