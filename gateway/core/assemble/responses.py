"""The responses API (output items): bodies and events into parts.

Owns this API's field names and what its status means in chat's words. Never raises. Called by
`gateway.core.assemble`.
"""

from typing import Any, Final

from gateway.core.assemble.parts import AnswerParts, ChoiceParts, as_index, as_list, as_object, as_text

_TERMINAL: Final = frozenset({"response.completed", "response.incomplete", "response.failed", "response.cancelled"})
_CALL_INPUT: Final = frozenset({"response.function_call_arguments.delta", "response.custom_tool_call_input.delta"})
_REASONING: Final = frozenset({"response.reasoning_text.delta", "response.reasoning_summary_text.delta"})
_INCOMPLETE: Final = {"max_output_tokens": "length", "max_tokens": "length"}


def read_body(parts: AnswerParts, body: dict[str, Any]) -> None:
    """Read a whole response object. Its error, if any, is recorded too."""
    parts.model = as_text(body.get("model")) or parts.model
    choice = parts.choice(0)
    for position, item in enumerate(as_list(body.get("output"))):
        _read_item(choice, position, as_object(item))
    if body.get("error"):
        parts.add_error(body["error"])
    _finish(choice, body)
    parts.add_usage(body.get("usage"))
    parts.done = True


def read_event(parts: AnswerParts, event: dict[str, Any]) -> None:
    """Read one event of a stream. The final event repeats the whole response, which then counts alone."""
    kind = as_text(event.get("type"))
    index = as_index(event.get("output_index")) or 0
    if kind in _TERMINAL:
        body = as_object(event.get("response"))
        if as_list(body.get("output")):
            parts.choices.pop(0, None)
        read_body(parts, body)
    elif kind == "response.output_text.delta":
        parts.choice(0).add_text(as_text(event.get("delta")))
    elif kind == "response.refusal.delta":
        parts.choice(0).refusal.append(as_text(event.get("delta")))
    elif kind in _REASONING:
        parts.choice(0).add_reasoning(as_text(event.get("delta")))
    elif kind in _CALL_INPUT:
        parts.choice(0).call_for(index, None, None, index, 1).add(None, None, event.get("delta"))
    elif kind in {"response.output_item.added", "response.output_item.done"}:
        item = as_object(event.get("item"))
        if as_text(item.get("type")).endswith("_call"):
            _read_call(parts.choice(0), index, item, final=kind.endswith("done"))
    elif kind in {"response.created", "response.in_progress"}:
        parts.model = as_text(as_object(event.get("response")).get("model")) or parts.model
        parts.choice(0)


def _read_item(choice: ChoiceParts, position: int, item: dict[str, Any]) -> None:
    kind = as_text(item.get("type"))
    if kind == "message":
        for part in map(as_object, as_list(item.get("content"))):
            choice.add_text(as_text(part.get("text")) if part.get("type") == "output_text" else "")
            choice.refusal.append(as_text(part.get("refusal")))
    elif kind == "reasoning":
        for part in map(as_object, [*as_list(item.get("summary")), *as_list(item.get("content"))]):
            choice.add_reasoning(as_text(part.get("text")))
    elif kind.endswith("_call"):
        _read_call(choice, position, item, final=True)
    else:
        choice.other_output = True


def _read_call(choice: ChoiceParts, index: int, item: dict[str, Any], *, final: bool) -> None:
    kind = item.get("type")
    if kind not in {"function_call", "custom_tool_call"}:
        choice.other_output = True  # a tool that the server itself runs: search, code, computer
        return
    call = choice.call_for(index, item.get("call_id"), None, index, 1)
    call.custom = kind == "custom_tool_call"
    given = item.get("input") if call.custom else item.get("arguments")
    if final and given:
        call.pieces.clear()
    call.add(item.get("call_id"), item.get("name"), given)


def _finish(choice: ChoiceParts, body: dict[str, Any]) -> None:
    status = as_text(body.get("status"))
    if status == "completed":
        choice.finish = "tool_calls" if choice.calls else "stop"
    elif status == "incomplete":
        reason = as_text(as_object(body.get("incomplete_details")).get("reason"))
        choice.finish = _INCOMPLETE.get(reason, reason or "length")
    elif status:
        choice.finish = status[:64]
