"""Splitting a captured event stream: every legal framing gives the same events."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.assemble.events import Event, looks_like_stream, split_events


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_all_line_ends_are_equal(end: bytes) -> None:
    """LF, CRLF and CR frame the same events."""
    raw = end.join([b"event: x", b"data: 1", b"", b": note", b"", b"data:2", b"", b""])
    assert [Event(b"x", b"1"), Event(b"", b"2")] == split_events(raw).events


def test_data_lines_join_and_one_space_is_stripped() -> None:
    """Several data lines are one text with LF between; only one space after the colon goes."""
    assert [Event(b"", b" a\nb\n")] == split_events(b"data:  a\ndata: b\ndata\n\n").events


def test_blocks_without_data_are_no_events() -> None:
    """Comments, ids and retry alone are nothing."""
    assert split_events(b": PROCESSING\n\nid: 1\nretry: 5\n\nevent: ping\n\n\n\n").events == []


def test_what_follows_the_last_blank_line_is_the_tail() -> None:
    """An event without its blank line is kept apart."""
    events, tail = split_events(b"data: 1\n\ndata: 2\n")
    assert ([Event(b"", b"1")], Event(b"", b"2")) == (events, tail)
    assert split_events(b"data: 1\n\n").tail is None


def test_byte_order_mark_is_ignored() -> None:
    """A BOM before the first field does not hide it."""
    assert [Event(b"", b"1")] == split_events(b"\xef\xbb\xbfdata: 1\n\n").events


@pytest.mark.parametrize(
    "raw", [b"data: {}\n\n", b": hi\n\ndata: x", b"event: a\n", b"\n\ndata:1", b"\xef\xbb\xbfid: 3\n"]
)
def test_streams_are_recognised(raw: bytes) -> None:
    """Whatever field comes first, it is a stream."""
    assert looks_like_stream(raw)


@pytest.mark.parametrize("raw", [b'{"data": 1}', b"  [1]", b'"data: x"', b"", b"<html>", b"database error"])
def test_other_bytes_are_no_stream(raw: bytes) -> None:
    """JSON, HTML and plain words are not taken for events."""
    assert not looks_like_stream(raw)


@given(
    st.lists(
        st.text(alphabet=st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), min_size=1), max_size=8
    )
)
def test_events_come_back_as_they_were_framed(payloads: list[str]) -> None:
    """Any texts without line ends survive framing, in order."""
    raw = b"".join(b"data: " + text.encode() + b"\n\n" for text in payloads)
    assert [text.encode() for text in payloads] == [event.data for event in split_events(raw).events]
