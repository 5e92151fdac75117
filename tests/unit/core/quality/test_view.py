"""The view of one choice: bounded, and honest about what is missing."""

from gateway.core.assemble import Answer, Choice
from gateway.core.quality.asked import Asked
from gateway.core.quality.view import TAIL_CHARS, TEXT_CHARS, view_of


def test_long_text_keeps_its_beginning_and_its_end() -> None:
    """Checks read a bounded part; loops are looked for at the end."""
    choice = Choice(text="a" * TEXT_CHARS + "b" * TAIL_CHARS, finish_reason="stop")
    view = view_of(Asked(), Answer(choices=(choice,)), choice)
    assert (len(view.text), len(view.tail)) == (TEXT_CHARS, TAIL_CHARS)
    assert view.over_cap
    assert {"b"} == set(view.tail)


def test_cut_for_every_reason() -> None:
    """The token limit, a lost stream and an error in it all mean that an open end is no fault."""
    limit = Choice(text="a", finish_reason="length")
    assert view_of(Asked(), Answer(choices=(limit,)), limit).cut
    open_end = Choice(text="a")
    assert view_of(Asked(), Answer(choices=(open_end,), streamed=True), open_end).cut
    whole = Choice(text="a", finish_reason="stop")
    assert not view_of(Asked(), Answer(choices=(whole,), streamed=True), whole).cut


def test_code_is_not_prose() -> None:
    """The prose of a fenced answer is blank where the code is."""
    choice = Choice(text="x\n```py\ncode\n```\n")
    view = view_of(Asked(), Answer(), choice)
    assert "code" not in view.prose
    assert view.letters == {"latin": 1.0}
