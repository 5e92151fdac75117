"""Fragments join: tool calls by index, id, position; surrogate halves; digits of arguments given as objects."""

import json
from typing import Any

import pytest

from gateway.core.assemble import ToolCall, assemble
from tests.unit.core.assemble.streams import FIN_CALLS, USER, assembled, calls, chunk


def test_interleaved_calls_group_by_index() -> None:
    """B26: parallel calls whose fragments alternate do not mix."""
    answer = assembled(
        calls({"index": 0, "id": "c0", "function": {"name": "add", "arguments": ""}}),
        calls({"index": 1, "id": "c1", "function": {"name": "mul", "arguments": ""}}),
        calls({"index": 0, "function": {"arguments": '{"a":1}'}}),
        calls({"index": 1, "function": {"arguments": '{"b":2}'}}),
        FIN_CALLS,
    )
    assert (ToolCall("add", '{"a":1}', "c0"), ToolCall("mul", '{"b":2}', "c1")) == answer.choices[0].tool_calls


def test_calls_without_index_fall_back_to_id_then_position() -> None:
    """B28: an id joins fragments; without either, list position or the latest call does."""
    by_id = assembled(
        calls({"id": "c0", "function": {"name": "f", "arguments": '{"a"'}}),
        calls({"id": "c1", "function": {"name": "g", "arguments": "{}"}}),
        calls({"id": "c0", "function": {"arguments": ":1}"}}),
    )
    assert [(call.name, call.arguments) for call in by_id.choices[0].tool_calls] == [("f", '{"a":1}'), ("g", "{}")]
    latest = assembled(calls({"function": {"name": "f", "arguments": "{"}}), calls({"function": {"arguments": "}"}}))
    assert [(call.name, call.arguments) for call in latest.choices[0].tool_calls] == [("f", "{}")]
    position = assembled(
        calls({"function": {"name": "f", "arguments": "{"}}, {"function": {"name": "g", "arguments": "["}}),
        calls({"function": {"arguments": "}"}}, {"function": {"arguments": "]"}}),
    )
    assert [(call.name, call.arguments) for call in position.choices[0].tool_calls] == [("f", "{}"), ("g", "[]")]
    whole = assembled(
        calls({"function": {"name": "f", "arguments": "{}"}}), calls({"function": {"name": "f", "arguments": "{}"}})
    )
    assert len(whole.choices[0].tool_calls) == 2


def test_two_entries_of_one_index_are_one_call() -> None:
    """B30: header and first fragment in one list merge by index."""
    head = {"index": 0, "id": "c0", "function": {"name": "f", "arguments": ""}}
    answer = assembled(
        calls(head, {"index": 0, "function": {"arguments": '{"x":'}}),
        calls({"index": 0, "function": {"arguments": "1}"}}),
    )
    assert (ToolCall("f", '{"x":1}', "c0"),) == answer.choices[0].tool_calls


@pytest.mark.parametrize(
    "function",
    [
        {"name": "led"},
        {"name": "led", "arguments": ""},
        {"name": "led", "arguments": None},
        {"name": "led", "arguments": " "},
    ],
)
def test_missing_arguments_are_the_empty_object(function: dict[str, Any]) -> None:
    """B31, B32: absent, null and blank arguments read as {}."""
    assert (
        assembled(calls({"index": 0, "id": "c", "function": function}), FIN_CALLS).choices[0].tool_calls[0].arguments
        == "{}"
    )


def test_nulls_do_not_overwrite() -> None:
    """B33: id, type and name given as null in later fragments are absent."""
    answer = assembled(
        calls({"index": 0, "id": "c0", "type": "function", "function": {"name": "calc", "arguments": ""}}),
        calls({"index": 0, "id": None, "type": None, "function": {"name": None, "arguments": "{}"}}),
    )
    assert (ToolCall("calc", "{}", "c0"),) == answer.choices[0].tool_calls


def test_same_index_with_another_id_and_name_is_another_call() -> None:
    """A runtime that always says index 0 does not get its calls glued together."""
    answer = assembled(
        calls({"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}),
        calls({"index": 0, "id": "b", "function": {"name": "g", "arguments": "{}"}}),
    )
    assert [call.name for call in answer.choices[0].tool_calls] == ["f", "g"]


@pytest.mark.parametrize("same", [{"id": "c"}, {"id": ""}, {}, {"index": 0, "id": "c"}, {"index": 0, "id": ""}])
def test_calls_of_a_whole_answer_stay_apart_whatever_they_share(same: dict[str, Any]) -> None:
    """Some runtimes give every call one id, none, or index 0; there are as many calls as entries, equal ones too."""
    entries = [{**same, "function": {"name": name, "arguments": '{"a":1}'}} for name in ("f", "g", "g")]
    body = {"choices": [{"index": 0, "message": {"tool_calls": entries}, "finish_reason": "tool_calls"}]}
    found = assemble(USER, json.dumps(body).encode()).choices[0].tool_calls
    assert [(call.name, call.arguments, call.id) for call in found] == [
        (name, '{"a":1}', same.get("id", "")) for name in ("f", "g", "g")
    ]


@pytest.mark.parametrize("same", [{"id": "c"}, {"index": 0, "id": "c"}, {"index": 0, "id": ""}, {"index": 0}])
def test_another_name_after_arguments_is_another_call(same: dict[str, Any]) -> None:
    """In a stream too, in one list or one after the other; what follows belongs to the latter."""
    first = {**same, "function": {"name": "f", "arguments": "{}"}}
    second = {**same, "function": {"name": "g", "arguments": '{"b"'}}
    rest = {**same, "function": {"arguments": ":2}"}}
    for answer in (assembled(calls(first, second), calls(rest)), assembled(calls(first), calls(second), calls(rest))):
        assert [(call.name, call.arguments) for call in answer.choices[0].tool_calls] == [("f", "{}"), ("g", '{"b":2}')]


def test_name_that_comes_whole_again_is_not_doubled() -> None:
    """Some servers repeat the name in every fragment; fragments of a name still join."""
    again = assembled(
        calls({"index": 0, "function": {"name": "calc", "arguments": "{"}}),
        calls({"index": 0, "function": {"name": "calc", "arguments": "}"}}),
    )
    assert (ToolCall("calc", "{}"),) == again.choices[0].tool_calls
    split = assembled(calls({"index": 0, "function": {"name": "ca"}}), calls({"index": 0, "function": {"name": "lc"}}))
    assert split.choices[0].tool_calls[0].name == "calc"


def test_empty_tool_calls_are_no_calls() -> None:
    """B35: an empty list, and entries that say nothing, are no calls."""
    assert (
        assembled(chunk({"tool_calls": []}), calls({"index": 0, "function": {}}), FIN_CALLS).choices[0].tool_calls == ()
    )


def test_surrogate_halves_in_two_deltas_join() -> None:
    """B104: a split pair is the emoji; a lone half becomes U+FFFD and is counted."""
    event = 'data: {"choices":[{"index":0,"delta":{"content":"%s"}}]}\n\n'
    pair = assemble(USER, (event % "\\ud83d" + event % "\\ude00").encode())
    assert (pair.choices[0].text, pair.broken_unicode) == ("😀", 0)
    lone = assemble(USER, (event % "a\\ud83d").encode())
    assert (lone.choices[0].text, lone.broken_unicode) == ("a\ufffd", 1)


def test_object_arguments_keep_all_digits() -> None:
    """Arguments given as an object keep 20-digit numbers apart, in a stream and in a body."""
    for last in "12":
        entry = {
            "index": 0,
            "id": "c",
            "function": {"name": "f", "arguments": {"n": int("1234567890123456789" + last)}},
        }
        streamed = assembled(calls(entry)).choices[0].tool_calls[0].arguments
        body = {"choices": [{"index": 0, "message": {"tool_calls": [entry]}, "finish_reason": "tool_calls"}]}
        whole = assemble(USER, json.dumps(body).encode()).choices[0].tool_calls[0].arguments
        assert streamed == whole == f'{{"n":1234567890123456789{last}}}'
