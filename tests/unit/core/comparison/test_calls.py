"""Tool calls of two answers."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.assemble.answer import ToolCall
from gateway.core.comparison.calls import CallsAgreement, compare_calls, pair_calls

ARGUMENTS = st.dictionaries(st.sampled_from("abc"), st.integers(0, 3) | st.text(max_size=3), max_size=3)
CALLS = st.lists(
    st.builds(lambda name, args: ToolCall(name, json.dumps(args)), st.sampled_from(["add", "mul", "run"]), ARGUMENTS),
    max_size=5,
)


def call(name: str, arguments: Any = None, **fields: Any) -> ToolCall:
    return ToolCall(name, arguments if isinstance(arguments, str) else json.dumps(arguments or {}), **fields)


def test_b26_parallel_calls_have_no_order() -> None:
    """B26: the same two calls in another order are the same answer."""
    left = [call("add", {"a": 1}, id="c0"), call("mul", {"b": 2}, id="c1")]
    assert compare_calls(left, left[::-1]) == CallsAgreement(1.0, 1.0)


def test_key_order_white_space_and_ids_do_not_count() -> None:
    """Arguments are values; ids are made up by the runtime."""
    left = [call("f", '{"a": 1, "b": [1, 2]}', id="x")]
    right = [call("f", '{"b":[1,2.0],\n "a":1e0}', id="y")]
    assert compare_calls(left, right) == CallsAgreement(1.0, 1.0)


@pytest.mark.parametrize("blank", ["", " ", "{}", "{ }"])
def test_b32_blank_arguments_equal_the_empty_object(blank: str) -> None:
    """B31, B32: a pool that writes "" and one that writes "{}" made the same call."""
    assert compare_calls([call("led_on", blank)], [call("led_on", "{}")]) == CallsAgreement(1.0, 1.0)


def test_b106_a_last_digit_is_another_call() -> None:
    """B106: account numbers that differ in the last of 20 digits differ."""
    left, right = call("pay", '{"to": 12345678901234567890}'), call("pay", '{"to": 12345678901234567891}')
    assert compare_calls([left], [right]) == CallsAgreement(1.0, 0.0)


def test_worse_calls_agree_less() -> None:
    """Same call > one argument off > another tool > no call at all."""
    base = [call("book", {"city": "Rome", "nights": 2, "guests": 1})]
    near = compare_calls(base, [call("book", {"city": "Rome", "nights": 3, "guests": 1})])
    other = compare_calls(base, [call("cancel", {"city": "Rome", "nights": 2, "guests": 1})])
    assert near.names == 1.0
    assert near.arguments == pytest.approx(2 / 3)
    assert (other.names, other.arguments) == (0.0, 0.0)
    assert compare_calls(base, []) == CallsAgreement(0.0, 0.0)
    assert compare_calls(base, base * 2) == CallsAgreement(pytest.approx(2 / 3), 0.5)  # type: ignore[arg-type]


def test_calls_are_paired_by_likeness() -> None:
    """Of two calls of one tool each finds its own counterpart."""
    left = [call("get", {"id": 1, "full": True}), call("get", {"id": 2, "full": True})]
    right = [call("get", {"id": 2, "full": False}), call("get", {"id": 1, "full": True})]
    found = pair_calls(left, right)
    assert [(p.left, p.right, p.arguments) for p in found] == [(left[0], right[1], 1.0), (left[1], right[0], 0.5)]


def test_arguments_that_are_no_json_agree_only_when_equal() -> None:
    """Broken arguments cannot be compared by degrees."""
    assert compare_calls([call("f", '{"a":')], [call("f", '{"a":')]).arguments == 1.0
    assert compare_calls([call("f", '{"a":')], [call("f", '{"a": 1}')]).arguments == 0.0


def test_custom_tools_take_text() -> None:
    """Free-text input is compared by words."""
    left = call("shell", "ls -la /var/log", custom=True)
    assert 0.5 < compare_calls([left], [call("shell", "ls -l /var/log", custom=True)]).arguments < 1.0
    assert compare_calls([left], [call("shell", '"ls"')]).arguments == 0.0


def test_b107_deep_arguments_are_marked() -> None:
    """B107: arguments nested beyond what is read say so; equal ones need no reading."""
    deep = '{"x":' + "[" * 5_000 + "]" * 5_000 + "}"
    assert compare_calls([call("f", deep)], [call("f", "{}")]).too_deep
    assert compare_calls([call("f", deep)], [call("f", deep)]) == CallsAgreement(1.0, 1.0)


@given(CALLS, CALLS, st.randoms(use_true_random=False))
def test_symmetric_bounded_and_order_free(left: list[ToolCall], right: list[ToolCall], rng: Any) -> None:
    """Agreement is the same both ways and however parallel calls are ordered; an answer agrees with itself."""
    found = compare_calls(left, right)
    mirrored = compare_calls(right, left)
    assert (found.names, found.arguments) == pytest.approx((mirrored.names, mirrored.arguments))
    assert 0.0 <= found.names <= 1.0 and 0.0 <= found.arguments <= 1.0
    shuffled = list(left)
    rng.shuffle(shuffled)
    assert compare_calls(left, shuffled) == CallsAgreement(1.0, 1.0)
