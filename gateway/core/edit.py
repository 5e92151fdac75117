"""Byte-exact edits of a request body on its way to a pool: the model's name, and the wish for usage in a stream.

Every other byte stays: digits of large integers, spacing, escapes, key order. Bodies that come here were read by
``gateway.core.openai.read``, so they are valid JSON objects without repeated keys on top. Called by the data plane for
each attempt, because pools may spell the model differently.

The quick way needs a proof that a byte pattern stands for the top-level key: the key's plain spelling occurs once in
the body and no ASCII letter is written as an escape, so no other spelling of it can exist. (Quotes inside JSON strings
are escaped, so text in a prompt can never look like a quoted key.) Otherwise the top level is scanned.
"""

import json
import re
from collections.abc import Iterable, Mapping

import orjson

from gateway.core.openai import form
from gateway.errors import ApiError
from gateway.model.enums import Api
from gateway.model.facts import Facts

_USAGE_MEMBER = b'"include_usage":true'
_USAGE_OPTIONS = b'"stream_options":{"include_usage":true}'
_MODEL_VALUE = re.compile(rb'"model"[ \t\r\n]*:[ \t\r\n]*("(?:[^"\\]|\\.)*")')
_ESCAPED_LETTER = re.compile(rb"\\u00[4-7]")
_SPACE = re.compile(r"[ \t\r\n]*")
_VALUES = json.JSONDecoder(parse_int=str, parse_float=str)
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


def set_model(body: bytes, model: str) -> bytes:
    """The JSON body with another model name."""
    return rewrite(body, model=model)


def overwrite(body: bytes, values: Mapping[str, bytes], *, add: Iterable[str] = ()) -> bytes:
    """The JSON body with top-level members set to these JSON values where they are present; those named in ``add`` also
    where they are not. ``body`` itself if nothing changes. ``ApiError`` 400 if it nests too deeply to scan."""
    added = [*add]
    plain = not _spells_letters_oddly(body)
    if plain and not added and not any(_is_member(body, key) for key in values):
        return body
    spans, _ = _members(body.decode("latin-1"), 0)
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
    return b"\\" in body and _ESCAPED_LETTER.search(body) is not None


def _model_splice(body: bytes, model: str, plain: bool) -> list[Splice]:
    new = orjson.dumps(model)
    if plain:
        at = body.find(b'"model"')
        if at >= 0 and body.find(b'"model"', at + 7) < 0:
            found = _MODEL_VALUE.match(body, at)
            if found is not None:
                return [(found.start(1), found.end(1), new)]
    spans, _ = _members(body.decode("latin-1"), 0)
    return [(*spans["model"], new)] if "model" in spans else []


def _usage_splices(body: bytes, plain: bool) -> list[Splice]:
    if plain and b'"' in body and b'"stream_options"' not in body:
        return [_insertion(body, 0, _USAGE_OPTIONS, empty=False)]
    text = body.decode("latin-1")
    spans, _ = _members(text, 0)
    if "stream_options" not in spans:
        return [_insertion(body, 0, _USAGE_OPTIONS, empty=not spans)]
    start, end = spans["stream_options"]
    if text[start] != "{":  # null
        return [(start, end, b"{" + _USAGE_MEMBER + b"}")]
    options, _ = _members(text, start)
    if "include_usage" not in options:
        return [_insertion(body, start, _USAGE_MEMBER, empty=not options)]
    start, end = options["include_usage"]
    return [(start, end, b"true")] if text[start] == "n" else []


def _insertion(body: bytes, at: int, member: bytes, *, empty: bool) -> Splice:
    """``member`` as the first of the object whose brace stands at or after ``at``."""
    inside = body.index(b"{", at) + 1
    return inside, inside, member if empty else member + b","


def _members(text: str, at: int) -> tuple[dict[str, tuple[int, int]], int]:
    """Where the values of the object at ``at`` stand, by key, and where the object ends.

    ``text`` is the body as Latin-1, so that positions are byte offsets; keys outside ASCII come out wrong and are never
    asked for. Values are skipped by the C scanner.
    """
    spans: dict[str, tuple[int, int]] = {}
    at = _skip(text, at)
    if text[at : at + 1] != "{":
        raise ValueError("not a JSON object")
    at = _skip(text, at + 1)
    if text[at : at + 1] == "}":
        return spans, at + 1
    while True:
        key, at = _VALUES.raw_decode(text, at)
        start = _skip(text, _skip(text, at) + 1)
        try:
            _, end = _VALUES.raw_decode(text, start)
        except RecursionError:
            raise ApiError(400, "too_deep", "The request body is nested too deeply.") from None
        spans[key] = (start, end)
        at = _skip(text, end)
        if text[at : at + 1] != ",":
            return spans, at + 1
        at = _skip(text, at + 1)


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found is not None else at


def _apply(body: bytes, splices: list[Splice]) -> bytes:
    """All splices at once, in order of place; they do not overlap."""
    if not splices:
        return body
    pieces: list[bytes] = []
    at = 0
    for start, end, new in sorted(splices):
        pieces += (body[at:start], new)
        at = end
    pieces.append(body[at:])
    return b"".join(pieces)
