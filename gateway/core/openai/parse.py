"""JSON rules of every request body: strict syntax, an object on top, and no repeated key where the gateway reads.

A repeated key is refused because gateway and runtime may each believe a different one of the two values (RFC 8259 §4
leaves it open), so what was checked would not be what is served. Proving that there is none must cost next to nothing:

1. ``dumps(loads(body)) == body``: a repeated key would be missing from the right side. True for compact clients.
2. The same with all whitespace taken out of both sides. Equal bytes outside whitespace mean equal tokens, hence equal
   member counts, so the proof stands for any layout.
3. What is left (escaped non-ASCII text, odd number spellings) is parsed once more, keeping every pair.

Callers get plain dicts and lists. Integers beyond 64 bits arrive as floats here; the forwarded bytes keep their digits.
"""

import json
from collections.abc import Collection
from typing import Any, Final

import orjson

from gateway.errors import ApiError

Json = dict[str, Any]

_WHITESPACE: Final = b" \t\r\n"
_OBJECTS_MOST = 50_000  # the long proof costs about a microsecond for each
_COMMAS_MOST: Final = 1_000_000
"""Each is a value that the decoder makes while it holds the interpreter's lock, and all streams of the worker wait. A
prompt of 200,000 token ids is well below it, and an image has none."""

# Objects below these fields are read by the gateway, so a repeated key inside them is refused too. Inside other fields
# (metadata, vendor extensions) the body passes as it is.
_READ_FIELDS = frozenset(
    (
        *("messages", "input", "instructions", "prompt", "system", "conversation", "query", "queries", "documents"),
        *("items", "text_1", "text_2", "data_1", "data_2"),
        *("tools", "tool_choice", "functions", "function_call"),
        *("response_format", "text", "structured_outputs", "stream_options"),
    )
)

_loads: Final = orjson.loads
_dumps: Final = orjson.dumps


def load(body: bytes) -> Json:
    """The body as a dict. ``ApiError`` 400 with the place for bad syntax, nesting over 1024, a top that is no object,
    and repeated keys."""
    if len(body) > _COMMAS_MOST and body.count(b",") > _COMMAS_MOST:
        raise ApiError(400, "too_complex", f"The request body holds more than {_COMMAS_MOST:,} values.")
    try:
        parsed = _loads(body)
    except orjson.JSONDecodeError as error:
        raise _invalid(body, error) from None
    if type(parsed) is not dict:
        raise ApiError(400, "invalid_body", f"The request body must be a JSON object, not {_kind(parsed)}.")
    try:
        plain = _dumps(parsed)
    except orjson.JSONEncodeError:  # nested deeper than the encoder goes: prove it the long way
        plain = b""
    if plain != body and plain.translate(None, _WHITESPACE) != body.translate(None, _WHITESPACE):
        _refuse_repeats(body)
    return parsed


def _invalid(body: bytes, error: orjson.JSONDecodeError) -> ApiError:
    if not body:
        return ApiError(400, "invalid_json", "The request body is empty; a JSON object is needed.")
    reason = error.msg.split(":", 1)[0]
    if "depth" in reason or "ecursion" in reason:
        return ApiError(400, "too_deep", f"The request body is nested too deeply (at byte {error.pos}).")
    place = f"line {error.lineno}, column {error.colno}"
    return ApiError(400, "invalid_json", f"The request body is not valid JSON: {reason} at {place}.")


def _kind(value: object) -> str:
    if isinstance(value, list):
        return "an array"
    if isinstance(value, str):
        return "a string"
    return "a bare value"


class _Repeated(dict[str, Any]):
    """An object that named ``key`` more than once."""

    key: str


def _pairs(pairs: list[tuple[str, Any]]) -> Json:
    members = dict(pairs)
    if len(members) == len(pairs):
        return members
    repeated = _Repeated(members)
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            repeated.key = key
            break
        seen.add(key)
    return repeated


# Numbers stay text: only their presence matters here, and Python's int() refuses very long ones.
_PAIR_DECODER = json.JSONDecoder(object_pairs_hook=_pairs, parse_int=str, parse_float=str)


def _refuse_repeats(body: bytes) -> None:
    if body.count(b"{") > _OBJECTS_MOST:
        raise ApiError(400, "too_complex", f"The request body holds more than {_OBJECTS_MOST} objects.")
    try:
        top = _PAIR_DECODER.decode(body.decode())
    except RecursionError:
        raise ApiError(400, "too_deep", "The request body is nested too deeply.") from None
    if isinstance(top, _Repeated):
        raise _repeated(top.key, top.key)
    for field in _READ_FIELDS.intersection(top):
        found = _find_repeated(top[field])
        if found is not None:
            raise _repeated(found.key, field)


def _find_repeated(value: object) -> _Repeated | None:
    """The first object with a repeated key at or below ``value``, without recursion."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, _Repeated):
            return item
        children: Collection[object] = ()
        if isinstance(item, dict):
            children = item.values()
        elif isinstance(item, list):
            children = item
        stack.extend(child for child in children if isinstance(child, dict | list))
    return None


def _repeated(key: str, param: str) -> ApiError:
    shown = key if len(key) <= 64 else key[:64] + "…"
    return ApiError(
        400,
        "duplicate_key",
        f"The request body names the key {shown!r} more than once"
        + (f" inside {param!r}." if param != key else ".")
        + " Send each key once.",
        param=param,
    )
