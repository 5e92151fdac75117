"""JSON Schema validation that a hostile schema can neither hang, crash nor send to the network.

Owns the fences around the jsonschema library: no reference leaves the schema, regular expressions run in RE2 (linear
time), every keyword evaluation is counted against a budget, and any other trouble makes the schema unusable instead
of raising. ``format`` stays an annotation, as the specification has it by default. Must not know tools or answers.
Called by the structure and tool checks.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final, NamedTuple, cast

import jsonschema
import msgspec
import re2
import referencing
from jsonschema import validators
from jsonschema.exceptions import SchemaError, ValidationError
from jsonschema_specifications import REGISTRY as SPECIFICATIONS  # type: ignore[import-untyped]  # ships no types

from gateway.core.assemble.exact_json import MAX_DEPTH, JsonProblemError, parse_exact, write_exact

STEP_BUDGET: Final = 20_000
"""Keyword evaluations per choice and check. An ordinary answer needs under 1,000."""

SCHEMA_CHARS: Final = 131_072
_META_BUDGET: Final = 200_000
_CACHED_SCHEMAS: Final = 256
_DRAFTS: Final[tuple[Any, ...]] = (
    jsonschema.Draft202012Validator,
    jsonschema.Draft201909Validator,
    jsonschema.Draft7Validator,
    jsonschema.Draft6Validator,
    jsonschema.Draft4Validator,
    jsonschema.Draft3Validator,
)

_Keyword = Callable[[Any, Any, Any, Any], Iterator[ValidationError] | None]


class Mismatch(msgspec.Struct, frozen=True):
    """Where an instance breaks its schema: the keyword, the path to the value, and the library's words for it."""

    keyword: str
    path: str
    message: str


class SchemaUnusableError(Exception):
    """The schema or its evaluation went out of bounds; says why in words that hold no instance data."""


class _BudgetSpentError(Exception):
    """More keyword evaluations than the budget allows."""


class StepBudget(jsonschema.FormatChecker):
    """Counts keyword evaluations; several validations may share one.

    It travels as the format checker, the one object that every subvalidator inherits.
    """

    def __init__(self, steps: int = STEP_BUDGET) -> None:
        super().__init__(formats=())
        self.left = steps

    def spend(self, steps: int) -> None:
        """Take steps off the budget; raises when it is spent."""
        self.left -= steps
        if self.left < 0:
            raise _BudgetSpentError


def first_mismatch(schema: Any, instance: Any, budget: StepBudget | None = None) -> Mismatch | None:
    """Validate a parsed instance; None = it matches. Raises `SchemaUnusableError` and nothing else.

    Which of several mismatches comes first follows the order of keywords in the schema. ``budget`` is shared by the
    validations of one choice; without it this one has a whole budget to itself.
    """
    if not isinstance(schema, dict | bool):
        raise SchemaUnusableError("the schema is neither an object nor a boolean")
    try:
        text = write_exact(schema)
    except RecursionError:
        raise SchemaUnusableError("the schema is nested too deeply") from None
    prepared = _prepared(text)
    if prepared.problem:
        raise SchemaUnusableError(prepared.problem)
    validator = prepared.kind(prepared.schema, registry=SPECIFICATIONS, format_checker=budget or StepBudget())
    try:
        error = next(validator.iter_errors(instance), None)
        return _mismatch(error) if error is not None else None
    except Exception as error:  # the library raises whatever a malformed schema makes it stumble over
        raise SchemaUnusableError(_reason(error)) from None


class _Prepared(NamedTuple):
    """A schema ready to validate with, or why it cannot be used."""

    kind: Any = None
    schema: Any = None
    problem: str = ""


@lru_cache(maxsize=_CACHED_SCHEMAS)
def _prepared(text: str) -> _Prepared:
    """Choose the draft and check the schema against its metaschema. A memo: equal text, equal result."""
    if len(text) > SCHEMA_CHARS:
        return _Prepared(problem=f"the schema is longer than {SCHEMA_CHARS} characters")
    try:
        schema = parse_exact(text)
    except JsonProblemError:
        return _Prepared(problem=f"the schema is nested deeper than {MAX_DEPTH} levels")
    if '"unevaluated' in text and ('Ref"' in text or '"$ref"' in text or '"patternProperties"' in text):
        # the library evaluates these together outside of the keywords, where no budget reaches
        return _Prepared(problem="unevaluated* together with references or patterns is not supported")
    declared = schema.get("$schema") if isinstance(schema, dict) else None
    plain: Any = validators.validator_for({"$schema": declared} if isinstance(declared, str) else True, _DRAFTS[0])
    kind = _BOUNDED.get(plain, _BOUNDED[_DRAFTS[0]])
    meta = kind(kind.META_SCHEMA, registry=SPECIFICATIONS, format_checker=StepBudget(_META_BUDGET))
    try:
        error = next(meta.iter_errors(schema), None)
    except Exception as problem:
        return _Prepared(problem=_reason(problem))
    if error is not None:
        return _Prepared(problem=f"the schema is not valid itself (keyword {error.validator})")
    return _Prepared(kind, schema)


def _reason(error: Exception) -> str:
    if isinstance(error, _BudgetSpentError):
        return f"validation needs more than {STEP_BUDGET} steps"
    if isinstance(error, RecursionError):
        return "the schema refers to itself without end or is nested too deeply"
    if isinstance(error, referencing.exceptions.Unresolvable):
        return "a $ref leads outside of the schema or to nothing"
    if isinstance(error, re2.error | SchemaError):
        return "a pattern of the schema is no RE2 expression"
    return f"the schema cannot be evaluated ({type(error).__name__})"


def _mismatch(error: ValidationError) -> Mismatch:
    path = "$" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.absolute_path)
    return Mismatch(str(error.validator or "false"), path, error.message[:200])


def _counted(name: str, keyword: _Keyword) -> _Keyword:
    """Wrap a keyword so that each evaluation is paid for, by the size of what it has to look through."""
    compares = name in {"const", "enum"}
    searches = name in {"pattern", "patternProperties", "additionalProperties"}

    def evaluate(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError] | None:
        steps = 1 + (_nodes(value) if compares else len(value) if isinstance(value, dict | list) else 0)
        if searches and isinstance(instance, str | dict):
            steps += len(instance) >> 8
        cast(StepBudget, validator.format_checker).spend(steps)
        return keyword(validator, value, instance, schema)

    return evaluate


def _nodes(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + sum(map(_nodes, value.values()))
    return 1 + sum(map(_nodes, value)) if isinstance(value, list) else 1


def _pattern(validator: Any, pattern: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if isinstance(instance, str) and not _search(pattern, instance):
        yield ValidationError("the string does not match the pattern")


def _pattern_properties(validator: Any, patterns: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if not isinstance(instance, dict):
        return
    for pattern, subschema in patterns.items():
        for name, value in instance.items():
            if _search(pattern, name):
                yield from validator.descend(value, subschema, path=name, schema_path=pattern)


def _additional_properties(validator: Any, subschema: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if not isinstance(instance, dict):
        return
    known = schema.get("properties", {})
    patterns = schema.get("patternProperties", {})
    extra = [name for name in instance if name not in known and not any(_search(pattern, name) for pattern in patterns)]
    for name in extra:
        if subschema is False:
            yield ValidationError("a property that the schema does not know")
        else:
            yield from validator.descend(instance[name], subschema, path=name)


def _multiple_of(validator: Any, step: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    # floats would make 4.35 no multiple of 0.01; what a float cannot hold is not judged
    if isinstance(instance, bool) or not isinstance(instance, int | float) or not math.isfinite(instance):
        return
    if Fraction(repr(float(instance) if isinstance(instance, float) else instance)) % Fraction(repr(step)):
        yield ValidationError("the number is not a multiple of the step")


def _unique_items(validator: Any, wanted: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if wanted is not True or not isinstance(instance, list):
        return
    seen = {write_exact(item, sort=True) for item in instance}
    if len(seen) < len(instance):
        yield ValidationError("the array holds an item twice")


def _search(pattern: str, text: str) -> bool:
    """Whether the pattern occurs in the text, in linear time. ECMA 262's ``\\d`` and friends mean the same in RE2."""
    return _compiled(pattern).search(text.encode("utf-8", "replace").decode()) is not None


@lru_cache(maxsize=_CACHED_SCHEMAS)
def _compiled(pattern: str) -> Any:
    options = re2.Options()
    options.max_mem = 1 << 20
    options.log_errors = False
    return re2.compile(pattern, options)


def _bounded(draft: Any) -> Any:
    """The draft's validator with counted keywords; those that would run foreign patterns or round are replaced."""
    own: Mapping[str, _Keyword] = {
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
        "uniqueItems": _unique_items,
        "multipleOf": _multiple_of,
    }
    keywords = {name: _counted(name, own.get(name, keyword)) for name, keyword in draft.VALIDATORS.items()}
    return cast(Any, validators).extend(draft, keywords)


_BOUNDED: Final[dict[Any, Any]] = {draft: _bounded(draft) for draft in _DRAFTS}
