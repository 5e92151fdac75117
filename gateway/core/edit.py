"""Byte-exact edits of a request body on its way to a pool: the model's name, and the wish for usage in a stream.

Every other byte stays: digits of large integers, spacing, escapes, key order. Bodies that come here were read by
``gateway.core.openai.read``, so they are valid JSON objects without repeated keys on top. Called by the data plane for
each attempt, because pools may spell the model differently.

The quick way needs a proof that a byte pattern stands for the top-level key: the key's plain spelling occurs once in
the body and no ASCII letter is written as an escape, so no other spelling of it can exist. (Quotes inside JSON strings
are escaped, so text in a prompt can never look like a quoted key.) Otherwise the top level is scanned.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec
import orjson

from gateway.core.openai import form
from gateway.errors import ApiError
from gateway.model.enums import Api
from gateway.model.facts import Facts

_USAGE_MEMBER = b'"include_usage":true'
_USAGE_OPTIONS = b'"stream_options":{"include_usage":true}'
_QUOTE: Final = 34
_BACKSLASH: Final = 92
_MODEL_VALUE = re.compile(rb'"model"[ \t\r\n]*:[ \t\r\n]*("(?:[^"\\]|\\.)*")')
_ESCAPED_LETTER = re.compile(rb"\\u00[4-7]")
_KEY = re.compile(rb'[ \t\r\n,]*"(?:[^"\\]|\\.)*"[ \t\r\n]*:[ \t\r\n]*')
_VALUES = msgspec.json.Decoder(dict[str, msgspec.Raw])
_STREAMS_WITH_OPTIONS = frozenset((Api.CHAT, Api.COMPLETIONS))

Splice = tuple[int, int, bytes]
"""Replace ``body[start:end]`` by the bytes."""


def wants_usage(facts: Facts) -> bool:
    """Whether to ask the pool for usage on top of what the client asked: only in a stream, and only if the client was
    silent about it. Its explicit ``false`` stands."""
    return facts.stream and facts.usage_in_stream is None and facts.api in _STREAMS_WITH_OPTIONS


def rewrite(body: bytes, *, model: str | None = None, ask_usage: bool = False) -> bytes:
    """The JSON body with its model replaced (None: kept) and usage asked for; ``body`` itself if nothing changes.

    A body without ``model`` gets none. ``ask_usage`` adds ``stream_options.include_usage: true`` and leaves an explicit
    true or false alone. ``ValueError`` if ``body`` is no JSON object; ``ApiError`` 400 if it nests too deeply to scan.
    """
    splices: list[Splice] = []
    plain = not _spells_letters_oddly(body)
    if ask_usage:
        splices += _usage_splices(body, plain)
    if model is not None:
        splices += _model_splice(body, model, plain)
    return _apply(body, splices)


def overwrite(body: bytes, values: Mapping[str, bytes], *, add: Iterable[str] = ()) -> bytes:
    """The JSON body with top-level members set to these JSON values where they are present; those named in ``add`` also
    where they are not. ``body`` itself if nothing changes. ``ApiError`` 400 if it nests too deeply to scan."""
    added = [*add]
    plain = not _spells_letters_oddly(body)
    if plain and not added and not any(_is_member(body, key) for key in values):
        return body
    spans = _members(body)
    splices = [(*spans[key], value) for key, value in values.items() if key in spans]
    missing = [b'"%b":%b' % (key.encode(), values[key]) for key in added if key not in spans]
    if missing:
        splices.append(_insertion(body, 0, b",".join(missing), empty=not spans))
    return _apply(body, splices)


def rewrite_form(body: bytes, content_type: str, *, model: str) -> bytes:
    """A multipart form with another ``model`` field. ``ApiError`` 400 for a form that cannot be read."""
    span = form.spans(body, form.boundary_of(content_type)).get("model")
    return body if span is None else _apply(body, [(*span, model.encode())])


def _is_member(body: bytes, key: str) -> bool:
    """Whether ``key`` may be a member's name anywhere: its plain spelling with a colon behind it."""
    name = b'"%b"' % key.encode()
    at = body.find(name)
    while at >= 0:
        if body[at + len(name) : at + len(name) + 64].lstrip(b" \t\r\n")[:1] in (b":", b""):
            return True
        at = body.find(name, at + len(name))
    return False


def _spells_letters_oddly(body: bytes) -> bool:
    return _BACKSLASH in body and _ESCAPED_LETTER.search(body) is not None


def _model_splice(body: bytes, model: str, plain: bool) -> list[Splice]:
    new = orjson.dumps(model)
    if plain:
        at = body.find(b'"model"')
        if at >= 0 and body.find(b'"model"', at + 7) < 0:
            found = _MODEL_VALUE.match(body, at)
            if found is not None:
                return [(found.start(1), found.end(1), new)]
    spans = _members(body)
    return [(*spans["model"], new)] if "model" in spans else []


def _usage_splices(body: bytes, plain: bool) -> list[Splice]:
    if plain and _QUOTE in body and body.find(b'"stream_options"') < 0:
        return [_insertion(body, 0, _USAGE_OPTIONS, empty=False)]
    spans = _members(body)
    if "stream_options" not in spans:
        return [_insertion(body, 0, _USAGE_OPTIONS, empty=not spans)]
    start, end = spans["stream_options"]
    if body[start : start + 1] != b"{":  # null
        return [(start, end, b"{" + _USAGE_MEMBER + b"}")]
    options = _members(body[start:end])
    if "include_usage" not in options:
        return [_insertion(body, start, _USAGE_MEMBER, empty=not options)]
    begin, stop = options["include_usage"]
    value = body[start + begin : start + stop]
    return [(start + begin, start + stop, b"true")] if value == b"null" else []


def _insertion(body: bytes, at: int, member: bytes, *, empty: bool) -> Splice:
    """``member`` as the first of the object whose brace stands at or after ``at``."""
    inside = body.index(b"{", at) + 1
    return inside, inside, member if empty else member + b","


def _members(body: bytes) -> dict[str, tuple[int, int]]:
    """Where the values of the object stand, by key.

    The decoder passes over each value without making anything of it, in order; what is between them is read here.
    """
    try:
        found = _VALUES.decode(body)
    except RecursionError:
        raise ApiError(400, "too_deep", "The request body is nested too deeply.") from None
    except msgspec.DecodeError:
        raise ValueError("not a JSON object") from None
    spans: dict[str, tuple[int, int]] = {}
    at = body.index(b"{") + 1
    for key, value in found.items():
        before = _KEY.match(body, at)
        assert before is not None  # noqa: S101 - the decoder has read it
        start = before.end()
        at = start + memoryview(value).nbytes
        spans[key] = (start, at)
    return spans


def _apply(body: bytes, splices: list[Splice]) -> bytes:
    """All splices at once, in order of place; they do not overlap."""
    if not splices:
        return body
    if len(splices) == 1:
        start, end, new = splices[0]
        return b"%b%b%b" % (body[:start], new, body[end:])
    pieces: list[bytes] = []
    at = 0
    for start, end, new in sorted(splices):
        pieces += (body[at:start], new)
        at = end
    pieces.append(body[at:])
    return b"".join(pieces)
