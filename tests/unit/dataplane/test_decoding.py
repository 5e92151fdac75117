"""Compressed bodies: decoded within the limit, or refused for what they are."""

import gzip
import zlib

import pytest

from gateway.dataplane.decoding import decoded
from gateway.errors import ApiError


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        (b"gzip", gzip.compress(b"hello", mtime=0)),
        (b"x-gzip", gzip.compress(b"hello", mtime=0)),
        (b"deflate", zlib.compress(b"hello")),
    ],
)
def test_supported_codings(coding: bytes, body: bytes) -> None:
    """gzip and deflate come back plain."""
    assert decoded(body, coding, 100) == b"hello"


@pytest.mark.parametrize(
    ("coding", "body", "status"),
    [
        (b"br", b"x", 415),
        (b"gzip", b"not gzip", 400),
        (b"gzip", gzip.compress(b"hello", mtime=0)[:-4], 400),
        (b"gzip", gzip.compress(b"hel", mtime=0) + gzip.compress(b"lo", mtime=0), 400),
        (b"deflate", zlib.compress(b"hello") + b"more", 400),
        (b"gzip", gzip.compress(b"x" * 10_000_000), 413),
    ],
)
def test_refusals(coding: bytes, body: bytes, status: int) -> None:
    """Unknown, broken, cut off, with more behind the end, or a bomb: the right status, and never more than the limit in
    memory."""
    with pytest.raises(ApiError) as refused:
        decoded(body, coding, 1000)
    assert refused.value.status == status
