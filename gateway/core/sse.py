"""Looking at a relayed event stream without standing in its way.

``Scanner`` counts events and finds the first output; after that it only counts and keeps the stream's last bytes, which
``info`` parses once at the end. The result is the same however the bytes are split, memory is bounded, and odd input
never raises. What events mean is ``gateway.core.answer``, where they end ``gateway.core.framing``; both, and the
``UsageStripper``, are offered here too, because whoever relays a stream needs them together.
"""

import re
from typing import Final

from gateway.core.answer import (
    AnswerInfo,
    Json,
    answer_info,
    error_of,
    finish_of,
    is_content,
    parse,
    usage_at,
    usage_of,
)
from gateway.core.framing import CR, LF, after_first_line, blocks_backwards, event_ends, payload
from gateway.core.usage import UsageStripper

__all__ = [
    "FIRST_EVENT_MOST",
    "TAIL_BYTES",
    "AnswerInfo",
    "Scanner",
    "UsageStripper",
    "answer_info",
    "came_at_once",
    "finish_info",
    "is_content",
    "payload",
]

FIRST_EVENT_MOST: Final = 65_536
"""An event longer than this before any output counts as output: no role-only event is that long."""

TAIL_BYTES: Final = 4_096
"""How much of a stream's end is kept: the last output, the finish, usage and terminator events."""

_CLOSING_EVENTS: Final = 4  # without output, at the end of a stream: three of chat, four of the Responses API
_HELD_MOST: Final = TAIL_BYTES + 2_048
_HEAD: Final = 96  # enough of an unfinished line to tell whether it is a data line, or to read an event's name
_USAGE = re.compile(rb'"usage"\s*:\s*(?=\{)')
_BLANK_ENDS = (b"\n\n", b"\n\r\n", b"\n\r", b"\r\r", b"\r\r\n")  # every pair of line ends; CR LF is one
_TYPE = re.compile(rb'"type"\s*:\s*"([a-z_.]{1,40})"')
# Events that end a stream, by their name or by ``type``, and what they say when their own data is too long to keep.
_FINAL_NAMES = {
    "message_stop": "",
    "response.completed": "stop",
    "response.incomplete": "length",
    "response.failed": "error",
    "speech.audio.done": "",
    "transcript.text.done": "",
}


class Scanner:
    """One per stream. ``events`` ended so far, ``bytes`` fed; ``content``: output has begun; ``error``: an error event
    that came before any output; ``one_event``: what was fed last is one whole event, of one line."""

    __slots__ = (
        *("bytes", "content", "error", "events", "one_event"),
        *("_buffer", "_clean", "_cr", "_cut", "_data", "_final", "_held", "_line", "_reason", "_tail", "_usage"),
    )

    def __init__(self) -> None:
        self.events = 0
        self.bytes = 0
        self.content = False
        self.one_event = False
        self.error: Json | None = None
        self._tail: list[bytes] = []
        self._held = 0
        self._cut = b""  # head of the line that the tail begins in
        # Counting: at a line's start in a block without data so far | head of the unfinished line | after a CR.
        self._clean = True
        self._line = b""
        self._data = False
        self._cr = False
        # Until output begins: the unfinished event, and what finished ones said.
        self._buffer = b""
        self._usage: tuple[int, int, int] | None = None
        self._reason = ""
        self._final = ""  # the latest event name

    def feed(self, data: bytes) -> int:
        """Takes the next bytes as they came; returns how many events they ended."""
        size = len(data)
        self.bytes += size
        self._tail.append(data)
        held = self._held + size
        if held > _HELD_MOST:
            whole = b"".join(self._tail)
            self._cut = self._cut_line(whole)
            kept = whole[-TAIL_BYTES:]
            self._tail = [kept]
            held = len(kept)
        self._held = held
        ended = 0
        self.one_event = False
        # One-line events from boundary to boundary, which is how runtimes write them, are counted without splitting.
        if self._clean and data.endswith(b"\n\n") and data.startswith(b"data:") and CR not in data:
            if LF not in data[: size - 2]:
                self.one_event = True
                ended = 1
            else:
                lines = data.count(b"\n")
                if lines == 2 * data.count(b"\n\n") and 2 * data.count(b"\n\ndata:") == lines - 2:
                    ended = lines // 2
        if ended:
            self.events += ended
        elif size:
            ended = self._count(data)
        if not self.content:
            self._inspect(data)
        return ended

    @property
    def at_boundary(self) -> bool:
        """Whether the bytes so far end with a blank line, so that another event can follow."""
        if not self.bytes:
            return True
        last = self._tail[-1]
        return (last if len(last) >= 4 else b"".join(self._tail)[-4:]).endswith(_BLANK_ENDS)

    @property
    def at_rest(self) -> bool:
        """Whether no event is under way: after bytes that ended none, they were comments."""
        return self._clean

    def info(self) -> AnswerInfo:
        """What the stream said about itself up to here. Parses at most ``TAIL_BYTES``."""
        held = b"".join(self._tail)
        tail = held[-TAIL_BYTES:]
        found = finish_info(tail, whole=self.bytes <= TAIL_BYTES)
        final = self._final
        if not found.done and final not in _FINAL_NAMES and self.bytes > TAIL_BYTES:
            final = _final_type(self._cut_line(held), tail)
        # The Messages API tells the prompt's size at the start and the completion's at the end; some runtimes tell the
        # first part of the one, or all of it, at the end only. Counts grow while the stream runs.
        prompt, cached, completion = self._usage or (-1, -1, -1)
        return AnswerInfo(
            max(found.prompt_tokens, prompt),
            max(found.cached_tokens, cached),
            max(found.completion_tokens, completion),
            found.finish_reason or self._reason or _FINAL_NAMES.get(final, ""),
            found.error or self.error,
            found.done or final in _FINAL_NAMES,
        )

    def _cut_line(self, held: bytes) -> bytes:
        """The head of the line in which the tail of these last bytes begins."""
        end = len(held) - TAIL_BYTES
        at = max(held.rfind(b"\n", 0, end), held.rfind(b"\r", 0, end)) + 1
        return held[at : at + _HEAD] if at or self.bytes == len(held) else self._cut

    def _count(self, data: bytes) -> int:
        """Line by line, for whatever the quick way does not prove."""
        if self._cr and data[:1] == b"\n":
            data = data[1:]
        if not data:
            self._cr = False
            self._clean = not self._data and not self._line
            return 0
        self._cr = data[-1] == CR
        lines = (self._line + data).splitlines()
        at_start = data[-1:] in (b"\n", b"\r")
        self._line = b"" if at_start else lines.pop()[:_HEAD]
        ended = 0
        has_data = self._data
        for line in lines:
            if not line:
                ended += has_data
                has_data = False
            elif line[:5] == b"data:" or line == b"data":
                has_data = True
            elif line[:6] == b"event:":
                self._final = line[6:_HEAD].strip().decode("latin-1")
        self._data = has_data
        self._clean = at_start and not self._cr and not has_data
        self.events += ended
        return ended

    def _inspect(self, data: bytes) -> None:
        buffer = self._buffer + data
        start = 0
        for end in event_ends(buffer):
            self._look(buffer[start:end].strip(b"\r\n"))
            start = end
            if self.content:
                self._buffer = b""
                return
        self._buffer = buffer[start:].lstrip(b"\r\n")
        if len(self._buffer) > FIRST_EVENT_MOST and len(self._buffer.rstrip(b"\r\n")) > FIRST_EVENT_MOST:
            self.content = True
            self._buffer = b""

    def _look(self, block: bytes) -> None:
        """One whole event before any output."""
        if len(block) > FIRST_EVENT_MOST:
            self.content = True
            return
        data = payload(block)
        if not data or data == b"[DONE]":
            return
        try:
            event = parse(data)
        except ValueError:
            self.content = True  # not ours to judge: it goes to the client as it is
            return
        if type(event) is not dict:
            return
        if self.error is None:
            self.error = error_of(event)
        self._usage = usage_of(event) or self._usage
        self._reason = finish_of(event) or self._reason
        self.content = is_content(event)


def came_at_once(events_after: int, tokens: int) -> bool:
    """Whether an answer of so many tokens came in one piece: ``events_after`` its first content are too few for them.

    A parser of tool calls or a proxy held it back, and the time from its first to its last arrival says nothing of the
    pace of tokens.
    """
    return events_after <= _CLOSING_EVENTS and tokens - 1 > events_after


def _final_type(head: bytes, tail: bytes) -> str:
    """The final ``type`` of an event whose line began with ``head`` and is cut by the tail, where it has one: it stands
    first or behind the text. (Quotes inside JSON strings are escaped, so a text can never look like it.)"""
    for found in (*_TYPE.findall(head), *_TYPE.findall(tail[: max(after_first_line(tail), 0)])):
        kind: str = found.decode()
        if kind in _FINAL_NAMES:
            return kind
    return ""


def finish_info(tail: bytes, *, whole: bool = False) -> AnswerInfo:
    """What the last bytes of a stream say. ``whole``: they are all of it; else the first, cut line is left out.

    Looks backwards and stops at the last output: nothing before it can say how the stream ended.
    """
    lines = tail
    if not whole:
        start = after_first_line(tail)
        lines = tail[start:] if start >= 0 else b""
    usage: tuple[int, int, int] | None = None
    reason = ""
    error: Json | None = None
    done = False
    for block in blocks_backwards(lines):
        data = payload(block)
        if not data:
            continue
        if data == b"[DONE]":
            done = True
            continue
        try:
            event = parse(data)
        except ValueError:
            continue
        if type(event) is not dict:
            continue
        kind = event.get("type")
        done = done or (type(kind) is str and kind in _FINAL_NAMES)
        usage = usage or usage_of(event)
        reason = reason or finish_of(event)
        error = error or error_of(event)
        if is_content(event):
            break
    if usage is None:  # the final event of the Responses API repeats the whole answer, so its head may be cut off
        for found in reversed(list(_USAGE.finditer(tail))):
            usage = usage_at(tail, found.end())
            if usage is not None:
                break
    prompt, cached, completion = usage or (-1, -1, -1)
    return AnswerInfo(prompt, cached, completion, reason, error, done)
