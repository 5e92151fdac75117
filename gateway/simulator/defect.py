"""What a bad pool makes of a good answer: the quality faults, one function each.

Owns the damage. Each function returns a choice that is wrong in exactly the way its name says, or the choice unchanged
where that damage cannot show. Pure. ``answer.compose`` calls ``spoiled``.
"""

import re
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import msgspec
import orjson
from jsonschema.exceptions import SchemaError
from jsonschema.validators import validator_for

from gateway.simulator.answer import Call, Choice, make_call
from gateway.simulator.ask import Ask, Tool
from gateway.simulator.prose import pieces_of, reworded, topics_of

_NUMBER = re.compile(r"\d+")
_MARKER = re.compile(r"\[[\w.-]{1,24}\]")
_JUNK = "ÃÂâ€™ïżœ漢字テスト��¤§0x0fнеиʂ"

replace = msgspec.structs.replace


def spoiled(choice: Choice, ask: Ask, kind: str, limit: int, random: Random) -> Choice:
    """``choice`` with the damage ``kind``; ``limit`` is the most tokens it may grow to."""
    if kind == "repetition":
        return _repeating(choice, limit, random)
    return _DEFECTS[kind](choice, ask, random)


def _with_text(choice: Choice, text: str, **changes: Any) -> Choice:
    return replace(choice, pieces=tuple(pieces_of(text)), **changes)


def _with_arguments(choice: Choice, text: str) -> Choice:
    call = replace(choice.calls[0], arguments=tuple(pieces_of(text)))
    return replace(choice, calls=(call, *choice.calls[1:]))


def _broken(text: str, random: Random) -> str:
    """``text`` made unreadable as JSON."""
    cut = text[: max(1, int(len(text) * (0.4 + 0.5 * random.random())))]
    for candidate in random.sample([cut, text.replace('"', "'"), text[:-1], text.replace(":", " ", 1)], 4):
        try:
            orjson.loads(candidate)
        except orjson.JSONDecodeError:
            return candidate
    return text + "}"


def _broken_json(choice: Choice, ask: Ask, random: Random) -> Choice:
    if choice.calls:
        return _with_arguments(choice, _broken(choice.calls[0].text, random))
    return _with_text(choice, _broken(choice.text, random)) if choice.structured else choice


def _violating(value: Any, schema: Mapping[str, Any] | bool, random: Random) -> Any:
    """A near miss of ``value`` that ``schema`` refuses; ``value`` itself if it accepts every near miss."""
    try:
        cls: Any = validator_for(schema)
        cls.check_schema(schema)
    except SchemaError:
        return value
    validator = cls(schema)
    for candidate in _near_misses(value, random):
        if not validator.is_valid(candidate):
            return candidate
    return value


def _near_misses(value: Any, random: Random) -> list[Any]:
    misses: list[Any] = []
    if isinstance(value, dict):
        keys = random.sample(sorted(value), len(value))
        misses += [{name: inner for name, inner in value.items() if name != key} for key in keys]
        misses += [{**value, key: _other_kind(value[key])} for key in keys]
        misses += [{**value, "unexpected_field": "value"}]
        misses += [{**value, key: miss} for key in keys for miss in _near_misses(value[key], random)]
    elif isinstance(value, list) and value:
        misses += [[_other_kind(value[0]), *value[1:]], []]
    return [*misses, _other_kind(value), None]


def _other_kind(value: Any) -> Any:
    return {"value": value} if isinstance(value, str) else str(value)


def _schema_violation(choice: Choice, ask: Ask, random: Random) -> Choice:
    if choice.calls:
        tool = _declared(ask, choice.calls[0].name)
        value = _violating(orjson.loads(choice.calls[0].text), tool.parameters if tool else {}, random)
        return _with_arguments(choice, orjson.dumps(value).decode())
    if choice.structured and ask.schema is not None:
        value = _violating(orjson.loads(choice.text), ask.schema, random)
        return _with_text(choice, orjson.dumps(value).decode())
    return _with_text(choice, "other") if ask.options else choice


def _declared(ask: Ask, name: str) -> Tool | None:
    return next((tool for tool in ask.tools if tool.name == name), None)


def _wrong_tool(choice: Choice, ask: Ask, random: Random) -> Choice:
    if not choice.calls:
        return choice
    others = [tool for tool in ask.tools if tool.name != choice.calls[0].name]
    if others:
        call = make_call(random.choice(others), topics_of(ask.text), random)
    else:
        call = replace(choice.calls[0], name=choice.calls[0].name + "_v2")
    return replace(choice, calls=(call, *choice.calls[1:]))


def _wrong_arguments(choice: Choice, ask: Ask, random: Random) -> Choice:
    if not choice.calls:
        return choice
    first = choice.calls[0]
    tool = _declared(ask, first.name)
    for _ in range(8):
        other = make_call(tool, ["unrelated", "placeholder"], random) if tool else first
        if other.text != first.text:
            return _with_arguments(choice, other.text)
    value = orjson.loads(first.text)
    return _with_arguments(choice, "{}" if value else '{"query":"placeholder"}')


def _leaked_tool_call(choice: Choice, ask: Ask, random: Random) -> Choice:
    if not choice.calls:
        return choice
    return _with_text(choice, "\n".join(map(_as_markup, choice.calls)), calls=(), finish="stop")


def _as_markup(call: Call) -> str:
    return f'<tool_call>\n{{"name": "{call.name}", "arguments": {call.text}}}\n</tool_call>'


def _repeating(choice: Choice, limit: int, random: Random) -> Choice:
    """A phrase of the answer over and over until the limit, or for long enough to be unmistakable."""
    source = choice.pieces or tuple(piece for call in choice.calls for piece in call.arguments) or ("again",)
    start = len(source) // 3
    phrase = source[start : start + 3 + int(random.random() * 6)] or source
    length = min(limit, max(240, 4 * len(source)))
    looped = (*source[:start], *(phrase * (length // len(phrase) + 1)))[:length]
    finish = "length" if length == limit else "stop"
    return replace(choice, pieces=looped, calls=(), finish=finish)


def _garbage(choice: Choice, ask: Ask, random: Random) -> Choice:
    length = max(24, choice.tokens)
    if random.random() < 0.5:
        return replace(choice, pieces=("!",) * length, calls=(), finish="stop")
    pieces = tuple("".join(random.choice(_JUNK) for _ in range(random.randint(1, 5))) for _ in range(length))
    return replace(choice, pieces=pieces, calls=(), finish="stop")


def _empty(choice: Choice, ask: Ask, random: Random) -> Choice:
    return replace(choice, pieces=(), calls=(), finish="stop")


def _truncated(choice: Choice, ask: Ask, random: Random) -> Choice:
    if choice.calls:
        first = choice.calls[0]
        cut = replace(first, arguments=first.arguments[: len(first.arguments) // 2])
        return replace(choice, calls=(cut,), finish="length")
    return replace(choice, pieces=choice.pieces[: max(1, len(choice.pieces) * 2 // 5)], finish="length")


def _wrong_citation(choice: Choice, ask: Ask, random: Random) -> Choice:
    markers = {source.marker for source in ask.sources}
    made_up = next(
        f"[{number}]" for number in range(90 + int(random.random() * 9), 999) if f"[{number}]" not in markers
    )
    return _with_text(choice, _MARKER.sub(lambda found: made_up if found[0] in markers else found[0], choice.text))


def _wrong_number(choice: Choice, ask: Ask, random: Random) -> Choice:
    def other(found: re.Match[str]) -> str:
        digit = int(found[0][-1])
        return found[0][:-1] + str((digit + 1 + int(random.random() * 8)) % 10)

    if choice.calls:
        return _with_arguments(choice, _NUMBER.sub(other, choice.calls[0].text))
    return _with_text(choice, _NUMBER.sub(other, choice.text))


def _reword(choice: Choice, ask: Ask, random: Random) -> Choice:
    return choice if choice.structured else replace(choice, pieces=tuple(reworded(choice.pieces, random)))


_DEFECTS: Mapping[str, Callable[[Choice, Ask, Random], Choice]] = {
    "broken_json": _broken_json,
    "schema_violation": _schema_violation,
    "wrong_tool": _wrong_tool,
    "wrong_arguments": _wrong_arguments,
    "leaked_tool_call": _leaked_tool_call,
    "garbage": _garbage,
    "empty": _empty,
    "truncated": _truncated,
    "wrong_citation": _wrong_citation,
    "wrong_number": _wrong_number,
    "reword": _reword,
}
