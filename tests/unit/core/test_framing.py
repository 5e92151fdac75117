"""Where events end and what data they carry."""

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.framing import after_first_line, blocks_backwards, event_ends, payload

_STREAMS = st.lists(st.sampled_from([b"\n", b"\r", b"\r\n", b"data: x", b"data", b": c", b"event: e", b"z"])).map(
    b"".join
)


@pytest.mark.parametrize(
    ("block", "data"),
    [
        (b"data: x\n\n", b"x"),
        (b"data:x\n\n", b"x"),
        (b"data:  x\n\n", b" x"),
        (b"data: x\r\n\r\n", b"x"),
        (b"data: x\r\r", b"x"),
        (b"data: x", b"x"),
        (b"data: a\ndata: b\n\n", b"a\nb"),
        (b"data: a\rdata: b\r\r", b"a\nb"),
        (b"event: e\ndata: x\nid: 3\n\n", b"x"),
        (b": comment\ndata: x\n\n", b"x"),
        (b"data\n\n", b""),
        (b"data:\n\n", b""),
        (b": comment\n\n", None),
        (b"event: ping\n\n", None),
        (b"datax: y\n\n", None),
        (b" data: x\n\n", None),
        (b"\n\n", None),
        (b"", None),
    ],
)
def test_payload(block: bytes, data: bytes | None) -> None:
    """At most one space is taken off (B07), comments carry nothing (B08), several data lines are one text."""
    assert payload(block) == data


@pytest.mark.parametrize(
    ("data", "ends"),
    [
        (b"a\n\nb\n\n", [3, 6]),
        (b"a\r\n\r\nb", [5]),
        (b"a\r\rb\r\r", [3, 6]),
        (b"a\r\nb\n\n", [6]),
        (b"a\n\r\nb", [4]),
        (b"a\r\n\nb", [4]),
        (b"a\r\n", []),
        (b"", []),
    ],
)
def test_event_ends(data: bytes, ends: list[int]) -> None:
    """LF, CR and CRLF end lines (B05); CRLF is one line end, never two."""
    assert event_ends(data) == ends


@given(_STREAMS)
def test_backwards_is_forwards_reversed(data: bytes) -> None:
    """Looking from the end finds the same payloads in the opposite order."""
    ends = [0, *event_ends(data), len(data)]
    forwards = [payload(data[start:end]) for start, end in pairwise(ends)]
    backwards = [payload(block) for block in blocks_backwards(data)]
    assert [found for found in backwards if found is not None][::-1] == [
        found for found in forwards if found is not None
    ]


@given(_STREAMS)
def test_event_ends_are_those_of_blank_lines(data: bytes) -> None:
    """With line feeds alone: each is the end of two of them, and none is missed or counted twice."""
    data = data.replace(b"\r", b"")
    assert event_ends(data) == [found.end() for found in re.finditer(rb"\n\n", data)]


@given(_STREAMS)
def test_the_first_line_ends_where_the_second_begins(data: bytes) -> None:
    """LF, CR and CRLF alike; without any there is no second line."""
    found = re.search(rb"\r\n|\r|\n", data)
    assert after_first_line(data) == (found.end() if found is not None else -1)
