"""Reading what a request asked for, in every API's spelling."""

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.core.quality.asked import CONTEXT_CHARS, read_request
from gateway.model.enums import Api, Structured, ToolUse

SCHEMA = {"type": "object"}
TURN = {"messages": [{"role": "user", "content": "hi"}]}


@pytest.mark.parametrize(
    "body",
    [
        {**TURN, "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}},
        {**TURN, "response_format": {"type": "json_schema", "schema": SCHEMA}},
        {**TURN, "response_format": {"type": "json_object", "schema": SCHEMA}},
        {"input": "hi", "text": {"format": {"type": "json_schema", "name": "x", "schema": SCHEMA}}},
        {**TURN, "system": "s", "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}},
        {**TURN, "guided_json": SCHEMA},
        {**TURN, "structured_outputs": {"json": SCHEMA}},
        {**TURN, "json_schema": SCHEMA},
    ],
)
def test_schema_is_found_wherever_it_is_asked_for(body: dict[str, Any]) -> None:
    """OpenAI's three spellings, the messages API's, and those of the runtimes."""
    asked = read_request(body)
    assert (asked.structured, asked.schema) == (Structured.JSON_SCHEMA, SCHEMA)


def test_other_forms() -> None:
    """A bare JSON object, a choice of words, a regular expression, and nothing."""
    assert read_request({**TURN, "response_format": {"type": "json_object"}}).structured == Structured.JSON_OBJECT
    assert read_request({**TURN, "guided_choice": ["a", "b"]}).words == ("a", "b")
    assert read_request({**TURN, "structured_outputs": {"regex": "a+"}}).pattern == "a+"
    assert read_request({**TURN, "response_format": {"type": "text"}}).structured == Structured.NONE


def test_tools_in_three_spellings() -> None:
    """Nested, flat and input_schema tools; the old functions field; custom tools have no schema."""
    nested = {"type": "function", "function": {"name": "f", "parameters": SCHEMA}}
    assert read_request({**TURN, "tools": [nested]}).tools[0].schema == SCHEMA
    assert (
        read_request({"input": "x", "tools": [{"type": "function", "name": "f", "parameters": SCHEMA}]}).tools[0].name
        == "f"
    )
    assert read_request({**TURN, "tools": [{"name": "f", "input_schema": SCHEMA}]}).tools[0].schema == SCHEMA
    assert read_request({**TURN, "functions": [{"name": "f"}]}).tools[0].name == "f"
    assert read_request({**TURN, "tools": [{"type": "custom", "custom": {"name": "f"}}]}).tools[0].custom


TOOLS = [{"type": "function", "function": {"name": "f"}}, {"type": "function", "function": {"name": "g"}}]


@pytest.mark.parametrize(
    ("choice", "use", "forced"),
    [
        (None, ToolUse.DECLARED, ""),
        ("auto", ToolUse.DECLARED, ""),
        ("none", ToolUse.DECLARED, ""),
        ("required", ToolUse.FORCED, ""),
        ({"type": "any"}, ToolUse.FORCED, ""),
        ({"type": "function", "function": {"name": "f"}}, ToolUse.FORCED, "f"),
        ({"type": "function", "name": "f"}, ToolUse.FORCED, "f"),
        ({"type": "tool", "name": "f"}, ToolUse.FORCED, "f"),
    ],
)
def test_tool_choice(choice: Any, use: ToolUse, forced: str) -> None:
    """Every spelling of tool_choice."""
    asked = read_request({**TURN, "tools": TOOLS, "tool_choice": choice})
    assert (use, forced) == (asked.tool_use, asked.forced)
    assert asked.calls_forbidden == (choice == "none")


def test_allowed_tools_and_single_calls() -> None:
    """allowed_tools restricts; parallel calls can be switched off in both APIs."""
    allowed = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [TOOLS[0]]}}
    asked = read_request({**TURN, "tools": TOOLS, "tool_choice": allowed, "parallel_tool_calls": False})
    assert (asked.allowed, asked.tool_use, asked.one_call) == (("f",), ToolUse.FORCED, True)
    assert read_request({**TURN, "tool_choice": {"type": "auto", "disable_parallel_tool_use": True}}).one_call


def test_texts_of_a_conversation() -> None:
    """System and user text, tool results and earlier answers are context; a trailing assistant turn is a prefill."""
    asked = read_request(
        {
            "messages": [
                {"role": "system", "content": "sys"},
                {
                    "role": "user",
                    "content": [{"type": "text", "text": "first"}, {"type": "image_url", "image_url": {}}],
                },
                {"role": "assistant", "content": None, "tool_calls": []},
                {"role": "tool", "content": "result 42"},
                {"role": "user", "content": "last"},
                {"role": "assistant", "content": "{"},
            ]
        }
    )
    assert (asked.system, asked.user, asked.prefill) == ("sys", "last", "{")
    assert asked.context == "sys\nfirst\nresult 42\nlast\n{"


def test_texts_of_other_apis() -> None:
    """instructions and input items, prompts, and tool results of the messages API."""
    items = [
        {"role": "user", "content": [{"type": "input_text", "text": "q"}]},
        {"type": "function_call_output", "output": "42"},
    ]
    assert read_request({"instructions": "be", "input": items}).context == "be\nq\n42"
    assert (
        read_request({"prompt": ["a", "b"]}).api,
        read_request({"prompt": ["a", "b"]}).context,
    ) == (Api.COMPLETIONS, "a\nb")
    result = {"type": "tool_result", "content": [{"type": "text", "text": "42"}]}
    assert read_request({"system": "s", "messages": [{"role": "user", "content": [result]}]}).context == "s\n42"


def test_long_context_is_cut_and_said() -> None:
    """Grounding checks can see that they have not read everything."""
    asked = read_request({"prompt": "x" * (CONTEXT_CHARS + 1)})
    assert asked.context_cut
    assert len(asked.context) == CONTEXT_CHARS


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "name", "function", "content", "text", "role", "schema", "json_schema", "tools"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)


@given(
    st.dictionaries(
        st.sampled_from(
            [
                "messages",
                "tools",
                "tool_choice",
                "response_format",
                "n",
                "input",
                "text",
                "system",
                "prompt",
                "functions",
                "structured_outputs",
                "guided_choice",
            ]
        ),
        JSON,
    )
)
@example({"messages": None, "system": [{"type": [], "text": None, "content": "x"}]})
def test_malformed_requests_never_raise(body: dict[str, Any]) -> None:
    """Whatever stands in the fields, reading ends with an Asked."""
    assert read_request(body).n >= 1
