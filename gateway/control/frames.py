"""Frames on the unix socket between control and workers: 4 bytes of big-endian length, then one msgpack message.

Owns the wire form only; knows neither sockets nor what the messages mean. Used by ``control.link``.
"""

import struct

import msgspec

from gateway.model.messages import ToControl, ToWorker

HEAD_BYTES = 4
# A batch of outcomes with captures stays far below; a length above it is a peer that does not speak this protocol.
FRAME_MOST_BYTES = 64 * 1024 * 1024

_HEAD = struct.Struct(">I")
_ENCODER = msgspec.msgpack.Encoder()
_TO_CONTROL = msgspec.msgpack.Decoder(ToControl)


class FrameError(Exception):
    """The peer sent something that is no frame of this protocol; the connection cannot be trusted further."""


def encode(message: ToWorker | ToControl) -> bytes:
    """One whole frame."""
    body = _ENCODER.encode(message)
    return _HEAD.pack(len(body)) + body


def body_length(head: bytes) -> int:
    """Length in bytes of the body that follows ``head``. Raises ``FrameError`` above ``FRAME_MOST_BYTES``."""
    length: int = _HEAD.unpack(head)[0]
    if length > FRAME_MOST_BYTES:
        raise FrameError(f"frame of {length} bytes is over the limit of {FRAME_MOST_BYTES}")
    return length


def decode_to_control(body: bytes) -> ToControl:
    """A worker's message. Raises ``FrameError`` for anything else."""
    try:
        return _TO_CONTROL.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise FrameError(f"not a message of a worker: {error}") from error
