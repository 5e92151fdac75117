"""Anthropic's Messages API, as vLLM and SGLang serve it: content blocks, tool results inside user messages."""

from typing import Any

from gateway.core.openai import output, tools
from gateway.core.openai.content import Thread, blocks
from gateway.core.openai.dialogue import reading_of
from gateway.core.openai.fields import members, messages_of, model_of, wrong
from gateway.core.openai.parse import Json
from gateway.model.enums import Api
from gateway.model.facts import Reading


def read_messages(body: Json, session: bytes | None) -> Reading:
    """Facts and texts of a Messages request. ``ApiError`` 400 names the field."""
    model = model_of(body)
    thread = Thread()
    _system(body.get("system"), thread)
    messages = messages_of(body)
    _walk(messages, thread)
    metadata = members(body, "metadata") or {}
    return reading_of(
        Api.MESSAGES,
        model,
        body,
        thread,
        session,
        count=len(messages),
        output_tokens=output.reserved(body, "max_tokens"),
        structured=output.structured_of(body),
        caller=metadata.get("user_id"),
    )


def _system(system: Any, thread: Thread) -> None:
    if system is None:
        return
    if type(system) is str:
        thread.parts.append(system)
        thread.system.append(system)
    else:
        thread.system.append(blocks(system, "system", thread))


def _walk(messages: list[Any], thread: Thread) -> None:
    for index, message in enumerate(messages):
        if type(message) is not dict:
            raise wrong(f"messages[{index}]", "an object")
        thread.rest()
        content = message.get("content")
        param = f"messages[{index}].content"
        if type(content) is str:
            thread.parts.append(content)
            words = content
        elif content is None:
            words = ""
        else:
            words = blocks(content, param, thread)
            _tool_blocks(content, param, thread)
        role = message.get("role")
        if role == "user":
            if words or not thread.loop:
                thread.say(words)
        elif role is not None and type(role) is not str:
            raise wrong(f"messages[{index}].role", "a string")
        elif role == "system":
            thread.system.append(words)


def _tool_blocks(content: list[Any], param: str, thread: Thread) -> None:
    """Tool results put the message in a tool loop; calls and results are prompt text."""
    for index, block in enumerate(content):
        kind = block.get("type") if type(block) is dict else None
        if kind == "tool_result":
            thread.loop = True
            result = block.get("content")
            if type(result) is str:
                thread.parts.append(result)
            elif result is not None:
                blocks(result, f"{param}[{index}].content", thread)
        elif kind == "tool_use":
            thread.parts += tools.rendered(block.get("name"), block.get("input"), param=f"{param}[{index}].input")
        elif kind == "thinking" and type(block.get("thinking")) is str:
            thread.parts.append(block["thinking"])
