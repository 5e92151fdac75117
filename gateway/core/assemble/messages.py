"""The messages API (content blocks, `tool_use`): bodies and events into parts.

Owns this API's field names and the translation of its stop reasons into chat's words. Never raises. Called by
`gateway.core.assemble`.
"""

from typing import Any, Final

from gateway.core.assemble.parts import AnswerParts, ChoiceParts, as_index, as_list, as_object, as_text

FINISH: Final = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
}
"""Stop reason → chat's finish reason; what is not listed keeps its own word (``refusal``, ``pause_turn``)."""

_SILENT: Final = frozenset({"text", "thinking", "redacted_thinking", "tool_use"})


def read_body(parts: AnswerParts, body: dict[str, Any]) -> None:
    """Read a whole message."""
    parts.model = as_text(body.get("model")) or parts.model
    choice = parts.choice(0)
    for position, block in enumerate(as_list(body.get("content"))):
        _open_block(choice, position, as_object(block), whole=True)
    _finish(choice, body.get("stop_reason"))
    parts.add_usage(body.get("usage"))
    parts.done = True


def read_event(parts: AnswerParts, event: dict[str, Any]) -> None:
    """Read one event of a stream."""
    kind = event.get("type")
    index = as_index(event.get("index")) or 0
    if kind == "message_start":
        message = as_object(event.get("message"))
        parts.model = as_text(message.get("model")) or parts.model
        parts.add_usage(message.get("usage"))
        parts.choice(0)
    elif kind == "content_block_start":
        _open_block(parts.choice(0), index, as_object(event.get("content_block")), whole=False)
    elif kind == "content_block_delta":
        _read_delta(parts.choice(0), index, as_object(event.get("delta")))
    elif kind == "message_delta":
        _finish(parts.choice(0), as_object(event.get("delta")).get("stop_reason"))
        parts.add_usage(event.get("usage"))
    elif kind == "message_stop":
        parts.done = True


def _open_block(choice: ChoiceParts, index: int, block: dict[str, Any], *, whole: bool) -> None:
    kind = block.get("type")
    choice.add_text(as_text(block.get("text")) if kind == "text" else "")
    choice.add_reasoning(as_text(block.get("thinking")) if kind == "thinking" else "")
    if kind == "tool_use":
        # a stream opens with the placeholder {} and sends the real input as JSON fragments
        given = block.get("input")
        call = choice.call_for(index, block.get("id"), block.get("name"), index, 1)
        call.add(block.get("id"), block.get("name"), given if whole or given else None)
    elif kind not in _SILENT:
        choice.other_output = True


def _read_delta(choice: ChoiceParts, index: int, delta: dict[str, Any]) -> None:
    kind = delta.get("type")
    if kind == "text_delta":
        choice.add_text(as_text(delta.get("text")))
    elif kind == "thinking_delta":
        choice.add_reasoning(as_text(delta.get("thinking")))
    elif kind == "input_json_delta":
        choice.call_for(index, None, None, index, 1).add(None, None, delta.get("partial_json"))


def _finish(choice: ChoiceParts, reason: Any) -> None:
    if isinstance(reason, str):
        choice.finish = FINISH.get(reason, reason)[:64]
