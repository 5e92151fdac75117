"""Tool names cannot hide from the constraint on privileged tools; forced calls are seen in every spelling."""

from typing import Any

import pytest

from gateway.core.openai.tools import acts_on_server, definitions, forced_tool, rendered, tool_names, use_of
from gateway.errors import ApiError
from gateway.model.enums import ToolUse


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ({}, ()),
        ({"tools": []}, ()),
        ({"tools": [{"type": "function", "function": {"name": "pay"}}]}, ("pay",)),
        ({"tools": [{"type": "function", "name": "pay", "parameters": {}}]}, ("pay",)),
        ({"tools": [{"type": "custom", "custom": {"name": "pay"}}]}, ("pay",)),
        ({"tools": [{"name": "pay", "input_schema": {}}]}, ("pay",)),
        ({"tools": [{"type": "web_search"}]}, ("web_search",)),
        ({"functions": [{"name": "pay"}]}, ("pay",)),
        ({"tools": [{"function": {"name": "a"}}], "functions": [{"name": "pay"}]}, ("a", "pay")),
    ],
)
def test_names(body: dict[str, Any], names: tuple[str, ...]) -> None:
    """Every place a runtime may read a tool's name from is read."""
    assert tool_names(body) == names


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"tools": [{"type": "function", "function": {}}]}, "tools[0].function.name"),
        ({"tools": [{"name": "a"}, {"name": ""}]}, "tools[1].name"),
        ({"tools": [{"name": ["pay"]}]}, "tools[0].name"),
        ({"tools": [{}]}, "tools[0].name"),
        ({"functions": ["pay"]}, "functions[0]"),
    ],
)
def test_tools_without_a_name_are_refused(body: dict[str, Any], param: str) -> None:
    """What has no name cannot be judged, so it does not pass."""
    with pytest.raises(ApiError) as caught:
        tool_names(body)
    assert (caught.value.status, caught.value.param) == (400, param)


@pytest.mark.parametrize(
    ("choice", "forced", "name"),
    [
        (None, False, None),
        ("auto", False, None),
        ("none", False, None),
        ("required", True, None),
        ("any", True, None),
        ({"type": "function", "function": {"name": "pay"}}, True, "pay"),
        ({"type": "function", "name": "pay"}, True, "pay"),
        ({"type": "custom", "custom": {"name": "pay"}}, True, "pay"),
        ({"type": "tool", "name": "pay"}, True, "pay"),
        ({"type": "any"}, True, None),
        ({"type": "auto"}, False, None),
        ({"type": "none"}, False, None),
        ({"type": "file_search"}, True, None),
        ({"type": "allowed_tools", "mode": "required", "tools": []}, True, None),
        ({"type": "allowed_tools", "allowed_tools": {"mode": "auto"}}, False, None),
        ({"type": "allowed_tools", "allowed_tools": {"mode": ["required"]}}, False, None),
        ({"type": ["any"]}, False, None),
        ({}, False, None),
    ],
)
def test_forced(choice: Any, forced: bool, name: str | None) -> None:
    """All APIs' ways to demand a call."""
    assert forced_tool({"tool_choice": choice}) == (forced, name)


def test_older_function_call() -> None:
    """``function_call`` is the older spelling of ``tool_choice``."""
    assert forced_tool({"function_call": {"name": "pay"}}) == (True, "pay")


@pytest.mark.parametrize("choice", [3, [], {"name": 3}])
def test_mistyped_choice(choice: Any) -> None:
    """A choice of the wrong type is a 400."""
    with pytest.raises(ApiError):
        forced_tool({"tool_choice": choice})


def test_use_order() -> None:
    """A loop outranks a forced call, which outranks a declaration."""
    assert use_of(("a",), True, True) is ToolUse.LOOP
    assert use_of(("a",), True, False) is ToolUse.FORCED
    assert use_of(("a",), False, False) is ToolUse.DECLARED
    assert use_of((), False, False) is ToolUse.NONE


def test_definitions_count_as_prompt_text() -> None:
    """Templates write them into the prompt; agents' tool lists are often most of it."""
    assert definitions({"tools": [{"name": "é"}], "functions": None}) == ['[{"name":"é"}]']
    assert rendered("word", {}, None, {"a": 1}, param="input") == ["word", '{"a":1}']


def test_definitions_nested_too_deeply() -> None:
    """A tool schema deeper than can be written again is refused by name, not a crash (B107)."""
    schema: dict[str, Any] = {}
    for _ in range(300):
        schema = {"x": schema}
    with pytest.raises(ApiError) as caught:
        definitions({"tools": [schema]})
    assert (caught.value.code, caught.value.param) == ("too_deep", "tools")


@pytest.mark.parametrize(
    ("body", "acts"),
    [
        ({}, False),
        ({"tools": []}, False),
        ({"tools": [{"type": "function", "function": {"name": "web_search"}}]}, False),
        ({"tools": [{"name": "f", "input_schema": {}}]}, False),
        ({"tools": [{"type": "custom", "name": "f"}]}, False),
        (
            {"tools": [{"type": "computer_20250124", "name": "computer"}, {"type": "bash_20250124", "name": "bash"}]},
            False,
        ),
        ({"tools": [{"type": "local_shell"}]}, False),
        ({"functions": [{"name": "f"}]}, False),
        ({"tools": [{"type": "function", "name": "f"}, {"type": "web_search_preview"}]}, True),
        ({"tools": [{"type": "mcp", "server_url": "http://x"}]}, True),
        ({"tools": [{"type": "code_interpreter", "container": {"type": "auto"}}]}, True),
        ({"tools": [{"type": "something_new"}]}, True),
        ({"mcp_servers": [{"url": "http://x"}]}, True),
        ({"web_search_options": {}}, True),
        ({"web_search_options": None, "mcp_servers": None}, False),
    ],
)
def test_what_the_server_runs_itself(body: dict[str, Any], acts: bool) -> None:
    """An unknown kind of tool counts as one that acts: such a request must not run twice."""
    assert acts_on_server(body) is acts
