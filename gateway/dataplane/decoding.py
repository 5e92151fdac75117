"""Request bodies without their coding, decoded within the body limit (RFC 9110 §8.4, §15.5.16)."""

import zlib
from typing import Final

from gateway.dataplane.known import IDENTITY
from gateway.errors import ApiError

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


def plain(body: bytes, coding: bytes, most: int) -> bytes:
    """The body as it is read and forwarded. A byte order mark in front goes: editors put it there, JSON's rules let it
    be passed over (RFC 8259 §8.1), and the runtimes do."""
    if coding != IDENTITY:
        body = decoded(body, coding, most)
    return body.removeprefix(_BYTE_ORDER_MARK)


def decoded(body: bytes, coding: bytes, most: int) -> bytes:
    """The plain body. 415 for a coding that is not supported, 413 beyond ``most`` bytes, 400 for a broken stream."""
    if coding not in (b"gzip", b"x-gzip", b"deflate"):
        raise ApiError(
            415,
            "unsupported_encoding",
            "Request bodies may be gzip, deflate or identity.",
            headers=(("Accept-Encoding", "gzip, deflate, identity"),),
        )
    decoder = zlib.decompressobj(zlib.MAX_WBITS | 32 if coding != b"deflate" else zlib.MAX_WBITS)
    try:
        plain = decoder.decompress(body, most + 1)
    except zlib.error:
        raise ApiError(400, "invalid_encoding", f"The body is not valid {coding.decode('latin-1')}.") from None
    if len(plain) > most:
        raise ApiError(413, "request_too_large", f"The decoded body is larger than {most} bytes.")
    if not decoder.eof:
        raise ApiError(400, "invalid_encoding", "The compressed body ends early.")
    if decoder.unused_data:  # dropped, a part of the request would be missing and nobody would know
        raise ApiError(400, "invalid_encoding", "The compressed body goes on behind its end; send it as one stream.")
    return plain
