"""How people write numbers, durations, shares and names, and the one normal form each of them has.

Every parser accepts its own normal form again, so a published policy reads back as itself. In a file a number without
its unit could mean two things, so what people are shown (``shown``) has units. Errors say what was expected and
never repeat a value that could be a secret. Pure; called by pydantic.
"""

import re
from collections.abc import Callable, Iterable
from typing import Annotated, Any, ClassVar, Literal, NoReturn, Self, TypeVar, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    PlainSerializer,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema
from rapidfuzz import fuzz, process

from gateway.policy.numbers import WrittenFloat, as_written
from gateway.policy.schema.shown import duration_shown

_NUMBER = re.compile(r"\s*([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)\s*([A-Za-z%]*)\s*")
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|[smhdwy])\s*")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0, "y": 31_557_600.0}
_BINARY = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3}
_DECIMAL = {"": 1, "k": 1000, "m": 1_000_000, "g": 1_000_000_000}
_BYTES = {**_BINARY, "b": 1, "kb": 1000, "mb": 1000**2, "gb": 1000**3, "kib": 1024, "mib": 1024**2, "gib": 1024**3}
_MOST = 2**53


class Strict(BaseModel):
    """Base of every section: unknown keys are errors, and so are keys with nothing behind them, except where
    ``null_means_none`` says that a missing thing is expected. Values are not changed after reading."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    null_means_none: ClassVar[bool] = False

    @field_validator("*", mode="before")
    @classmethod
    def _something(cls, value: object, info: ValidationInfo) -> object:
        """Read as if the key were not there, an empty `kv_cache:` would take a requirement away in silence. Where a
        value is needed anyway, its type says what is missing."""
        field = cls.model_fields[info.field_name or ""]
        if value is None and not cls.null_means_none and type(None) in get_args(field.annotation):
            refuse("there is nothing here", "give it a value, or leave the key out")
        return value


class SomeKeys(Strict):
    """Base of what asks for something: without a key it would ask for nothing, and that in silence."""

    @model_validator(mode="after")
    def _some_keys(self) -> Self:
        if not self.model_fields_set:
            refuse("nothing is named here", f"name at least one of {', '.join(type(self).model_fields)}")
        return self


def refuse(message: str, mend: str = "") -> NoReturn:
    """Reject a value: ``message`` says what is wrong, ``mend`` how to put it right."""
    raise PydanticCustomError("policy", "{message}", {"message": message, "mend": mend})


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A mend that names the nearest known word; empty if none is near."""
    found = process.extractOne(word, list(known), scorer=fuzz.WRatio, processor=str.lower, score_cutoff=65)
    return f"did you mean '{found[0]}'?" if found else ""  # a member of an enumeration is its value


def _parsed(value: object, units: dict[str, int], expected: str) -> float:
    """``value`` as a plain number, with its unit multiplied in."""
    if isinstance(value, bool) or value is None:
        refuse(f"{expected} expected")
    if isinstance(value, int | float):
        number = float(value)
    else:
        match = _NUMBER.fullmatch(value) if isinstance(value, str) else None
        if match is None or match[2].lower() not in units:
            refuse(f"{expected} expected")
        number = float(match[1]) * units[match[2].lower()]
    if not 0 <= number <= _MOST:
        refuse(f"{expected} expected, and not below 0 or beyond all measure")
    return number


def _whole(units: dict[str, int], expected: str, least: int, likely: str = "") -> Callable[[object], int]:
    """``likely``: the unit that was forgotten where a number is below ``least``."""

    def parse(value: object) -> int:
        number = _parsed(value, units, expected)
        if number != int(number):
            refuse(f"{expected} expected, without a fraction")
        if number < least:
            bare = likely and str(value).strip().isdecimal()
            refuse(f"{expected} expected, at least {least}", f"did you mean {number:g}{likely}?" if bare else "")
        return int(number)

    return parse


def _rate(value: object) -> float:
    number = _parsed(value, _DECIMAL, "a number such as 600, 6k or 4e6")
    if number <= 0:
        refuse("a number above 0 expected", "leave the key out for no limit")
    return number


def read_duration(value: object) -> float:
    """Seconds of a duration such as ``500ms``, ``1h30m``, or a plain float."""
    expected = "a duration such as 500ms, 2s, 5m, 24h, 7d"
    if isinstance(value, bool) or value is None:
        refuse(f"{expected} expected")
    if isinstance(value, int | WrittenFloat):
        refuse(f"{expected} expected", f"did you mean {as_written(value)}s?")
    if isinstance(value, float):
        seconds = value
    else:
        text = value.strip() if isinstance(value, str) else ""
        parts = list(_DURATION_PART.finditer(text))
        if not parts or "".join(part[0] for part in parts) != text:
            refuse(f"{expected} expected")
        seconds = sum(float(part[1]) * _SECONDS[part[2]] for part in parts)
    if not 0 <= seconds <= 100 * _SECONDS["y"]:
        refuse(f"{expected} expected, at most 100 years")
    return float(seconds)


def read_share(value: object) -> float:
    """A share such as ``5%`` or ``0.05`` as a number from 0 to 1; a whole number other than 0 is ambiguous."""
    expected = "a share such as 5% or 0.05"
    if isinstance(value, bool) or value is None:
        refuse(f"{expected} expected")
    if isinstance(value, int) and value != 0:
        refuse(f"{expected} expected", f"did you mean {value}%?")
    if isinstance(value, int | float):
        number = float(value)
    else:
        match = _NUMBER.fullmatch(value) if isinstance(value, str) else None
        if match is None or match[2] not in ("", "%"):
            refuse(f"{expected} expected")
        number = float(match[1]) / (100.0 if match[2] else 1.0)
    if not 0 <= number <= 1:
        bare = isinstance(value, str) and "%" not in value and number <= 100
        refuse("a share lies between 0% and 100%", f"did you mean {number:g}%?" if bare else "")
    return round(number, 12)


def _positive(number: float) -> float:
    if number <= 0:
        refuse("must be above 0")
    return number


def _of_traffic(share: float) -> float:
    """Traffic is dealt out in steps of 0.01%: a smaller share would be none, and said to nobody."""
    if 0 < share < 0.0001:
        refuse("traffic is shared in steps of 0.01%, and this is less", "write at least 0.01%")
    return share


def _one_or_many(value: object) -> object:
    """A single word stands for a list of one."""
    return [value] if isinstance(value, str | int | float) else value


def _distinct(values: list[Any]) -> list[Any]:
    said = [str(value) for value in values]
    for value in said:
        if said.count(value) > 1:
            refuse(f"the list names {value!r} twice", "name each once")
    return values


def _not_empty(values: list[Any]) -> list[Any]:
    if not values:
        refuse("the list is empty", "leave the key out, or name at least one")
    return values


def _named(pattern: str, kind: str, rule: str) -> Callable[[str], str]:
    compiled = re.compile(pattern)

    def check(value: str) -> str:
        if not compiled.fullmatch(value):
            refuse(f"{value!r} cannot be the name of {kind}", rule)
        return value

    return check


def _schema(description: str, *types: str, **more: object) -> WithJsonSchema:
    return WithJsonSchema({"type": list(types) if len(types) > 1 else types[0], "description": description, **more})


_TOKENS = "tokens: 4096, 32k (k = 1024), 1m"
_COUNT = "a count: 600, 6k (k = 1000), 4e6"

Tokens = Annotated[int, BeforeValidator(_whole(_BINARY, _TOKENS, 0)), _schema(_TOKENS, "integer", "string")]
Count = Annotated[int, BeforeValidator(_whole(_DECIMAL, _COUNT, 1)), _schema(_COUNT, "integer", "string")]
CountFromZero = Annotated[int, BeforeValidator(_whole(_DECIMAL, _COUNT, 0)), _schema(_COUNT, "integer", "string")]
_SIZE = "bytes: 64k, 32MiB"
Size = Annotated[int, BeforeValidator(_whole(_BYTES, _SIZE, 1024, "MiB")), _schema(_SIZE, "integer", "string")]
Rate = Annotated[float, BeforeValidator(_rate), _schema("a rate: 600, 6k, 4e6", "number", "string")]
Duration = Annotated[
    float,
    BeforeValidator(read_duration),
    PlainSerializer(duration_shown),
    _schema("a duration: 500ms, 2s, 5m, 24h, 7d", "number", "string"),
]
PositiveDuration = Annotated[Duration, AfterValidator(_positive)]
Share = Annotated[float, BeforeValidator(read_share), _schema("a share: 5% or 0.05", "number", "string")]
PositiveShare = Annotated[Share, AfterValidator(_positive)]
TrafficShare = Annotated[Share, AfterValidator(_of_traffic)]
StageShare = Annotated[TrafficShare, AfterValidator(_positive)]
Ratio = Annotated[float, Field(gt=0, le=1000, allow_inf_nan=False)]

_NAME_RULE = "letters, digits, '.', '_' and '-', at most 63, the first a letter or digit"
_WORD_RULE = "lower-case letters, digits, '_' and '-', at most 40, the first a letter"
Name = Annotated[str, AfterValidator(_named(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", "a pool, tenant or rule", _NAME_RULE))]
ServedName = Annotated[
    str,
    AfterValidator(
        _named(
            r"[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,199}",
            "a model or adapter",
            "letters, digits and . _ : / @ + -, at most 200",
        )
    ),
]
Word = Annotated[str, AfterValidator(_named(r"[a-z][a-z0-9_-]{0,39}", "a class", _WORD_RULE))]


class Among:
    """Metadata of a closed set of words: checks membership, suggests the nearest, and lists the words to editors."""

    def __init__(self, words: Iterable[str]) -> None:
        self.words = tuple(words)

    def _check(self, value: str) -> str:
        if value not in self.words:
            refuse(f"{value!r} is not one of {', '.join(self.words)}", did_you_mean(value, self.words))
        return value

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"enum": list(self.words)}


class OrSingle:
    """Tells editors that a bare item may stand where a list is expected."""

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        array = handler(core)
        return {"anyOf": [array["items"], array]}


class OrAlso:
    """Tells editors of a shorthand that is read too; ``shorthand`` is its JSON schema."""

    def __init__(self, shorthand: JsonSchemaValue) -> None:
        self._shorthand = shorthand

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"anyOf": [handler(core), self._shorthand]}


T = TypeVar("T")
Many = Annotated[
    list[T], BeforeValidator(_one_or_many), AfterValidator(_not_empty), AfterValidator(_distinct), OrSingle()
]
Distinct = Annotated[list[T], AfterValidator(_distinct)]


def as_presence(value: object) -> object:
    """``true`` and ``false`` are read as ``present`` and ``absent``."""
    return ("present" if value else "absent") if isinstance(value, bool) else value


Presence = Annotated[
    Literal["present", "absent"],
    BeforeValidator(as_presence),
    WithJsonSchema({"enum": ["present", "absent", True, False]}),
]
