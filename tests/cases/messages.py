"""The notation of the cases: requests R0 and R0s, chunks C, FIN, DONE, and answers as script steps for the upstream."""

import json
from collections.abc import Sequence
from typing import Any

from tests.cases.upstream import Close, Pause, Step

DONE = b"data: [DONE]\n\n"


def r0(model: str, **extra: Any) -> dict[str, Any]:
    """The cases' R0: a plain chat request."""
    return {"model": model, "messages": [{"role": "user", "content": "hi"}], **extra}


def r0s(model: str, **extra: Any) -> dict[str, Any]:
    """R0 streamed."""
    return r0(model, stream=True, **extra)


def event(payload: object) -> bytes:
    """One event with this JSON."""
    return b"data: " + json.dumps(payload, separators=(",", ":"), ensure_ascii=False).encode() + b"\n\n"


def choice(delta: dict[str, Any], finish: str | None = None, index: int = 0, **extra: Any) -> dict[str, Any]:
    """A chunk with one choice."""
    entry = {"index": index, "delta": delta, "finish_reason": finish}
    return {"id": "a", "object": "chat.completion.chunk", "created": 1, "model": "up", "choices": [entry], **extra}


def c(text: str) -> bytes:
    """The cases' C(x): a chunk with that content."""
    return event(choice({"content": text}))


def tool(*calls: dict[str, Any]) -> bytes:
    """A chunk with these tool-call deltas."""
    return event(choice({"tool_calls": list(calls)}))


FIN = event(choice({}, "stop"))
FIN_TOOLS = event(choice({}, "tool_calls"))
ROLE = event(choice({"role": "assistant", "content": ""}))
USAGE = {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4}
SSE_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n"
LAST = b"0\r\n\r\n"


def chunk(data: bytes) -> bytes:
    """One chunk of a chunked body."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def stream(*steps: Step, head: bytes = SSE_HEAD, end: bool = True) -> list[Step]:
    """A chunked answer: each bytes step becomes a chunk and a write of its own."""
    body = [chunk(step) if isinstance(step, bytes) else step for step in steps]
    return [head, *body, *([LAST] if end else [])]


def answer(
    payload: object, status: int = 200, *, headers: Sequence[tuple[str, str]] = (), close: bool = False
) -> list[Step]:
    """A whole JSON answer; bytes are sent as they are."""
    body = payload if isinstance(payload, bytes) else json.dumps(payload, separators=(",", ":")).encode()
    names = {name.lower() for name, _ in headers}
    lines = [f"HTTP/1.1 {status} Status", f"Content-Length: {len(body)}"]
    if "content-type" not in names:
        lines.append("Content-Type: application/json")
    lines += [f"{name}: {value}" for name, value in headers]
    whole = ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body
    return [whole, Close()] if close else [whole]


def completion(text: str = "hello", **extra: Any) -> dict[str, Any]:
    """A whole chat completion."""
    message = {"role": "assistant", "content": text}
    return {
        "id": "a",
        "object": "chat.completion",
        "created": 1,
        "model": "up",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": USAGE,
        **extra,
    }


def failure(status: int, message: str = "broken", **headers: str) -> list[Step]:
    """An error of the pool in OpenAI's shape."""
    pairs = [(name.replace("_", "-"), value) for name, value in headers.items()]
    error = {"message": message, "type": "InternalServerError", "param": None, "code": status}
    return answer({"error": error}, status, headers=pairs)


OK: list[Step] = answer(completion())
GAP = Pause()
