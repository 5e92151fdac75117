"""Tool calls that came as text."""

import pytest

from gateway.core.assemble import Answer, Choice, ToolCall
from gateway.core.quality.asked import Asked, Tool
from gateway.core.quality.finding import Verdict
from gateway.core.quality.leaks import check_tool_leak
from gateway.core.quality.view import view_of


def verdict(text: str, *, reasoning: str = "", offered: bool = True) -> Verdict:
    """The verdict on a text, with the tool get_weather offered or not."""
    choice = Choice(text=text, reasoning=reasoning, finish_reason="stop")
    asked = Asked(tools=(Tool("get_weather"),) if offered else ())
    return check_tool_leak(view_of(asked, Answer(choices=(choice,), done=True), choice)).verdict


@pytest.mark.parametrize(
    "text",
    [
        "<tool_call>{}",
        "text <function=get_weather>",
        "[TOOL_CALLS][]",
        "<|python_tag|>x",
        "<｜tool▁calls▁begin｜>",
        "<minimax:tool_call>",
        "<|tool_calls_section_begin|>",
        '{"name": "get_weather", "arguments": {}}',
        '```json\n{"name": "get_weather", "parameters": {}}\n```',
        "Action: get_weather\nAction Input: {}",
        "[get_weather(city='x')]",
        'get_weather {"city": "x"}',
        "Use `<tool_call>` like `get_weather`",
    ],
)
def test_leaks(text: str) -> None:
    """Every runtime's mark, bare JSON, Python calls and ReAct lines that name the offered tool."""
    assert verdict(text) == Verdict.FAIL


@pytest.mark.parametrize(
    "text",
    [
        "It is raining.",
        "I can call get_weather for you.",
        "Models wrap calls in `<tool_call>` tags.",
        "```\n<tool_call>\n```",
        '{"name": "Oslo", "arguments": {}}',
        '{"name": "get_weather"}',
        "Action: other_tool\nAction Input: {}",
        "get_weather",
    ],
)
def test_no_leaks(text: str) -> None:
    """Talk about tools, quoted formats and JSON about other things."""
    assert verdict(text) == Verdict.PASS


def test_only_where_tools_were_offered() -> None:
    """Without tools the text may hold anything."""
    assert verdict("<tool_call>", offered=False) == Verdict.NOT_APPLICABLE


def test_reasoning_counts_only_when_it_is_all_there_is() -> None:
    """A call inside reasoning was lost if nothing else came."""
    call = '<tool_call>{"name": "get_weather"}'
    assert verdict("", reasoning=call) == Verdict.FAIL
    assert verdict("Done.", reasoning=call) == Verdict.PASS


def test_a_parsed_call_beside_a_leaked_one() -> None:
    """Half of the calls parsed is still a leak."""
    choice = Choice(text="<tool_call>{}", tool_calls=(ToolCall("get_weather"),), finish_reason="tool_calls")
    asked = Asked(tools=(Tool("get_weather"),))
    assert check_tool_leak(view_of(asked, Answer(choices=(choice,)), choice)).verdict == Verdict.FAIL
