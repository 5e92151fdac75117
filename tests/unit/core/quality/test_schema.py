"""JSON Schema validation that no schema can hang, crash or send outside."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.assemble import parse_exact
from gateway.core.quality.schema import SchemaUnusableError, StepBudget, first_mismatch

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("instance", "keyword", "path"),
    [
        ({"name": 1}, "type", "$.name"),
        ({}, "required", "$"),
        ({"name": "a", "x": 1}, "additionalProperties", "$"),
        ([], "type", "$"),
    ],
)
def test_mismatch_names_keyword_and_place(instance: Any, keyword: str, path: str) -> None:
    """A person can find what is wrong."""
    found = first_mismatch(PERSON, instance)
    assert found is not None
    assert (keyword, path) == (found.keyword, found.path)


@pytest.mark.parametrize(
    ("schema", "instance", "matches"),
    [
        (PERSON, {"name": "a", "age": 3}, True),
        (True, 1, True),
        (False, 1, False),
        ({"multipleOf": 0.01}, 4.35, True),
        ({"multipleOf": 0.01}, 4.355, False),
        ({"uniqueItems": True}, [1, True, "1", 1.5], True),
        ({"uniqueItems": True}, [{"a": 1, "b": 2}, {"b": 2, "a": 1}], False),
        ({"pattern": "^\\d+$"}, "123", True),
        ({"pattern": "^\\d+$"}, "12a", False),
        ({"patternProperties": {"^x_": {"type": "integer"}}, "additionalProperties": False}, {"x_a": 1}, True),
        ({"patternProperties": {"^x_": {"type": "integer"}}, "additionalProperties": False}, {"y": 1}, False),
        ({"patternProperties": {"^x_": {"type": "integer"}}}, {"x_a": "1"}, False),
        ({"additionalProperties": {"type": "integer"}}, {"a": "1"}, False),
        (
            {"$defs": {"n": {"type": "object", "properties": {"c": {"$ref": "#/$defs/n"}}}}, "$ref": "#/$defs/n"},
            {"c": {"c": 1}},
            False,
        ),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "string"}]}, [1], False),
        ({"$schema": "http://json-schema.org/draft-04/schema#", "minimum": 3, "exclusiveMinimum": True}, 3, False),
        ({"format": "email"}, "not an email", True),
    ],
)
def test_keywords(schema: Any, instance: Any, matches: bool) -> None:
    """The replaced keywords mean what the specification says; drafts are told apart; format is an annotation."""
    assert matches == (first_mismatch(schema, instance) is None)


def test_exact_numbers_validate() -> None:
    """A number that keeps its digits is a number to the schema."""
    assert first_mismatch({"type": "integer"}, parse_exact("12345678901234567890123")) is None
    assert first_mismatch({"type": "number", "multipleOf": 0.01}, parse_exact("4.350")) is None


def _doubling(levels: int) -> dict[str, Any]:
    definitions: dict[str, Any] = {f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(levels)}
    definitions[f"a{levels}"] = {"type": "string"}
    return {"$defs": definitions, "$ref": "#/$defs/a0"}


def _nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {"allOf": [schema]}
    return schema


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"$ref": "https://example.invalid/x.json"},
        {"$ref": "file:///etc/hostname"},
        {"$ref": "#/$defs/none"},
        {"$dynamicRef": "https://example.invalid/x"},
        _doubling(40),
        _nested(150),
        _nested(5000),
        {"pattern": "(?=look)ahead"},
        {"pattern": "a{1000}{1000}"},
        {"type": "strin"},
        {"required": "name"},
        {"properties": []},
        {"unevaluatedProperties": False, "patternProperties": {"(a+)+$": True}},
        {"description": "x" * 200_000},
        [],
        "text",
        None,
    ],
)
def test_hostile_schemas_are_unusable_and_not_dangerous(schema: Any) -> None:
    """Endless, remote, exponential, deep, malformed and oversized schemas end in one error, quickly."""
    with pytest.raises(SchemaUnusableError):
        first_mismatch(schema, "x")


def test_catastrophic_pattern_runs_in_linear_time() -> None:
    """The classic exponential pattern is decided, since RE2 runs it."""
    assert first_mismatch({"pattern": "^(a+)+$"}, "a" * 5000 + "b") is not None


def test_no_reference_reaches_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing opens a URL, whatever the library's default would do."""
    import urllib.request

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("opened a URL")

    monkeypatch.setattr(urllib.request, "urlopen", refuse)
    with pytest.raises(SchemaUnusableError, match="outside"):
        first_mismatch({"$ref": "http://127.0.0.1:9/x.json"}, 1)


def test_budget_is_shared() -> None:
    """Several validations of one choice spend one budget."""
    budget = StepBudget(50)
    with pytest.raises(SchemaUnusableError, match="steps"):
        for _ in range(100):
            first_mismatch(PERSON, {"name": "a", "age": 1}, budget)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
WORDS = [
    "type",
    "properties",
    "items",
    "required",
    "allOf",
    "anyOf",
    "not",
    "enum",
    "const",
    "$ref",
    "pattern",
    "minimum",
    "additionalProperties",
    "if",
    "then",
    "contains",
    "multipleOf",
    "$schema",
    "$id",
    "$dynamicRef",
]


@given(
    st.recursive(JSON, lambda inner: st.dictionaries(st.sampled_from(WORDS), inner, max_size=4), max_leaves=10), JSON
)
def test_any_schema_gives_a_verdict_or_its_own_error(schema: Any, instance: Any) -> None:
    """Random schemas made of real keywords never raise anything else."""
    try:
        first_mismatch(schema, instance)
    except SchemaUnusableError as error:
        assert str(error)
