"""What every answer carries besides its content, and the bytes of an event.

Owns the envelope shared by the four generating APIs. Pure. The API modules use it.
"""

from collections.abc import Iterable, Iterator

import msgspec
import orjson

DONE = b"data: [DONE]\n\n"


class Frame(msgspec.Struct, frozen=True):
    """The envelope of one answer. ``id`` is without the API's prefix; ``done``: end a stream with [DONE]."""

    id: str
    created: int
    model: str
    fingerprint: str
    cached_tokens: int = 0
    done: bool = True


def data_event(payload: object) -> bytes:
    """An unnamed server-sent event."""
    return b"data: " + orjson.dumps(payload) + b"\n\n"


def named_event(name: str, payload: object) -> bytes:
    """A named server-sent event, as the responses and messages APIs send them."""
    return b"event: " + name.encode() + b"\ndata: " + orjson.dumps(payload) + b"\n\n"


def interleaved(streams: Iterable[Iterator[bytes]]) -> Iterator[bytes]:
    """One item a step: what every stream that still runs has for that step, joined."""
    running = list(streams)
    if len(running) == 1:
        yield from running[0]
        return
    while running:
        step, still = b"", []
        for stream in running:
            item = next(stream, None)
            if item is not None:
                step += item
                still.append(stream)
        if step:
            yield step
        running = still


def with_tail(steps: Iterator[bytes], tail: bytes) -> Iterator[bytes]:
    """The steps, with ``tail`` joined to the last, as it leaves the engine in the same iteration."""
    held = next(steps, b"")
    for step in steps:
        yield held
        held = step
    yield held + tail
