"""Pairs and legs for tests, with defaults for every field."""

from typing import Any

import msgspec

from gateway.model.pair import Leg, Pair


def chat_answer(text: str, finish: str = "stop") -> bytes:
    """A whole chat completion."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish}
    return msgspec.json.encode({"id": "a", "object": "chat.completion", "choices": [choice]})


def make_leg(**fields: Any) -> Leg:
    """A leg that answered."""
    base = Leg("bf16", "bf16/0", 200, "", chat_answer("the answer"), 0.1, 0.2, 0.3, 10, 5)
    return msgspec.structs.replace(base, **fields)


def make_pair(**fields: Any) -> Pair:
    """A pair whose legs all answered alike."""
    request = msgspec.json.encode({"model": "m", "messages": [{"role": "user", "content": "q"}]})
    candidate = make_leg(pool="int4", endpoint="int4/0")
    base = Pair(
        "req-1", 1_700_000_000.0, "rule", "acme", "m", "m/chat", "chat", "chat", False, "ab" * 16, request, make_leg(),
        candidate, make_leg(),
    )  # fmt: skip
    return msgspec.structs.replace(base, **fields)
