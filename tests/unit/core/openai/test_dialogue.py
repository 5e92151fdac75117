"""What chat, responses and messages share: the same conversation gives the same facts in all three."""

import orjson

from gateway.core.openai import read
from gateway.model.enums import Api, ToolUse
from gateway.model.facts import Facts

SHARED = {"model": "m", "stream": True, "temperature": 0.5, "seed": 3}
NAMES = ("stream", "text_bytes", "turns", "tools", "tool_use", "forced_tool", "sampling", "code_fence", "conversation")


def facts(api: Api, body: dict[str, object]) -> Facts:
    """The facts of a body."""
    return read(api, orjson.dumps({**SHARED, **body})).facts


def test_one_conversation_in_three_apis() -> None:
    """System text, question and a forced tool mean the same thing however an API spells them."""
    chat = facts(
        Api.CHAT,
        {
            "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "```x```"}],
            "tools": [{"name": "pay"}],
            "tool_choice": {"type": "function", "function": {"name": "pay"}},
        },
    )
    responses = facts(
        Api.RESPONSES,
        {
            "instructions": "Be brief.",
            "input": "```x```",
            "tools": [{"name": "pay"}],
            "tool_choice": {"type": "function", "name": "pay"},
        },
    )
    messages = facts(
        Api.MESSAGES,
        {
            "system": "Be brief.",
            "messages": [{"role": "user", "content": [{"type": "text", "text": "```x```"}]}],
            "tools": [{"name": "pay"}],
            "tool_choice": {"type": "tool", "name": "pay"},
            "max_tokens": 9,
        },
    )
    seen = {tuple(getattr(found, name) for name in NAMES) for found in (chat, responses, messages)}
    assert len(seen) == 1
    assert chat.tool_use is ToolUse.FORCED
    assert {chat.api, responses.api, messages.api} == {Api.CHAT, Api.RESPONSES, Api.MESSAGES}
