"""The shapes that the generators share: requests, answers, streams, and one labelled case.

Owns no content. Labels name checks by their value: ``fail`` must fail, ``passes`` must pass (apply and hold), ``unsure`` is not
judged; every other check must not fail.
"""

# ruff: noqa: E501 - sample texts are kept whole

from __future__ import annotations

import json
from typing import Any

Body = dict[str, Any]


def case(name: str, lang: str, request: Body, answer: Body | str, **labels: list[str]) -> Body:
    """One labelled case. ``labels``: fail, passes, unsure."""
    known = {"fail": labels.get("fail", []), "pass": labels.get("passes", []), "unsure": labels.get("unsure", [])}
    return {"id": name, "lang": lang, "origin": "hand", "request": request, "answer": answer, "labels": known}


def ask(user: str, system: str = "", **fields: Any) -> Body:
    """A chat request with one user message."""
    messages = [{"role": "system", "content": system}] if system else []
    return {"model": "m", "messages": [*messages, {"role": "user", "content": user}], **fields}


def say(text: str | None, finish: str | None = "stop", **message: Any) -> Body:
    """A chat answer with one choice."""
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": "m",
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": text, **message}, "finish_reason": finish}
        ],
        "usage": {"prompt_tokens": 20, "completion_tokens": 40, "total_tokens": 60},
    }


def call(name: str, arguments: Any, number: int = 0) -> Body:
    """A tool call; arguments that are no string are spelled as JSON."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return {"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": text}}


def tool(name: str, description: str = "", **properties: Any) -> Body:
    """A function tool whose parameters are all required, save those whose schema says ``"optional": true``."""
    required = [key for key, schema in properties.items() if not schema.pop("optional", False)]
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


def chunk(delta: Body, finish: str | None = None, index: int = 0) -> Body:
    """One chunk of a chat stream."""
    choice = {"index": index, "delta": delta, "finish_reason": finish}
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "m", "choices": [choice]}


def stream(chunks: list[Body], done: bool = True, end: str = "\n\n", prefix: str = "data: ") -> str:
    """Chunks as an event stream."""
    lines = [prefix + json.dumps(item, ensure_ascii=False) + end for item in chunks]
    return "".join(lines) + (f"{prefix}[DONE]{end}" if done else "")


def text_stream(text: str, finish: str | None = "stop", size: int = 7, **framing: Any) -> str:
    """A text as a stream of small deltas, with the role first and finish_reason last."""
    pieces = [chunk({"content": text[at : at + size]}) for at in range(0, len(text), size)]
    last = [chunk({}, finish)] if finish else []
    return stream([chunk({"role": "assistant", "content": ""}), *pieces, *last], **framing)
