"""What runs in a scorer process: texts in, small values out. Imported there and called by name; holds no state.

Texts live here and in the workers' buffers only; nothing of them is in what goes back.
"""

import os

import msgspec

from gateway.control.orphans import end_with_parent
from gateway.core.assemble import JsonProblemError, assemble, parse_envelope
from gateway.core.assemble.parts import as_object
from gateway.core.consequence import Trace, trace
from gateway.core.quality import Inspection, inspect_assembled, read_request

NICE = 10  # checks are late work: they yield to everything that serves requests


class Scores(msgspec.Struct, frozen=True, array_like=True):
    """What one exchange showed."""

    inspection: Inspection
    trace: Trace


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(list[Scores])


def start() -> None:
    """Process initialiser."""
    end_with_parent()
    os.nice(NICE)


def score_batch(texts: list[tuple[bytes, bytes]]) -> bytes:
    """Inspect and trace each (request body, answer); msgpack for ``decode``."""
    return _ENCODER.encode([_score(request, answer) for request, answer in texts])


def decode(data: bytes) -> list[Scores]:
    """What ``score_batch`` sent back."""
    return _DECODER.decode(data)


def _score(request: bytes, answer: bytes) -> Scores:
    try:
        body = as_object(parse_envelope(request))
    except JsonProblemError:
        body = {}
    assembled = assemble(body, answer)
    return Scores(inspect_assembled(read_request(body), assembled), trace(body, assembled))
