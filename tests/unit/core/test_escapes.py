"""Escapes read for what they mean, and every part of the result traced to where it came from."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.escapes import View, merged


def levels(text: bytes) -> list[View]:
    """The text and everything it reads as."""
    views: list[View] = [View(text)]
    while (deeper := views[-1].unescaped()) is not None:
        views.append(deeper)
    return views


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (rb"a\u0041b", b"aAb"),
        (rb"a\/b", b"a/b"),
        (rb"\"\\\n\t\r\b\f", b'"\\\n\t\r\x08\x0c'),
        (rb"\u20ac", "€".encode()),
        (rb"\ud83d\ude00", "😀".encode()),
        (rb"\ud83d alone", b"\xed\xa0\xbd alone"),
        (rb"\x and \u12", rb"\x and \u12"),
    ],
)
def test_an_escape_is_what_it_means(raw: bytes, text: bytes) -> None:
    """Of JSON, and nothing else."""
    view = View(raw).unescaped()
    assert (view.text if view is not None else raw) == text


def test_an_escape_is_never_divided() -> None:
    """A part that ends in the character of an escape ends after the escape."""
    (raw, view) = levels(rb"ab\u0041cd")
    assert view.text == b"abAcd"
    assert view.origin(2, 3) == (2, 8)
    assert view.origin(1, 4) == (1, 9)
    assert view.origin(0, 2) == (0, 2)
    assert view.origin(3, 5) == (8, 10)
    assert raw.origin(3, 5) == (3, 5)


@given(st.text(max_size=30), st.text(min_size=1, max_size=10), st.text(max_size=30), st.integers(1, 3), st.booleans())
def test_a_part_is_found_at_any_depth(before: str, part: str, after: str, depth: int, ascii_: bool) -> None:
    """What stands in JSON in a string in JSON is where its origin says, and nothing more is."""
    wrapped = [before, part, after]
    for _ in range(depth):
        wrapped = [json.dumps(one, ensure_ascii=ascii_)[1:-1] for one in wrapped]
    pieces = [one.encode("utf-8", "surrogatepass") for one in wrapped]
    plain = [one.encode("utf-8", "surrogatepass") for one in (before, part, after)]
    view = View(b"".join(pieces))
    for _ in range(depth):
        view = view.unescaped() or view
    if view.text == b"".join(plain):  # a text that reads as escapes itself goes deeper than it was wrapped
        start = len(plain[0])
        assert view.origin(start, start + len(plain[1])) == (len(pieces[0]), len(pieces[0]) + len(pieces[1]))


def test_spans_that_touch_are_one() -> None:
    """In order."""
    assert merged([(5, 7), (0, 2), (2, 3), (6, 9), (20, 21)]) == [(0, 3), (5, 9), (20, 21)]
    assert merged([]) == []
