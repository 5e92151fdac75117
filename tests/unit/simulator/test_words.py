"""The simulator's tokenizer."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.simulator.words import text_of, token_ids


@given(st.text(), st.integers(1, 8))
def test_tokens_give_the_text_back(text: str, ratio: int) -> None:
    """Ids decode to exactly the text, and there are as many as the ratio says."""
    ids = token_ids(text, ratio)
    assert text_of(ids) == text
    assert len(ids) == -(-len(text.encode()) // ratio)


@given(st.lists(st.integers(-5, 2**70), max_size=20))
def test_any_ids_give_some_text(ids: list[int]) -> None:
    """Ids that this tokenizer never gives are no error."""
    assert isinstance(text_of(ids), str)
