"""What is no URL is known for none, whatever is wrong with it."""

import pytest

from gateway.cli.urls import http_url


@pytest.mark.parametrize(
    ("written", "parts"),
    [
        ("http://h", ("http", "h", None, "")),
        ("https://h:8443/base/", ("https", "h", 8443, "/base/")),
        ("http://[::1]:80", ("http", "::1", 80, "")),
    ],
)
def test_a_url_is_taken_apart(written: str, parts: tuple[object, ...]) -> None:
    """With its port as a number."""
    found = http_url(written)
    assert found is not None
    assert (found.scheme, found.hostname, found.port, found.path) == parts


@pytest.mark.parametrize(
    "written",
    [
        "",
        "h:1",
        "ftp://h",
        "http://",
        "http://[::1",
        "http://h:99999",
        "http://h:x",
        "http://h:0",
        "http://h h:1",
        "http://h\x00:1",
    ],
)
def test_anything_else_is_none(written: str) -> None:
    """Never an error, and never one that shows when something is sent."""
    assert http_url(written) is None
