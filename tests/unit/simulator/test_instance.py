"""Instances of schemas."""

from random import Random
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.simulator.instance import instance_of

SCALARS = st.one_of(
    st.just({"type": "boolean"}),
    st.just({"type": "null"}),
    st.builds(
        lambda low, span: {"type": "integer", "minimum": low, "maximum": low + span},
        st.integers(-50, 50),
        st.integers(0, 20),
    ),
    st.builds(
        lambda low, span: {"type": "number", "exclusiveMinimum": low, "maximum": low + span},
        st.integers(-50, 50),
        st.integers(1, 20),
    ),
    st.builds(
        lambda low, span: {"type": "string", "minLength": low, "maxLength": low + span},
        st.integers(0, 30),
        st.integers(0, 10),
    ),
    st.just({"type": "string", "pattern": "^[a-z]{2,5}$"}),
    st.lists(st.one_of(st.integers(), st.text(max_size=5)), min_size=1, max_size=4).map(
        lambda values: {"enum": values}
    ),
    st.integers().map(lambda value: {"const": value}),
    st.just({"type": ["string", "null"]}),
    st.just({"type": "integer", "multipleOf": 7}),
)


def _objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    properties = st.dictionaries(st.sampled_from("abcde"), inner, min_size=1, max_size=4)
    return properties.flatmap(
        lambda found: st.lists(st.sampled_from(sorted(found)), unique=True).map(
            lambda needed: {"type": "object", "properties": found, "required": needed, "additionalProperties": False}
        )
    )


SCHEMAS = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        _objects(inner),
        st.builds(
            lambda item, low: {"type": "array", "items": item, "minItems": low, "maxItems": low + 2},
            inner,
            st.integers(0, 3),
        ),
        st.lists(inner, min_size=1, max_size=3).map(lambda found: {"anyOf": found}),
    ),
    max_leaves=8,
)


@settings(max_examples=300, deadline=None)
@given(SCHEMAS, st.integers())
def test_instances_are_valid(schema: dict[str, Any], seed: int) -> None:
    """What is built from a schema is accepted by it."""
    jsonschema.validate(instance_of(schema, Random(seed), ["whale", "ocean"]), schema)


TREE = {
    "$defs": {
        "node": {
            "type": "object",
            "properties": {
                "value": {"type": "integer"},
                "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]},
            },
            "required": ["value", "next"],
        }
    },
    "$ref": "#/$defs/node",
}


@pytest.mark.parametrize(
    "schema",
    [
        TREE,
        {
            "allOf": [
                {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
                {"required": ["b"]},
            ]
        },
        {"type": "object", "required": ["x"]},
        {"type": "object", "minProperties": 3},
        {"prefixItems": [{"type": "integer"}, {"type": "string"}], "items": False, "type": "array"},
        {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 5}, "uniqueItems": True, "minItems": 4},
        {"type": "string", "format": "date-time"},
        {"properties": {"a": True}},
        {"minimum": 3},
        {},
    ],
)
def test_shapes_of_real_requests(schema: dict[str, Any]) -> None:
    """Recursion, combinations and unusual keys end in valid instances too."""
    for seed in range(30):
        jsonschema.validate(instance_of(schema, Random(seed), ["word"]), schema)


def test_true_and_false() -> None:
    """A boolean schema gives something, or null where nothing is allowed."""
    assert instance_of(True, Random(1), ["w"]) == "w"
    assert instance_of(False, Random(1), ["w"]) is None
