"""The Responses API: ``input`` is a string or an array of items, ``instructions`` are the system text."""

from typing import Any

from gateway.core.openai import output
from gateway.core.openai.content import Thread, blocks
from gateway.core.openai.dialogue import reading_of
from gateway.core.openai.fields import flag, members, model_of, text, wrong
from gateway.core.openai.parse import Json
from gateway.errors import ApiError
from gateway.model.enums import Api, Structured
from gateway.model.facts import Reading

_SYSTEM = frozenset(("system", "developer"))
_STATE = ("previous_response_id", "conversation")


def read_responses(body: Json, session: bytes | None) -> Reading:
    """Facts and texts of a Responses request. ``ApiError`` 400 names the field."""
    model = model_of(body)
    thread = Thread()
    instructions = text(body, "instructions")
    if instructions:
        thread.parts.append(instructions)
        thread.system.append(instructions)
    stored = any(body.get(key) is not None for key in _STATE)
    count = _walk(body.get("input"), thread, needed=not stored and body.get("prompt") is None)
    return reading_of(
        Api.RESPONSES,
        model,
        body,
        thread,
        session,
        count=count,
        output_tokens=output.reserved(body, "max_output_tokens"),
        structured=_structured(body),
        caller=body.get("user"),
        server_state=stored or flag(body, "store") or flag(body, "background") or body.get("prompt") is not None,
    )


def _structured(body: Json) -> Structured:
    settings = members(body, "text")
    if settings is not None and settings.get("format") is not None:
        return output.format_of(settings["format"], "text.format")
    return output.structured_of(body)


def _walk(given: Any, thread: Thread, *, needed: bool) -> int:
    """Counts ``input`` into ``thread``; how many items it had."""
    if given is None:
        if needed:
            raise ApiError(400, "missing_input", "The request has no 'input'.", param="input")
        return 0
    if type(given) is str:
        thread.parts.append(given)
        thread.say(given)
        return 1
    if type(given) is not list:
        raise wrong("input", "a string or an array of items")
    if not given and needed:
        raise ApiError(400, "empty_input", "'input' must hold at least one item.", param="input")
    for index, item in enumerate(given):
        if type(item) is not dict:
            raise wrong(f"input[{index}]", "an object")
        _item(item, f"input[{index}]", thread)
    return len(given)


def _item(item: Json, param: str, thread: Thread) -> None:
    kind = item.get("type")
    if kind is not None and type(kind) is not str:
        raise wrong(f"{param}.type", "a string")
    if kind is not None and kind.endswith("_call_output"):
        thread.loop = True
        _said(item.get("output"), f"{param}.output", thread)
        return
    if thread.loop:
        thread.rest()
    if kind is None or kind == "message":
        words = _said(item.get("content"), f"{param}.content", thread)
        role = item.get("role")
        if role == "user":
            thread.say(words)
        elif role is not None and type(role) is not str:
            raise wrong(f"{param}.role", "a string")
        elif role in _SYSTEM:
            thread.system.append(words)
    elif kind.endswith("_call"):
        thread.parts += [value for key in ("name", "arguments", "input") if type(value := item.get(key)) is str]


def _said(content: Any, param: str, thread: Thread) -> str:
    if content is None:
        return ""
    if type(content) is str:
        thread.parts.append(content)
        return content
    return blocks(content, param, thread)
