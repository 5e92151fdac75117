"""Legacy completions, whole and streamed."""

import json
from typing import Any

import pytest

from gateway.simulator import completions
from gateway.simulator.compose import compose
from gateway.simulator.config import Config
from gateway.simulator.frame import DONE
from tests.unit.simulator.rig import FRAME, answered, ask, chat


@pytest.mark.parametrize("extra", [{}, {"n": 2}, {"echo": True}, {"max_tokens": 1}])
def test_completions_stream_and_whole(extra: dict[str, Any]) -> None:
    """The text of a stream's chunks is the whole answer's, choice by choice."""
    asked = ask("completions", prompt="once upon a time", stream_options={"include_usage": True}, **extra)
    answer = compose(asked, Config())
    whole = json.loads(completions.whole(answer, asked, FRAME))
    texts: dict[int, str] = {}
    finishes: dict[int, str] = {}
    stream = b"".join(completions.events(answer, asked, FRAME))
    assert stream.endswith(DONE)
    for event in stream.split(b"\n\n"):
        if event.startswith(b"data: {"):
            for choice in json.loads(event[6:])["choices"]:
                texts[choice["index"]] = texts.get(choice["index"], "") + choice["text"]
                if choice["finish_reason"]:
                    finishes[choice["index"]] = choice["finish_reason"]
    assert texts == {choice["index"]: choice["text"] for choice in whole["choices"]}
    assert finishes == {choice["index"]: choice["finish_reason"] for choice in whole["choices"]}
    assert texts[0].startswith("once upon a time") == bool(extra.get("echo"))


def test_empty_answers_have_a_form_too() -> None:
    """An answer without any text ends with a finish reason and [DONE]."""
    asked, answer = answered(chat(), "empty")
    stream = b"".join(completions.events(answer, asked, FRAME))
    assert b'"finish_reason":"stop"' in stream
    assert stream.endswith(DONE)
