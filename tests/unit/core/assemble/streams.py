"""Answers of the chat API as bytes, for the tests of this folder."""

import json
from typing import Any

from gateway.core.assemble import Answer, assemble

USER = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


def chunk(delta: dict[str, Any], finish: str | None = None, index: int = 0) -> dict[str, Any]:
    """One chat chunk."""
    return {
        "object": "chat.completion.chunk",
        "model": "m",
        "choices": [{"index": index, "delta": delta, "finish_reason": finish}],
    }


def calls(*entries: dict[str, Any]) -> dict[str, Any]:
    """A chunk of tool-call deltas."""
    return chunk({"tool_calls": list(entries)})


def stream(*chunks: Any, done: bool = True) -> bytes:
    """Chunks as an event stream."""
    text = "".join(f"data: {json.dumps(item)}\n\n" for item in chunks)
    return (text + ("data: [DONE]\n\n" if done else "")).encode()


def assembled(*chunks: Any, done: bool = True) -> Answer:
    """The answer of a chat stream."""
    return assemble(USER, stream(*chunks, done=done))


FIN = chunk({}, "stop")
FIN_CALLS = chunk({}, "tool_calls")
