"""Tool calls against the tools that were offered."""

from typing import Any

import pytest

from gateway.core.assemble import Answer, Choice, ToolCall
from gateway.core.quality.asked import Asked, Tool
from gateway.core.quality.finding import Verdict
from gateway.core.quality.tools import check_tool_arguments, check_tool_choice, check_tool_names, check_tool_schema
from gateway.core.quality.view import View, view_of
from gateway.model.enums import ToolUse

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = (Tool("weather", SCHEMA), Tool("light"), Tool("sql", None, True))


def view(*calls: ToolCall, finish: str = "tool_calls", **asked: Any) -> View:
    """A view of some calls of the three tools."""
    choice = Choice(tool_calls=calls, finish_reason=finish)
    return view_of(Asked(**{"tools": TOOLS, **asked}), Answer(choices=(choice,), done=True), choice)


def test_names() -> None:
    """Known, unknown, nameless, and called without any offer."""
    assert check_tool_names(view(ToolCall("weather"))).verdict == Verdict.PASS
    assert check_tool_names(view(ToolCall("weather"), ToolCall("Weather"))).verdict == Verdict.FAIL
    assert check_tool_names(view(ToolCall(""))).verdict == Verdict.FAIL
    assert check_tool_names(view(ToolCall(""), finish="length")).verdict == Verdict.SKIP
    assert check_tool_names(view(ToolCall("weather"), tools=())).verdict == Verdict.FAIL
    assert check_tool_names(view()).verdict == Verdict.NOT_APPLICABLE


@pytest.mark.parametrize("arguments", ["{}", '{"city": "Oslo"}', ' {"n": 12345678901234567890} '])
def test_arguments_pass(arguments: str) -> None:
    """Any JSON object will do for this check."""
    assert check_tool_arguments(view(ToolCall("weather", arguments))).verdict == Verdict.PASS


@pytest.mark.parametrize("arguments", ["[]", "null", '"{}"', "{'a': 1}", '{"a": 1', '{"a": 1}{"b": 2}', "city=Oslo"])
def test_arguments_fail(arguments: str) -> None:
    """Other JSON, near-JSON and two objects are no arguments."""
    found = check_tool_arguments(view(ToolCall("light"), ToolCall("weather", arguments)))
    assert (found.verdict, found.where) == (Verdict.FAIL, "arguments[1]")


def test_arguments_at_the_limit() -> None:
    """Only the last call can be cut; an earlier one is broken."""
    cut = ToolCall("weather", '{"city": "Os')
    assert check_tool_arguments(view(ToolCall("light"), cut, finish="length")).verdict == Verdict.SKIP
    assert check_tool_arguments(view(cut, ToolCall("light"), finish="length")).verdict == Verdict.FAIL


def test_custom_tools_take_free_text() -> None:
    """Their input is not held against JSON."""
    assert check_tool_arguments(view(ToolCall("sql", "SELECT 1", custom=True))).verdict == Verdict.NOT_APPLICABLE


def test_schema() -> None:
    """Match, mismatch, nothing to hold against, and arguments that do not parse."""
    assert check_tool_schema(view(ToolCall("weather", '{"city": "Oslo"}'))).verdict == Verdict.PASS
    found = check_tool_schema(view(ToolCall("light"), ToolCall("weather", '{"city": 7}')))
    assert (found.verdict, found.where) == (Verdict.FAIL, "arguments[1]")
    assert check_tool_schema(view(ToolCall("light"))).verdict == Verdict.NOT_APPLICABLE
    assert check_tool_schema(view(ToolCall("weather", "{"))).verdict == Verdict.SKIP


def test_choice() -> None:
    """Required, forced, forbidden, restricted and single calls."""
    call, other = ToolCall("weather"), ToolCall("light")
    required, forced = {"tool_use": ToolUse.FORCED}, {"tool_use": ToolUse.FORCED, "forced": "weather"}
    assert check_tool_choice(view(call, **required)).verdict == Verdict.PASS
    assert check_tool_choice(view(finish="stop", **required)).verdict == Verdict.FAIL
    assert check_tool_choice(view(finish="length", **required)).verdict == Verdict.SKIP
    assert check_tool_choice(view(call, **forced)).verdict == Verdict.PASS
    assert check_tool_choice(view(other, **forced)).verdict == Verdict.FAIL
    assert check_tool_choice(view(call, calls_forbidden=True)).verdict == Verdict.FAIL
    assert check_tool_choice(view(finish="stop", calls_forbidden=True)).verdict == Verdict.PASS
    assert check_tool_choice(view(other, allowed=("weather",))).verdict == Verdict.FAIL
    assert check_tool_choice(view(call, allowed=("weather",))).verdict == Verdict.PASS
    assert check_tool_choice(view(call, other, one_call=True)).verdict == Verdict.FAIL
    assert check_tool_choice(view(call)).verdict == Verdict.NOT_APPLICABLE
