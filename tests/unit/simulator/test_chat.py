"""Chat completions, whole and streamed."""

import json

import pytest

from gateway.simulator import chat as chat_api
from gateway.simulator.compose import compose
from gateway.simulator.config import Config
from gateway.simulator.frame import DONE, Frame
from tests.unit.simulator.rig import BODIES, FRAME, answered, ask, assert_same_said, chat


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("fault", [None, "empty", "broken_json", "truncated"])
def test_stream_and_whole_say_the_same(name: str, fault: str | None) -> None:
    """A client gets the same answer streamed and unstreamed, good or bad."""
    assert_same_said(chat_api, BODIES[name], fault)


def test_chat_stream_is_one_step_a_token() -> None:
    """As many steps as tokens; the role comes with the first, reason, usage and [DONE] with the last."""
    asked, answer = answered(chat())
    steps = list(chat_api.events(answer, asked, FRAME))
    assert len(steps) == answer.completion_tokens
    assert b'"role":"assistant"' in steps[0]
    assert steps[-1].endswith(DONE)
    assert b'"finish_reason":"stop"' in steps[-1]
    assert b'"choices":[],"usage"' in steps[-1]
    assert not any(b"[DONE]" in step for step in steps[:-1])


def test_chat_without_usage_and_without_done() -> None:
    """No usage chunk unless asked for; the fault no_done leaves [DONE] out."""
    asked = ask(**chat())
    answer = compose(asked, Config())
    stream = b"".join(chat_api.events(answer, asked, Frame("1", 1, "sim", "f", done=False)))
    assert b'"usage"' not in stream
    assert b"[DONE]" not in stream


def test_chat_continuous_usage_counts_up() -> None:
    """With continuous_usage_stats every chunk carries the count so far."""
    asked = ask(**chat(stream_options={"continuous_usage_stats": True}))
    answer = compose(asked, Config())
    events = b"".join(chat_api.events(answer, asked, FRAME)).split(b"\n\n")
    counts = [json.loads(event[6:])["usage"]["completion_tokens"] for event in events if event.startswith(b"data: {")]
    assert counts == sorted(counts)
    assert counts[-1] == answer.completion_tokens


def test_chat_logprobs() -> None:
    """A log-probability for every piece of content, with as many alternatives as asked for, streamed or not."""
    asked = ask(**chat(logprobs=True, top_logprobs=3))
    answer = compose(asked, Config())
    content = json.loads(chat_api.whole(answer, asked, FRAME))["choices"][0]["logprobs"]["content"]
    assert [entry["token"] for entry in content] == list(answer.choices[0].pieces)
    assert {len(entry["top_logprobs"]) for entry in content} == {3}
    assert all(entry["logprob"] <= 0 for entry in content)
    stream = b"".join(chat_api.events(answer, asked, FRAME))
    assert stream.count(b'"top_logprobs"') == len(content)


def test_chat_whole_has_vllms_fields() -> None:
    """Content is null beside tool calls, usage adds up, the fingerprint is there."""
    asked, answer = answered(BODIES["tools"])
    body = json.loads(chat_api.whole(answer, asked, FRAME))
    assert body["choices"][0]["message"]["content"] is None
    assert body["usage"]["total_tokens"] == body["usage"]["prompt_tokens"] + body["usage"]["completion_tokens"]
    assert body["usage"]["prompt_tokens_details"] == {"cached_tokens": 2}
    assert body["system_fingerprint"] == FRAME.fingerprint


def test_error_event_is_vllms() -> None:
    """The error of a dying engine inside a stream is an object with code and type."""
    error = json.loads(chat_api.error_event("dead", 500)[6:])["error"]
    assert error == {"message": "dead", "type": "InternalServerError", "param": None, "code": 500}
