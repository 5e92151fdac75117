"""What pydantic says about a policy, in the words of the person who wrote it: place, fault, mend.

Never repeats a value that could be a secret. Called by ``load``.
"""

from functools import cache
from typing import Any

import orjson
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from gateway.errors import PolicyError
from gateway.policy.schema import Policy
from gateway.policy.schema.values import did_you_mean
from gateway.policy.tree import Path, Tree, dotted

_EXPECTED = {
    "string_type": "text expected",
    "bool_type": "true or false expected",
    "int_type": "a whole number expected",
    "int_parsing": "a whole number expected",
    "int_from_float": "a whole number expected",
    "float_type": "a number expected",
    "float_parsing": "a number expected",
    "list_type": "a list expected",
    "dict_type": "a mapping expected",
    "model_type": "a mapping expected",
    "model_attributes_type": "a mapping expected",
}
_BOUNDS = {
    "greater_than_equal": "must be at least {ge:g}",
    "greater_than": "must be above {gt:g}",
    "less_than_equal": "must be at most {le:g}",
    "less_than": "must be below {lt:g}",
    "string_too_long": "longer than {max_length} characters",
}


@cache
def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema of a document."""
    return model.model_json_schema(by_alias=True, mode="validation")


def json_schema() -> dict[str, Any]:
    """The policy's JSON schema, for editors; ``x-`` keys may hold anchors."""
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return {**head, **schema_of(Policy), "title": "Quantgate policy", "patternProperties": {"^x-": {}}}


def explain_rejection(error: ValidationError, tree: Tree, model: type[BaseModel] = Policy) -> list[PolicyError]:
    """One finding per fault of a document that ``model`` refused."""
    return [_finding(detail, tree, model) for detail in error.errors(include_url=False, include_input=True)]


def _finding(detail: ErrorDetails, tree: Tree, model: type[BaseModel]) -> PolicyError:
    path: Path = tuple(step for step in detail["loc"] if step != "[key]")
    kind = detail["type"]
    context: dict[str, Any] = detail.get("ctx") or {}
    place = tree.place(path)
    if kind == "extra_forbidden":
        key = str(path[-1])
        known = known_keys(model, path[:-1])
        mend = did_you_mean(key, known) or (f"known here: {', '.join(known)}" if known else "")
        return tree.keys.get(path, place).finding(f"unknown key {dotted(path)}", mend)
    if kind == "missing":
        return place.finding(f"{dotted(path)} is missing")
    if kind == "policy":
        return place.finding(f"{dotted(path)}: {context['message']}", context["mend"])
    if detail["loc"] and detail["loc"][-1] == "[key]":
        place = tree.keys.get(path, place)
    return place.finding(f"{dotted(path)}: {_words(kind, context, detail)}", _mend(detail, known_keys(model, path)))


def _words(kind: str, context: dict[str, Any], detail: ErrorDetails) -> str:
    if kind in _EXPECTED:
        given = detail["input"]
        return _EXPECTED[kind] + ("" if given is not None else ", but there is nothing")
    if kind in _BOUNDS:
        return _BOUNDS[kind].format(**context)
    if kind in ("too_short", "string_too_short"):
        return "must not be empty" if context.get("min_length") == 1 else f"needs at least {context.get('min_length')}"
    if kind == "literal_error":
        return f"{context.get('expected')} expected"
    return detail["msg"][:1].lower() + detail["msg"][1:]


def _mend(detail: ErrorDetails, keys: list[str]) -> str:
    """What to write instead, by what stands there; ``keys``: those that the language knows at this place."""
    kind, given = detail["type"], detail["input"]
    if given is None:
        return "give it a value, or leave the key out"
    if kind == "too_short":
        return "name at least one"
    if kind == "string_type" and isinstance(given, int | float):
        return "put it in quotes"
    if kind == "string_type":
        return "write one word here, and nothing beside it"
    if kind == "bool_type":
        return "write true or false, without quotes; yes, no, on and off are words"
    if _EXPECTED.get(kind) == "a list expected":
        return "begin every item with `- `" if isinstance(given, dict) else "put brackets around it: [ … ]"
    if _EXPECTED.get(kind) == "a mapping expected":
        return f"keys here: {', '.join(keys)}" if keys else "write `name: value`, a line for each"
    return ""


def known_keys(model: type[BaseModel], path: Path) -> list[str]:
    """The keys that the language of ``model`` knows at ``path``."""
    whole = schema_of(model)
    schemas = [whole]
    for step in path:
        schemas = [inner for schema in schemas for inner in _descend(whole, schema, step)]
    return sorted({key for schema in schemas for flat in _flat(whole, schema) for key in flat.get("properties", {})})


def _descend(whole: dict[str, Any], schema: dict[str, Any], step: str | int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for flat in _flat(whole, schema):
        if isinstance(step, int):
            found += [flat["items"]] if isinstance(flat.get("items"), dict) else []
        elif step in flat.get("properties", {}):
            found.append(flat["properties"][step])
        elif isinstance(flat.get("additionalProperties"), dict):
            found.append(flat["additionalProperties"])
    return found


def _flat(whole: dict[str, Any], schema: dict[str, Any]) -> list[dict[str, Any]]:
    """The alternatives of a schema, references followed."""
    if (reference := schema.get("$ref")) is not None:
        return _flat(whole, whole["$defs"][reference.rsplit("/", 1)[-1]])
    alternatives = schema.get("anyOf")
    return [flat for inner in alternatives for flat in _flat(whole, inner)] if alternatives else [schema]


def schema_text() -> str:
    """The file ``schema.json`` as it should be."""
    return orjson.dumps(json_schema(), option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS).decode() + "\n"
