"""Chat completions and completions: bodies, and chunks of a stream, into parts.

Owns the field names of these two APIs as runtimes really spell them. Never raises. Called by `gateway.core.assemble`.
"""

from typing import Any

from gateway.core.assemble.parts import AnswerParts, ChoiceParts, as_index, as_list, as_object, as_text, content_text


def read_body(parts: AnswerParts, body: dict[str, Any]) -> None:
    """Read a whole answer."""
    _read(parts, body, whole=True)
    parts.done = True


def read_event(parts: AnswerParts, chunk: dict[str, Any]) -> None:
    """Read one chunk. The usage-only chunk has no choices: an empty list, null, or no key at all."""
    _read(parts, chunk, whole=False)


def _read(parts: AnswerParts, chunk: dict[str, Any], *, whole: bool) -> None:
    """Chunks and bodies keep their choices in a list, under ``delta``, ``message`` or ``text``."""
    parts.model = as_text(chunk.get("model")) or parts.model
    if chunk.get("usage") is not None:
        parts.add_usage(chunk["usage"])
    for position, entry in enumerate(as_list(chunk.get("choices"))):
        found = as_object(entry)
        index = as_index(found.get("index"))
        _read_choice(parts.choice(position if index is None else index), found, whole=whole)


def _read_choice(choice: ChoiceParts, entry: dict[str, Any], *, whole: bool) -> None:
    message = as_object(entry.get("delta") if entry.get("delta") is not None else entry.get("message"))
    choice.add_text(as_text(entry.get("text")))
    if message:
        _read_message(choice, message, whole=whole)
    if entry.get("logprobs") is not None:
        choice.logprobs = True
    finish = entry.get("finish_reason")
    if finish is not None:
        choice.finish = finish[:64] if isinstance(finish, str) else "unreadable"


def _read_message(choice: ChoiceParts, message: dict[str, Any], *, whole: bool) -> None:
    content = message.get("content")
    choice.add_text(content_text(content))
    if isinstance(content, list):
        _read_thinking(choice, content)
    # vLLM renamed the field; a server in between may send both names with the same text
    choice.add_reasoning(as_text(message.get("reasoning_content")) or as_text(message.get("reasoning")))
    if as_text(message.get("refusal")):
        choice.refusal.append(message["refusal"])
    if message.get("audio") or message.get("images"):
        choice.other_output = True
    entries = as_list(message.get("tool_calls"))
    for position, entry in enumerate(entries):
        _read_call(choice, as_object(entry), position, len(entries), whole=whole)
    legacy = as_object(message.get("function_call"))
    if legacy:
        call = choice.call_for(-1, None, None, 0, 1)
        call.add(None, legacy.get("name"), legacy.get("arguments"))


def _read_thinking(choice: ChoiceParts, content: list[Any]) -> None:
    for part in content:
        found = as_object(part)
        if found.get("type") == "thinking":
            choice.add_reasoning(content_text(found.get("thinking")))


def _read_call(choice: ChoiceParts, entry: dict[str, Any], position: int, entries: int, *, whole: bool) -> None:
    custom = as_object(entry.get("custom"))
    function = as_object(entry.get("function"))
    name = custom.get("name") if custom else function.get("name")
    if whole:
        call = choice.open_call()
    else:
        call = choice.call_for(as_index(entry.get("index")), entry.get("id"), name, position, entries)
    call.custom |= bool(custom) or entry.get("type") == "custom"
    call.add(entry.get("id"), name, custom.get("input") if custom else function.get("arguments"))
