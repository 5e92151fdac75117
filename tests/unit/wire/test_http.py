"""Byte-level values: status lines, the Date field, what Connection names."""

from gateway.wire.http import DateHeader, named_by_connection, status_line


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
