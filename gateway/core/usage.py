"""Taking usage events out of a relayed stream, where the gateway asked for them and the client did not."""

import re
from typing import Final

from gateway.core.answer import parse
from gateway.core.framing import BOUNDARY, CR, event_ends, payload

STRIP_MOST: Final = 16_384
"""The longest event held back; a usage event is far shorter."""

_USAGE: Final = b'"usage"'
_DELTA: Final = b'"delta"'  # stands in events of output, and never in one that has usage alone
_TRAILING_EOL = re.compile(rb"(?:\r\n|[\r\n])\Z")


class UsageStripper:
    """Passes a chat or completions stream on, without usage events that have no choices.

    Holds back an unfinished event until its end shows what it is; one longer than ``STRIP_MOST`` goes through as it
    comes.
    """

    __slots__ = ("_after_cr", "_delta_at", "_edge", "_held", "_passing")

    def __init__(self) -> None:
        self._held = b""
        self._delta_at = 0  # where the last event had its delta: a runtime's events are alike up to there
        self._passing = False  # inside an event too long to hold
        self._edge = b""  # the line end that such an event's passed bytes ended with
        self._after_cr: bytes | None = None  # what a line feed after a final CR becomes: itself, or nothing

    def feed(self, data: bytes, *, one_event: bool = False) -> bytes:
        """What to pass on now. ``data`` itself when nothing is to do. ``one_event``: it is known to be just that."""
        if not self._held and not self._passing and self._after_cr is None and data.endswith(b"\n\n"):
            if one_event and self._has_delta(data):
                return data
            if data.find(_USAGE) < 0:
                return data
        return self._sort(data)

    def flush(self) -> bytes:
        """What is still held when the stream ends."""
        held, self._held = self._held, b""
        return held

    def _has_delta(self, data: bytes) -> bool:
        at = self._delta_at
        if data[at : at + len(_DELTA)] == _DELTA:
            return True
        at = data.find(_DELTA)
        if at < 0:
            return False
        self._delta_at = at
        return True

    def _sort(self, data: bytes) -> bytes:
        passed: list[bytes] = []
        if not data:
            return data
        if self._after_cr is not None:
            if data[:1] == b"\n":
                passed.append(self._after_cr)
                data = data[1:]
            self._after_cr = None
        if self._passing:
            data = self._pass_long(data, passed)
        buffer = self._held + data
        start = 0
        for end in event_ends(buffer):
            block = buffer[start:end]
            keep = not _is_usage_only(block)
            if keep:
                passed.append(block)
            if end == len(buffer) and buffer[-1] == CR:
                self._after_cr = b"\n" if keep else b""
            start = end
        self._held = buffer[start:]
        if len(self._held) > STRIP_MOST and len(self._held.rstrip(b"\r\n")) > STRIP_MOST:
            passed.append(self._held)
            trailing = _TRAILING_EOL.search(self._held)
            self._edge = trailing[0] if trailing is not None else b""
            self._passing = True
            self._held = b""
        return b"".join(passed)

    def _pass_long(self, data: bytes, passed: list[bytes]) -> bytes:
        """Passes the rest of a long event; returns what comes after it."""
        edge = self._edge
        boundary = BOUNDARY.search(edge + data)
        if boundary is None:
            passed.append(data)
            trailing = _TRAILING_EOL.search(edge + data)
            self._edge = trailing[0] if trailing is not None else b""
            return b""
        end = boundary.end() - len(edge)
        passed.append(data[:end])
        self._passing = False
        self._edge = b""
        if end == len(data) and data[-1] == CR:
            self._after_cr = b"\n"
        return data[end:]


def _is_usage_only(block: bytes) -> bool:
    if block.find(_USAGE) < 0 or block.find(_DELTA) >= 0 or len(block.rstrip(b"\r\n")) > STRIP_MOST:
        return False
    data = payload(block)
    if not data:
        return False
    try:
        event = parse(data)
    except ValueError:
        return False
    return (
        type(event) is dict and type(event.get("usage")) is dict and not event.get("choices") and "error" not in event
    )
