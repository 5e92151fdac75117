"""Answers in the shape of the responses API, whole or as named events.

Owns that JSON. Pure. ``routes`` calls ``whole`` and ``events``. Only the first choice exists in this API.
"""

from collections.abc import Callable, Iterator
from typing import Any

import orjson

from gateway.simulator.answer import Answer, Call, Choice
from gateway.simulator.ask import Ask
from gateway.simulator.frame import Frame, named_event

_ItemEvents = tuple[Callable[[], bytes], Iterator[bytes], Callable[[], bytes]]
_EMPTY: dict[bool, dict[str, Any]] = {True: {"content": []}, False: {"arguments": ""}}


def _message(choice: Choice, frame: Frame) -> dict[str, Any]:
    content: dict[str, Any] = {"type": "output_text", "text": choice.text, "annotations": [], "logprobs": None}
    return {
        "id": f"msg_{frame.id}",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [content],
    }


def _call_item(call: Call, frame: Frame, index: int) -> dict[str, Any]:
    return {
        "id": f"fc_{frame.id}{index}",
        "type": "function_call",
        "status": "completed",
        "call_id": call.id,
        "name": call.name,
        "arguments": call.text,
    }


def _envelope(answer: Answer, ask: Ask, frame: Frame, status: str, output: list[dict[str, Any]]) -> dict[str, Any]:
    finished = status in ("completed", "incomplete")
    usage = {
        "input_tokens": answer.prompt_tokens,
        "input_tokens_details": {"cached_tokens": frame.cached_tokens},
        "output_tokens": answer.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": answer.reasoning_tokens},
        "total_tokens": answer.prompt_tokens + answer.completion_tokens,
    }
    return {
        "id": f"resp_{frame.id}",
        "object": "response",
        "created_at": frame.created,
        "status": status,
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
        "instructions": None,
        "metadata": None,
        "model": frame.model,
        "output": output,
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": ask.choice,
        "tools": [],
        "top_p": 1.0,
        "max_output_tokens": ask.max_tokens,
        "previous_response_id": None,
        "usage": usage if finished else None,
    }


def _output(choice: Choice, frame: Frame) -> list[dict[str, Any]]:
    items = [_message(choice, frame)] if choice.pieces or not choice.calls else []
    return [*items, *(_call_item(call, frame, index) for index, call in enumerate(choice.calls))]


def _status(choice: Choice) -> str:
    return "incomplete" if choice.finish == "length" else "completed"


def whole(answer: Answer, ask: Ask, frame: Frame) -> bytes:
    """The body of an unstreamed answer."""
    choice = answer.choices[0]
    return orjson.dumps(_envelope(answer, ask, frame, _status(choice), _output(choice, frame)))


def events(answer: Answer, ask: Ask, frame: Frame) -> Iterator[bytes]:
    """The stream, one item a decode step; every event carries its name and its sequence number."""
    choice = answer.choices[0]
    number = -1

    def event(name: str, **fields: Any) -> bytes:
        nonlocal number
        number += 1
        return named_event(name, {"type": name, "sequence_number": number, **fields})

    started = _envelope(answer, ask, frame, "in_progress", [])
    held = event("response.created", response=started) + event("response.in_progress", response=started)
    for position, item in enumerate(_output(choice, frame)):
        pieces = choice.pieces if item["type"] == "message" else choice.calls[position - bool(choice.pieces)].arguments
        opened, deltas, closed = _item_events(event, item, position, pieces)
        held += opened()
        for delta in deltas:
            yield held + delta
            held = b""
        held += closed()
    status = _status(choice)
    final = _envelope(answer, ask, frame, status, _output(choice, frame))
    yield held + event(f"response.{status}", response=final)


def _item_events(
    event: Callable[..., bytes], item: dict[str, Any], position: int, pieces: tuple[str, ...]
) -> _ItemEvents:
    """(opening, iterator of one delta a token, closing) of one output item."""
    where = {"item_id": item["id"], "output_index": position}
    message = item["type"] == "message"
    name = "response.output_text" if message else "response.function_call_arguments"
    inner = {**where, "content_index": 0} if message else where
    empty = {"type": "output_text", "text": "", "annotations": []}

    def opened() -> bytes:
        fresh = {**item, "status": "in_progress", **_EMPTY[message]}
        first = event("response.output_item.added", output_index=position, item=fresh)
        return first + (event("response.content_part.added", **inner, part=empty) if message else b"")

    def closed() -> bytes:
        text = "".join(pieces)
        done = event(f"{name}.done", **inner, **({"text": text} if message else {"arguments": text}))
        if message:
            done += event("response.content_part.done", **inner, part={**empty, "text": text})
        return done + event("response.output_item.done", output_index=position, item=item)

    return opened, (event(f"{name}.delta", **inner, delta=piece) for piece in pieces), closed
