"""The Responses API: string and item inputs, stored conversations, text formats."""

from typing import Any

import orjson
import pytest

from gateway.core.openai import read
from gateway.errors import ApiError
from gateway.model.enums import Api, Structured, ToolUse
from gateway.model.facts import Reading

HI = [{"role": "user", "content": "hi"}]


def responses(given: Any = HI, **fields: Any) -> Reading:
    """A request, read. ``...`` leaves ``input`` out."""
    body = {"model": "m", **fields} if given is ... else {"model": "m", "input": given, **fields}
    return read(Api.RESPONSES, orjson.dumps(body))


def test_string_input() -> None:
    """A bare string is one user message."""
    reading = responses("hi there", instructions="Be brief.", max_output_tokens=9, stream=True)
    facts = reading.facts
    assert (reading.texts.system, reading.texts.user) == ("Be brief.", "hi there")
    assert (facts.messages, facts.turns, facts.max_output_tokens, facts.stream) == (1, 1, 9, True)
    assert facts.text_bytes == len("hi there") + len("Be brief.")


def test_items() -> None:
    """Messages, calls, results, images and reasoning in one list."""
    reading = responses(
        [
            {"role": "developer", "content": "Rules."},
            {
                "type": "message",
                "role": "user",
                "content": [{"type": "input_text", "text": "look"}, {"type": "input_image"}],
            },
            {"type": "reasoning", "summary": []},
            {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "42"},
        ],
        tools=[{"type": "function", "name": "f"}],
    )
    facts = reading.facts
    assert (reading.texts.system, reading.texts.user) == ("Rules.", "look")
    assert (facts.tool_use, facts.images, facts.tools) == (ToolUse.LOOP, 1, ("f",))
    assert reading.texts.parts[:5] == ("Rules.", "look", "f", "{}", "42")


def test_custom_tool_output_and_the_end_of_a_loop() -> None:
    """Any kind of call output keeps the loop; a message after it ends it."""
    output = {"type": "custom_tool_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "x"}]}
    assert responses([*HI, output]).facts.tool_use is ToolUse.LOOP
    assert responses([*HI, output, *HI]).facts.tool_use is ToolUse.NONE


@pytest.mark.parametrize(
    ("fields", "stored"),
    [
        ({"previous_response_id": "r1"}, True),
        ({"conversation": "c1"}, True),
        ({"store": True}, True),
        ({"store": False}, False),
        ({"previous_response_id": None}, False),
    ],
)
def test_server_state(fields: dict[str, Any], stored: bool) -> None:
    """A request that leans on what a server keeps cannot go to another server."""
    assert responses(**fields).facts.server_state is stored


@pytest.mark.parametrize("fields", [{"previous_response_id": "r1"}, {"prompt": {"id": "p"}}, {"conversation": "c"}])
def test_input_may_be_stored_instead(fields: dict[str, Any]) -> None:
    """With a stored conversation or prompt there may be no input."""
    assert responses(..., **fields).facts.messages == 0
    assert responses([], **fields).facts.messages == 0


@pytest.mark.parametrize(
    ("fields", "structured"),
    [
        ({}, Structured.NONE),
        ({"text": None}, Structured.NONE),
        ({"text": {"verbosity": "low"}}, Structured.NONE),
        ({"text": {"format": {"type": "text"}}}, Structured.NONE),
        ({"text": {"format": {"type": "json_schema", "name": "x", "schema": {}}}}, Structured.JSON_SCHEMA),
    ],
)
def test_text_format(fields: dict[str, Any], structured: Structured) -> None:
    """``text.format`` is this API's ``response_format``."""
    assert responses(**fields).facts.structured is structured


@pytest.mark.parametrize(
    ("given", "fields", "param"),
    [
        (..., {}, "input"),
        ([], {}, "input"),
        (3, {}, "input"),
        ([3], {}, "input[0]"),
        ([{"type": 3}], {}, "input[0].type"),
        ([{"role": [], "content": "x"}], {}, "input[0].role"),
        ([{"role": "user", "content": 3}], {}, "input[0].content"),
        (HI, {"instructions": 3}, "instructions"),
        (HI, {"text": []}, "text"),
        (HI, {"text": {"format": 3}}, "text.format"),
    ],
)
def test_faults_name_the_field(given: Any, fields: dict[str, Any], param: str) -> None:
    """A 400 points at the field."""
    with pytest.raises(ApiError) as caught:
        responses(given, **fields)
    assert (caught.value.status, caught.value.param) == (400, param)


def test_odd_but_harmless_shapes() -> None:
    """Absent content and output, a result without an id, an item of an unknown type."""
    reading = responses(
        [{"role": "user"}, {"type": "item_reference", "id": "x"}, {"role": None}, {"type": "function_call_output"}]
    )
    assert reading.texts.parts == ()
    assert reading.facts.tool_use is ToolUse.LOOP
