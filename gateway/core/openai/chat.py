"""Chat completions. Content may be a string, null, absent (with tool calls) or an array of parts."""

from typing import Any, Final

from gateway.core.openai import output
from gateway.core.openai.content import Thread, blocks
from gateway.core.openai.dialogue import reading_of
from gateway.core.openai.fields import messages_of, model_of, wrong
from gateway.core.openai.parse import Json
from gateway.model.enums import Api
from gateway.model.facts import Reading

_SYSTEM: Final = frozenset(("system", "developer"))
_RESULT: Final = frozenset(("tool", "function"))
_CHAT: Final = Api.CHAT


def read_chat(body: Json, session: bytes | None) -> Reading:
    """Facts and texts of a chat request. ``ApiError`` 400 names the field that is missing or of the wrong type."""
    model = model_of(body)
    messages = messages_of(body)
    return reading_of(
        _CHAT,
        model,
        body,
        _walk(messages),
        session,
        count=len(messages),
        output_tokens=output.reserved(body, "max_completion_tokens", "max_tokens"),
        structured=output.structured_of(body),
        caller=body.get("user"),
        usage=output.usage_in_stream(body),
    )


def _walk(messages: list[Any]) -> Thread:
    thread = Thread()
    parts = thread.parts
    for index, message in enumerate(messages):
        if type(message) is not dict:
            raise wrong(f"messages[{index}]", "an object")
        content = message.get("content")
        if type(content) is str:
            text = content
            parts.append(content)
        elif content is None:
            text = ""
        else:
            text = blocks(content, f"messages[{index}].content", thread)
        role = message.get("role")
        if role == "user":
            thread.say(text)
        elif type(role) is not str and role is not None:
            raise wrong(f"messages[{index}].role", "a string")
        elif role in _RESULT:
            _answer(message, index, thread)
            continue
        elif role in _SYSTEM:
            thread.system.append(text)
        elif "tool_calls" in message:
            _calls(message, index, parts)
        if thread.loop:
            thread.rest()
    return thread


def _answer(message: Json, index: int, thread: Thread) -> None:
    """A tool's result: while these are the last messages, the request is in a tool loop."""
    thread.loop = True
    call = message.get("tool_call_id")
    if call is not None and type(call) is not str:
        raise wrong(f"messages[{index}].tool_call_id", "a string")


def _calls(message: Json, index: int, parts: list[str]) -> None:
    """Earlier tool calls are prompt text too. Their inner shape is the runtime's business."""
    calls = message["tool_calls"]
    if calls is None:
        return
    if type(calls) is not list:
        raise wrong(f"messages[{index}].tool_calls", "an array")
    for call in calls:
        function = call.get("function") if type(call) is dict else None
        if type(function) is dict:
            for value in (function.get("name"), function.get("arguments")):
                if type(value) is str:
                    parts.append(value)
