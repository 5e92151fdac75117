"""Group 4 of the cases: tool-call deltas pass unchanged, and the assembler that the checks use joins them rightly."""

import json
from typing import Any

import pytest

from gateway.core.assemble import assemble
from tests.cases.conftest import Lane
from tests.cases.messages import DONE, FIN_TOOLS, USAGE, answer, completion, r0, r0s, stream, tool

TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}
    for name in ("add", "mul", "f", "led_on", "calc")
]


def _relayed(lane: Lane, *events: bytes) -> list[tuple[str, str]]:
    """Relay the events; assert that they arrive unchanged; the calls as the assembler reads them."""
    lane.first.play(stream(*events, FIN_TOOLS, DONE))
    reply = lane.request(r0s(lane.model, tools=TOOLS))
    assert reply.body == b"".join(events) + FIN_TOOLS + DONE
    outcome = lane.outcome()
    assert (outcome["result"], outcome["finish_reason"]) == ("ok", "tool_calls")
    assembled = assemble(json.dumps(r0s(lane.model)).encode(), reply.body)
    return [(call.name, call.arguments) for call in assembled.choices[0].tool_calls]


def test_b26_interleaved_parallel_calls(lane: Lane) -> None:
    """Deltas are grouped by their index within the choice."""
    calls = _relayed(
        lane,
        tool({"index": 0, "id": "c0", "function": {"name": "add", "arguments": ""}}),
        tool({"index": 1, "id": "c1", "function": {"name": "mul", "arguments": ""}}),
        tool({"index": 0, "function": {"arguments": '{"a":1}'}}),
        tool({"index": 1, "function": {"arguments": '{"b":2}'}}),
    )
    assert calls == [("add", '{"a":1}'), ("mul", '{"b":2}')]


def test_b28_delta_without_index(lane: Lane) -> None:
    """Deltas without an index pass, and the assembler falls back on the id."""
    calls = _relayed(lane, tool({"id": "c0", "type": "function", "function": {"name": "f", "arguments": "{}"}}))
    assert calls == [("f", "{}")]


def test_b30_two_entries_for_one_index(lane: Lane) -> None:
    """Entries are merged by their logical index, not by their place in the list."""
    calls = _relayed(
        lane,
        tool(
            {"index": 0, "id": "c0", "function": {"name": "f", "arguments": ""}},
            {"index": 0, "function": {"arguments": '{"x":'}},
        ),
        tool({"index": 0, "function": {"arguments": "1}"}}),
    )
    assert calls == [("f", '{"x":1}')]


def test_b31_call_without_arguments(lane: Lane) -> None:
    """A call whose arguments never come breaks nothing."""
    calls = _relayed(lane, tool({"index": 0, "id": "c0", "type": "function", "function": {"name": "led_on"}}))
    assert [name for name, _ in calls] == ["led_on"]
    assert calls[0][1] in ("", "{}")


def test_b32_empty_arguments_in_the_history(lane: Lane) -> None:
    """History is not rewritten: ``arguments: ""`` reaches the pool as the client sent it, and so does an answer's."""
    call = {"id": "c0", "type": "function", "function": {"name": "f", "arguments": ""}}
    history = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c0", "content": "1"},
    ]
    payload = completion(choices=[_choice({"content": None, "tool_calls": [call]}, "tool_calls")])
    lane.first.play(answer(payload))
    reply = lane.request({"model": lane.model, "messages": history, "tools": TOOLS})
    assert lane.first.received[0].json["messages"] == history
    assert reply.json == payload


def test_b33_null_is_absent(lane: Lane) -> None:
    """Explicit nulls in a continuation do not overwrite the name."""
    calls = _relayed(
        lane,
        tool({"index": 0, "id": "c0", "function": {"name": "calc", "arguments": ""}}),
        tool({"index": 0, "id": None, "type": None, "function": {"name": None, "arguments": "{}"}}),
    )
    assert calls == [("calc", "{}")]


def _choice(message: dict[str, Any], finish: str) -> dict[str, Any]:
    return {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}


@pytest.mark.parametrize(
    ("message", "finish"),
    [
        ({"content": "hi", "tool_calls": []}, "tool_calls"),
        (
            {
                "content": None,
                "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
            },
            "stop",
        ),
    ],
    ids=["label-without-calls", "calls-without-label"],
)
def test_b35_label_and_calls_disagree(lane: Lane, message: dict[str, Any], finish: str) -> None:
    """An answer whose finish reason and calls disagree is relayed unchanged, with the label recorded as it was."""
    payload = json.dumps({"id": "a", "choices": [_choice(message, finish)], "usage": USAGE}).encode()
    lane.first.play(answer(payload))
    reply = lane.request(r0(lane.model, tools=TOOLS))
    assert reply.body == payload
    assert lane.outcome()["finish_reason"] == finish
