"""A whole server-sent-event stream, split into events. The bytes are all there; nothing here waits for more.

Owns the framing rules of WHATWG HTML §9.2 ("Server-sent events") for a captured stream. Must not look inside the
data. Called by the assembler; the live relay counts events beside the path and does not use this.
"""

import re
from typing import Final, NamedTuple

_BOM: Final = b"\xef\xbb\xbf"
_FIELD: Final = re.compile(rb"(?:data|event|id|retry)\s*(?::|$)|:")


class Event(NamedTuple):
    """One event: its type (empty = "message") and its data lines joined by LF."""

    name: bytes
    data: bytes


class Stream(NamedTuple):
    """All events of a stream, and what stood after the last blank line: an event that never ended."""

    events: list[Event]
    tail: Event | None


def looks_like_stream(raw: bytes) -> bool:
    """Whether the bytes start like an event stream and not like a JSON body."""
    head = raw.removeprefix(_BOM).lstrip()
    return head[:1] not in {b"{", b"[", b'"', b""} and _FIELD.match(head) is not None


def split_events(raw: bytes) -> Stream:
    """Split a stream into its events. LF, CR and CRLF end lines; a block without data is no event."""
    raw = raw.removeprefix(_BOM)
    if b"\r" in raw:
        raw = raw.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    *blocks, last = raw.split(b"\n\n")
    events = [event for block in blocks if (event := _event(block)) is not None]
    return Stream(events, _event(last))


def _event(block: bytes) -> Event | None:
    if block.startswith(b"data:") and b"\n" not in block:  # nearly every event of every runtime
        return Event(b"", block[6:] if block.startswith(b"data: ") else block[5:])
    name = b""
    data: list[bytes] = []
    for line in block.split(b"\n"):
        field, colon, value = line.partition(b":")
        if not colon and not line:
            continue
        value = value.removeprefix(b" ")
        if field == b"data":
            data.append(value)
        elif field == b"event":
            name = value
    return Event(name, b"\n".join(data)) if data else None
