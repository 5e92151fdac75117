"""Byte-level values: status lines, the Date field, what Connection names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.wire.http import DateHeader, chunk_at, named_by_connection, status_line


def test_status_lines_of_known_and_unknown_codes() -> None:
    """Every three-digit status has a line."""
    assert status_line(200) == b"HTTP/1.1 200 OK\r\n"
    assert status_line(499) == b"HTTP/1.1 499 Status\r\n"


def test_the_date_changes_with_the_second() -> None:
    """IMF-fixdate (RFC 9110 §5.6.7), rendered once a second."""
    date = DateHeader()
    assert date.at(784111777.2) == b"Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
    assert date.at(784111777.9) is date.at(784111777.1)
    assert date.at(784111778.0) == b"Date: Sun, 06 Nov 1994 08:49:38 GMT\r\n"


def test_fields_named_by_connection() -> None:
    """Lower-case names over all Connection fields, without the options."""
    headers = [(b"connection", b"keep-alive, X-One"), (b"a", b"b"), (b"connection", b"close, x-two,")]
    assert named_by_connection(headers) == {b"x-one", b"x-two"}


@given(st.binary(min_size=1, max_size=5_000))
def test_one_whole_chunk_is_found(payload: bytes) -> None:
    """Where its payload begins, for any payload; one byte more or less, and it is not one chunk."""
    chunk = b"%x\r\n%b\r\n" % (len(payload), payload)
    assert chunk[chunk_at(chunk) : -2] == payload
    assert chunk_at(chunk[:-1]) == -1
    assert chunk_at(chunk + b"\n") == -1


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\r\n",
        b"1",
        b"5\r",
        b"0\r\n\r\n",
        b"05\r\nhello\r\n",
        b"A\r\n0123456789\r\n",
        b"5;x\r\nhello\r\n",
        b"5\n\nhello\r\n",
        b"5\r\rhello\r\n",
        b"5\r\nhello\n\n",
        b"5\r\nhello\r\r",
        b"10000\r\n" + b"x" * 65_536 + b"\r\n",
    ],
)
def test_what_we_would_frame_otherwise_is_no_chunk_of_ours(data: bytes) -> None:
    """The last chunk, leading zeros, upper case, extensions, other line ends, more than fits four digits."""
    assert chunk_at(data) == -1
