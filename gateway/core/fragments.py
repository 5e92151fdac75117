"""The texts that a stream brings in pieces, and the stream written again with other pieces.

Owns the question which strings of which events are parts of one text, for all generating APIs: those in the same place
of the event, where places in lists are told by their ``index``. Everything of a stream that is not changed is written
as it was. Called by ``core.redaction``.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

import orjson

# What the APIs call text that comes in pieces; ids, names and models are whole in every event.
_PIECES: Final = frozenset(
    {
        *("content", "text", "reasoning", "reasoning_content", "refusal", "arguments", "input", "partial_json"),
        *("thinking", "delta"),
    }
)
# What tells events of the other two APIs apart that are about different texts.
_PLACES: Final = ("type", "item_id", "output_index", "content_index", "summary_index", "index")
_BLOCK: Final = re.compile(rb".*?(?:\r\n\r\n|\n\n|\r\r|\Z)", re.DOTALL)
_DATA: Final = re.compile(rb"(?<![^\r\n])data: ?([^\r\n]*)(?:\r\n|\n|\r|\Z)")


class Fragment:
    """A piece of a text. ``channel`` tells which text of the stream."""

    def __init__(self, block: "Block", holder: Any, key: Any, channel: tuple[Any, ...]) -> None:
        self.channel = channel
        self.text: bytes = holder[key].encode("utf-8", "surrogatepass")
        self._block = block
        self._holder = holder
        self._key = key

    def replace(self, text: bytes) -> None:
        """Another piece instead."""
        if text != self.text:
            self._holder[self._key] = text.decode("utf-8", "replace")
            self._block.changed = True


class Block:
    """One event with the blank line that ends it. ``value`` is what its data say, None where that is no JSON."""

    def __init__(self, raw: bytes, value: Any) -> None:
        self.value = value
        self.changed = False
        self._raw = raw

    @property
    def fragments(self) -> Iterator[Fragment]:
        """Its pieces of texts."""
        if isinstance(self.value, dict):
            places = tuple(_plain(self.value.get(name)) for name in _PLACES)
            yield from self._fragments(self.value, places)

    def _fragments(self, found: Any, path: tuple[Any, ...]) -> Iterator[Fragment]:
        if isinstance(found, dict):
            for key, value in found.items():
                if isinstance(value, str) and key in _PIECES:
                    yield Fragment(self, found, key, (*path, key))
                elif isinstance(value, dict | list):
                    yield from self._fragments(value, (*path, key))
        elif isinstance(found, list):
            for position, value in enumerate(found):
                index = value.get("index") if isinstance(value, dict) else None
                yield from self._fragments(value, (*path, index if isinstance(index, int) else position))

    def written(self) -> bytes:
        """The event's bytes: as they came, or with what it says now as one line of data."""
        if not self.changed:
            return self._raw
        first, *others = _DATA.finditer(self._raw)
        parts = [self._raw[: first.start()], b"data: ", orjson.dumps(self.value)]
        done = first.end(1)
        for other in others:
            parts.append(self._raw[done : other.start()])
            done = other.end()
        return b"".join((*parts, self._raw[done:]))


def blocks_of(raw: bytes) -> Iterator[Block]:
    """The stream's events in order; what has no data is one too. Together they are the stream."""
    for match in _BLOCK.finditer(raw):
        block = match.group()
        data = b"\n".join(found.group(1) for found in _DATA.finditer(block))
        if block:
            yield Block(block, _read(data))


def without_logprobs(block: Block) -> None:
    """Take the probabilities of tokens away: they spell the text once more."""
    _blank(block, block.value)


def _blank(block: Block, found: Any) -> None:
    if isinstance(found, dict):
        for key, value in found.items():
            if "logprobs" in key and value:
                found[key] = None
                block.changed = True
            else:
                _blank(block, value)
    elif isinstance(found, list):
        for value in found:
            _blank(block, value)


def _read(data: bytes) -> Any:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return None


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int) else None
