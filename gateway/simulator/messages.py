"""Answers in the shape of the messages API, whole or as named events.

Owns that JSON. Pure. ``routes`` calls ``whole`` and ``events``. Only the first choice exists in this API.
"""

from collections.abc import Iterator
from typing import Any

import orjson

from gateway.simulator.answer import Answer, Choice
from gateway.simulator.ask import Ask
from gateway.simulator.frame import Frame, named_event

_REASONS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}


def _arguments(text: str) -> Any:
    """The arguments as an object; broken ones stay text, as there is no object to give."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text


def _envelope(frame: Frame, content: list[dict[str, Any]], reason: str | None, usage: dict[str, int]) -> dict[str, Any]:
    return {
        "id": f"msg_{frame.id}",
        "type": "message",
        "role": "assistant",
        "content": content,
        "model": frame.model,
        "stop_reason": reason,
        "stop_sequence": None,
        "usage": usage,
    }


def _usage(answer: Answer, frame: Frame, output: int) -> dict[str, int]:
    cached = frame.cached_tokens
    return {
        "input_tokens": answer.prompt_tokens - cached,
        "cache_read_input_tokens": cached,
        "output_tokens": output,
    }


def whole(answer: Answer, ask: Ask, frame: Frame) -> bytes:
    """The body of an unstreamed answer."""
    choice = answer.choices[0]
    content: list[dict[str, Any]] = []
    if choice.pieces or not choice.calls:
        content.append({"type": "text", "text": choice.text})
    for call in choice.calls:
        content.append({"type": "tool_use", "id": call.id, "name": call.name, "input": _arguments(call.text)})
    return orjson.dumps(
        _envelope(frame, content, _REASONS[choice.finish], _usage(answer, frame, answer.completion_tokens))
    )


def _blocks(choice: Choice) -> Iterator[tuple[dict[str, Any], str, str, tuple[str, ...]]]:
    """(opening block, delta type, delta field, pieces) of each content block."""
    if choice.pieces or not choice.calls:
        yield {"type": "text", "text": ""}, "text_delta", "text", choice.pieces
    for call in choice.calls:
        opening = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
        yield opening, "input_json_delta", "partial_json", call.arguments


def events(answer: Answer, ask: Ask, frame: Frame) -> Iterator[bytes]:
    """The stream, one item a decode step."""
    choice = answer.choices[0]
    opened = _envelope(frame, [], None, _usage(answer, frame, 0))
    held = named_event("message_start", {"type": "message_start", "message": opened})
    for index, (opening, kind, field, pieces) in enumerate(_blocks(choice)):
        start = {"type": "content_block_start", "index": index, "content_block": opening}
        held += named_event("content_block_start", start)
        for piece in pieces:
            delta = {"type": "content_block_delta", "index": index, "delta": {"type": kind, field: piece}}
            yield held + named_event("content_block_delta", delta)
            held = b""
        held += named_event("content_block_stop", {"type": "content_block_stop", "index": index})
    ending = {"stop_reason": _REASONS[choice.finish], "stop_sequence": None}
    usage = {"output_tokens": answer.completion_tokens}
    held += named_event("message_delta", {"type": "message_delta", "delta": ending, "usage": usage})
    yield held + named_event("message_stop", {"type": "message_stop"})
