"""Anthropic's Messages API: system in two forms, content blocks, tool results inside user messages."""

from typing import Any

import orjson
import pytest

from gateway.core.openai import read
from gateway.errors import ApiError
from gateway.model.enums import Api, ToolUse
from gateway.model.facts import Reading

HI = [{"role": "user", "content": "hi"}]
USE = {"type": "tool_use", "id": "t1", "name": "f", "input": {"a": 1}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "42"}


def messages(given: Any = HI, **fields: Any) -> Reading:
    """A request, read."""
    return read(Api.MESSAGES, orjson.dumps({"model": "m", "messages": given, "max_tokens": 9, **fields}))


@pytest.mark.parametrize("system", ["Be brief.", [{"type": "text", "text": "Be brief."}]])
def test_system_in_both_forms(system: Any) -> None:
    """A string and blocks are the same system text."""
    reading = messages(system=system)
    assert (reading.texts.system, reading.texts.user) == ("Be brief.", "hi")
    assert reading.facts.max_output_tokens == 9


def test_tool_loop() -> None:
    """A last user message of tool results is a loop; the question before it stays the user's text."""
    reading = messages(
        [
            *HI,
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}, USE]},
            {"role": "user", "content": [RESULT]},
        ],
        tools=[{"name": "f", "input_schema": {}}],
        tool_choice={"type": "any"},
    )
    facts = reading.facts
    assert (facts.tool_use, facts.tools, facts.turns) == (ToolUse.LOOP, ("f",), 1)
    assert reading.texts.user == "hi"
    assert reading.texts.parts == ("hi", "hm", "f", '{"a":1}', "42", '[{"name":"f","input_schema":{}}]')


def test_results_in_blocks_and_a_later_message() -> None:
    """A result may hold blocks; a plain message after it ends the loop."""
    blocks = {**RESULT, "content": [{"type": "text", "text": "seen"}, {"type": "image", "source": {}}]}
    reading = messages([*HI, {"role": "user", "content": [blocks, {"type": "text", "text": "and?"}]}])
    assert reading.facts.images == 1
    assert "seen" in reading.texts.parts
    assert reading.texts.user == "and?"
    assert reading.facts.tool_use is ToolUse.LOOP
    ended = messages([*HI, {"role": "user", "content": [blocks]}, {"role": "assistant", "content": "ok"}, *HI])
    assert ended.facts.tool_use is ToolUse.NONE


def test_the_end_user_names_the_conversation() -> None:
    """``metadata.user_id`` is this API's ``user``."""
    assert messages(metadata={"user_id": "u"}).facts.session
    assert not messages(metadata={}).facts.session


@pytest.mark.parametrize(
    ("given", "fields", "param"),
    [
        (None, {}, "messages"),
        ([], {}, "messages"),
        ([3], {}, "messages[0]"),
        ([{"role": {}, "content": "x"}], {}, "messages[0].role"),
        ([{"role": "user", "content": [{"type": "tool_result", "content": 3}]}], {}, "messages[0].content[0].content"),
        (HI, {"system": 3}, "system"),
        (HI, {"metadata": []}, "metadata"),
        (HI, {"max_tokens": "9"}, "max_tokens"),
    ],
)
def test_faults_name_the_field(given: Any, fields: dict[str, Any], param: str) -> None:
    """A 400 points at the field."""
    with pytest.raises(ApiError) as caught:
        messages(given, **fields)
    assert (caught.value.status, caught.value.param) == (400, param)


def test_odd_but_harmless_shapes() -> None:
    """Absent content, a system message in the list, results without an id or content, thinking that is no text."""
    reading = messages(
        [
            {"role": "system", "content": "Rules."},
            {"role": "user"},
            {"role": None, "content": [{"type": "thinking", "thinking": 3}, {"type": "tool_result"}]},
        ]
    )
    assert reading.texts.system == "Rules."
    assert reading.texts.parts == ("Rules.",)
    assert reading.facts.tool_use is ToolUse.LOOP
