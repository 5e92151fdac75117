"""JSON answers, leaf by leaf."""

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.assemble.exact_json import parse_exact
from gateway.core.comparison.structure import differences, json_similarity, read_arguments, read_json

SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=60)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=8), inner, max_size=5),
    max_leaves=25,
)


def parse(text: str) -> Any:
    return parse_exact(text)


def shuffled(value: Any, seed: int) -> Any:
    """The same value with its keys in another order."""
    if isinstance(value, dict):
        items = list(value.items())
        random.Random(seed).shuffle(items)
        return {key: shuffled(item, seed) for key, item in items}
    return [shuffled(item, seed) for item in value] if isinstance(value, list) else value


def test_b106_digits_are_exact() -> None:
    """B106: 20-digit numbers that differ in the last digit differ, and spelling a number otherwise is no difference."""
    assert json_similarity(parse("12345678901234567890"), parse("12345678901234567891")) == 0.0
    assert json_similarity(parse("0.12345678901234567890123"), parse("0.12345678901234567890124")) == 0.0
    assert json_similarity(parse("[1.0, 1e2, -0.0]"), parse("[1, 100, 0]")) == 1.0


@pytest.mark.parametrize(("left", "right"), [("true", "1"), ('"1"', "1"), ("null", '""'), ("{}", "[]"), ("false", "0")])
def test_types_are_never_equal_to_each_other(left: str, right: str) -> None:
    """JSON's types differ although Python's values compare equal."""
    assert json_similarity(parse(left), parse(right)) == 0.0


def test_a_missing_list_item_does_not_shift_the_rest() -> None:
    """One extracted row less costs one row, not all rows after it."""
    rows = [{"name": f"n{i}", "qty": i} for i in range(10)]
    assert json_similarity(rows, rows[1:]) == pytest.approx(2 * 18 / 38)


def test_more_wrong_leaves_agree_less() -> None:
    """Agreement falls leaf by leaf."""
    base = {f"k{i}": i for i in range(10)}
    scores = [json_similarity(base, {**base, **{f"k{i}": -1 - i for i in range(wrong)}}) for wrong in range(11)]
    assert scores == sorted(scores, reverse=True)
    assert (scores[0], scores[10]) == (1.0, 0.0)
    assert len(set(scores)) == 11


def test_prose_agrees_by_degrees_and_values_do_not() -> None:
    """A summary that is worded otherwise is not a wrong id."""
    left = "The customer asks for a refund because the parcel arrived broken."
    right = "The customer wants a refund because the parcel arrived broken."
    assert 0.5 < json_similarity({"s": left}, {"s": right}) < 1.0
    assert json_similarity({"id": "AB-1234"}, {"id": "AB-1235"}) == 0.0


@given(VALUES, st.integers())
def test_key_order_and_white_space_do_not_count(value: Any, seed: int) -> None:
    """The same value spelled in another key order and layout agrees in full."""
    left = parse(json.dumps(value))
    right = parse(json.dumps(shuffled(value, seed), indent=3, ensure_ascii=False))
    assert json_similarity(left, right) == 1.0
    assert differences(left, right) == []


@given(VALUES, VALUES)
def test_symmetric_and_bounded(left: Any, right: Any) -> None:
    """Which of two values is called the reference does not matter."""
    one, two = parse(json.dumps(left)), parse(json.dumps(right))
    assert json_similarity(one, two) == pytest.approx(json_similarity(two, one))
    assert 0.0 <= json_similarity(one, two) <= 1.0


@pytest.mark.parametrize(
    ("text", "value", "whole"),
    [
        ('{"a": 1}', {"a": 1}, True),
        ("  [1, 2]\n", [1, 2], True),
        ('Sure:\n```json\n{"a": 1}\n```\nDone.', {"a": 1}, False),
        ('The result is {"a": 1}.', {"a": 1}, False),
        ('Rows: [{"a": 1}, {"a": 2}] as asked', [{"a": 1}, {"a": 2}], False),
    ],
)
def test_json_is_found_where_models_put_it(text: str, value: Any, whole: bool) -> None:
    """The whole text, a fenced block, or an object in prose; only the first is ``whole``."""
    found = read_json(text)
    assert (found.found, found.value, found.whole) == (True, value, whole)


@pytest.mark.parametrize("text", ["Paris [1] and Rome [2]", "{not json}", "", "{", '{"a": NaN}'])
def test_what_is_no_json_is_not_found(text: str) -> None:
    """A citation is no list, and half an object is no object."""
    assert not read_json(text).found


def test_b107_deep_nesting_is_not_read() -> None:
    """B107: 20,000 brackets end as "too deep", not as a stack that ran out."""
    deep = "[" * 20_000 + "]" * 20_000
    assert read_json(deep) == read_json(deep)
    assert (read_json(deep).found, read_json(deep).too_deep) == (False, True)
    assert read_arguments('{"x":' + deep + "}").too_deep


def test_b32_blank_arguments_are_the_empty_object() -> None:
    """B31, B32: no arguments, blank ones and {} are one thing."""
    assert read_arguments("").value == read_arguments("  ").value == read_arguments("{}").value == {}


def test_differences_name_paths_and_spell_values_as_written() -> None:
    """A person sees where and what, with the original digits."""
    left = parse('{"a": {"b c": 1.50}, "l": [1, 2, 3]}')
    right = parse('{"a": {"b c": 1.6}, "l": [2, 3], "n": null}')
    assert differences(left, right) == [('$.a["b c"]', "1.50", "1.6"), ("$.l[0]", "1", ""), ("$.n", "", "null")]
