"""Where events of a stream begin and end, and what data they carry (WHATWG event-stream rules).

LF, CR and CRLF end lines, a blank line ends an event. Works on bytes in memory; state over reads is its callers' own
(``gateway.core.sse``, ``gateway.core.usage``).
"""

import re
from collections.abc import Iterator
from typing import Final

_EOL = rb"(?>\r\n|[\r\n])"
BOUNDARY = re.compile(_EOL + _EOL)
CR: Final = 13
LF: Final = 10


def payload(block: bytes) -> bytes | None:
    """The data of one event, its lines joined; None for a block without any (comments, a lone event name)."""
    block = block.strip(b"\r\n")
    if block.startswith(b"data: ") and LF not in block and CR not in block:
        return block[6:]
    lines = [
        line[6:] if line[5:6] == b" " else line[5:]
        for line in block.splitlines()
        if line[:5] == b"data:" or line == b"data"
    ]
    return b"\n".join(lines) if lines else None


def blocks_backwards(data: bytes) -> Iterator[bytes]:
    """The blocks between blank lines, the last first. What follows the last blank line is a block too."""
    end = len(data)
    if CR in data:
        for start in (*reversed(event_ends(data)), 0):
            yield data[start:end]
            end = start
        return
    while True:
        start = _blank_line_before(data, end)
        yield data[start + 2 if start >= 0 else 0 : end]
        if start < 0:
            return
        end = start


def after_first_line(data: bytes) -> int:
    """Where the second line begins; -1 if no line ends."""
    feed = data.find(b"\n")
    back = data.find(b"\r") if feed < 0 else data.find(b"\r", 0, feed)
    if back >= 0 and back + 1 != feed:
        return back + 1
    return feed + 1 if feed >= 0 else -1


def _blank_line_before(data: bytes, end: int) -> int:
    """The last place of two line feeds before ``end``; -1 if there is none. A search for one byte is by far quicker."""
    at = data.rfind(b"\n", 0, end)
    while at > 0:
        if data[at - 1] == LF:
            return at - 1
        at = data.rfind(b"\n", 0, at)
    return -1


def event_ends(data: bytes) -> list[int]:
    """Where each blank line in ``data`` ends, in order. Splitting is far quicker than the pattern, and most streams
    have no CR."""
    if CR in data:
        return [boundary.end() for boundary in BOUNDARY.finditer(data)]
    ends: list[int] = []
    blocks = data.split(b"\n\n")
    at = 0
    for index in range(len(blocks) - 1):
        at += len(blocks[index]) + 2
        ends.append(at)
    return ends
