"""Taking out of texts that are kept what a policy's patterns find, however a runtime happened to write it.

The same characters may stand as they are, as JSON escapes, as escapes within escapes (a tool's arguments are JSON in a
string), and split over the events of a stream. All of these are looked at; what stays is the same JSON and the same
events, with a mask in place of each find, so that a sample can still be replayed and checked. Pure; slow texts are the
caller's to keep off the loop. Called by ``control.sampling``.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any, Final

import orjson
import re2

from gateway.core.assemble import looks_like_stream
from gateway.core.escapes import Span, View, merged
from gateway.core.fragments import Block, Fragment, blocks_of, without_logprobs

MASK = b"[redacted]"
NUMBER_MOST = 400  # characters of one
_STRING: Final = re.compile(rb'"(?:[^"\\\r\n]|\\.)*"')
_NUMBER: Final = re.compile(rb"[-+.0-9eE]*\Z")
_NUMBER_GOES_ON: Final = re.compile(rb"[-+.0-9eE]*")

DEPTH = 4  # a body, a tool's arguments in it, JSON in a string of those, and one more


class Redactor:
    """Patterns in RE2's syntax."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self._patterns = [re2.compile(pattern.encode()) for pattern in patterns]

    def text(self, raw: bytes) -> bytes:
        """Any text, a JSON body among them: a mask never breaks a string that it stands in."""
        return masked(raw, self._spans(raw)) if self._patterns else raw

    def answer(self, raw: bytes) -> bytes:
        """A body or an event stream. Where anything was found, token probabilities go: they spell the text again."""
        if not self._patterns:
            return raw
        stream = looks_like_stream(raw)
        clean = self._stream(raw) if stream else raw
        spans = self._spans(clean)
        if not stream and spans and b"logprobs" in clean:
            clean = _body_without_logprobs(clean)
            spans = self._spans(clean)
        return masked(clean, spans)

    def _stream(self, raw: bytes) -> bytes:
        """Finds that no event holds whole."""
        blocks = list(blocks_of(raw))
        channels: dict[tuple[Any, ...], list[Fragment]] = {}
        for block in blocks:
            for fragment in block.fragments:
                channels.setdefault(fragment.channel, []).append(fragment)
        found = [self._join(fragments) for fragments in channels.values()]
        if any(found):
            for block in blocks:
                without_logprobs(block)
        return b"".join(map(Block.written, blocks))

    def _join(self, fragments: Sequence[Fragment]) -> bool:
        """Mask what the fragments hold together; whether anything was found."""
        spans = self._spans(b"".join(fragment.text for fragment in fragments))
        at = 0
        for fragment in fragments if spans else ():
            end = at + len(fragment.text)
            fragment.replace(_cut(fragment.text, at, [span for span in spans if span[0] < end and span[1] > at]))
            at = end
        return bool(spans)

    def _spans(self, raw: bytes) -> list[Span]:
        found: list[Span] = []
        view: View | None = View(raw)
        for _ in range(DEPTH):
            if view is None:
                break
            found += self._matches(view)
            view = view.unescaped()
        return merged(found)

    def _matches(self, view: View) -> Iterator[Span]:
        for pattern in self._patterns:
            for match in pattern.finditer(view.text):
                start, end = match.span()
                if start < end:
                    yield view.origin(start, end)


def masked(raw: bytes, spans: Sequence[Span]) -> bytes:
    """The text with a mask for each of the spans, which are in order and apart; for a number of JSON a string."""
    strings = [match.span() for match in _STRING.finditer(raw)] if spans else []
    begins = [start for start, _ in strings]
    parts: list[bytes] = []
    done = 0
    for start, end in spans:
        before = bisect_right(begins, start) - 1
        within = before >= 0 and start < strings[before][1]
        number = None if within or not strings else _number_around(raw, start, end)
        begin, ended = number or (start, end)
        if begin >= done:
            parts += (raw[done:begin], b'"%b"' % MASK if number else MASK)
        done = max(ended, done)
    return b"".join((*parts, raw[done:]))


def _number_around(raw: bytes, start: int, end: int) -> Span | None:
    """The whole number that a span outside all strings is a part of."""
    if _NUMBER_GOES_ON.fullmatch(raw, start, end) is None:
        return None
    before = _NUMBER.search(raw, max(0, start - NUMBER_MOST), start)
    after = _NUMBER_GOES_ON.match(raw, end)
    return (before.start() if before else start), (after.end() if after else end)


def _cut(text: bytes, at: int, spans: Sequence[Span]) -> bytes:
    """A piece that begins at ``at`` of a longer text, masked; the mask stands where a span begins."""
    parts: list[bytes] = []
    done = 0
    for start, end in spans:
        begin = max(start - at, 0)
        parts.append(text[done:begin])
        if start >= at:
            parts.append(MASK)
        done = min(end - at, len(text))
    return b"".join((*parts, text[done:]))


def _body_without_logprobs(raw: bytes) -> bytes:
    try:
        body = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return raw
    block = Block(b"", body)
    without_logprobs(block)
    return orjson.dumps(block.value) if block.changed else raw
