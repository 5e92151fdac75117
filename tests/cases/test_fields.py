"""Group 5 of the cases: other OpenAI fields pass untouched, and every error has OpenAI's shape."""

import json
import time
from typing import Any

import pytest

from gateway.core.assemble import assemble
from tests.cases.client import call
from tests.cases.conftest import Lane
from tests.cases.gateway import Gateway
from tests.cases.messages import DONE, FIN, OK, answer, c, choice, completion, event, failure, r0, r0s, stream
from tests.cases.upstream import Gate, Reset


@pytest.mark.parametrize("name", ["reasoning", "reasoning_content"])
def test_b36_reasoning_counts_as_output(lane: Lane, name: str) -> None:
    """Unknown delta fields pass untouched; reasoning is the first token, whichever name it has."""
    gate = Gate()
    thought = event(choice({name: "think"}))
    lane.first.play(stream(thought, gate, c("x"), FIN, DONE))
    with lane.gateway.connect() as client:
        sent_at = time.monotonic()
        reply = client.request(r0s(lane.model))
        events = reply.events()
        assert next(events).json["choices"][0]["delta"] == {name: "think"}
        seen_after_ms = (time.monotonic() - sent_at) * 1000
        gate.open()
        list(events)
    assert reply.body == thought + c("x") + FIN + DONE
    assert 0 <= lane.outcome()["ttft_ms"] <= seen_after_ms
    assert assemble(None, reply.body).choices[0].reasoning == "think"


def test_b37_choices_keep_their_index(lane: Lane) -> None:
    """With n = 2 the chunks keep their index and order, and each choice its own text."""
    parts = [
        event(choice({"content": "beta"}, index=1)),
        event(choice({"content": "alpha"}, index=0)),
        event(choice({}, "stop", index=1)),
        event(choice({"content": "!"}, index=0)),
        event(choice({}, "length", index=0)),
    ]
    lane.first.play(stream(*parts, DONE))
    reply = lane.request(r0s(lane.model, n=2))
    assert reply.body == b"".join(parts) + DONE
    texts = {found.index: found.text for found in assemble(None, reply.body).choices}
    assert texts == {0: "alpha!", 1: "beta"}


def test_b39_whole_answers_with_two_choices(lane: Lane) -> None:
    """Recording never alters the body: the client's bytes are the pool's."""
    choices = [
        {"index": index, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        for index, text in enumerate(("alpha", "beta"))
    ]
    payload = json.dumps(completion(choices=choices), indent=1).encode()
    lane.first.play(answer(payload))
    assert lane.request(r0(lane.model, n=2)).body == payload


def test_b40_infinite_log_probability(lane: Lane) -> None:
    """A body that is no valid JSON for strict parsers passes as it is, streamed or not."""
    raw = json.dumps(completion()).replace(
        '"finish_reason"', '"logprobs":{"content":[{"logprob":-Infinity}]},"finish_reason"'
    )
    lane.first.play(answer(raw.encode()))
    reply = lane.request(r0(lane.model, logprobs=True, top_logprobs=2))
    assert (reply.status, reply.body) == (200, raw.encode())
    strange = b'data: {"choices":[{"index":0,"delta":{"content":"x"},"logprobs":{"content":[{"logprob":NaN}]}}]}\n\n'
    lane.first.play(stream(strange, FIN, DONE))
    assert lane.request(r0s(lane.model, logprobs=True)).body == strange + FIN + DONE


@pytest.mark.parametrize("content", [{"content": None}, {}, {"content": ""}], ids=["null", "absent", "empty"])
def test_b42_assistant_message_without_content(lane: Lane, content: dict[str, Any]) -> None:
    """A tool-calling assistant message needs no content."""
    called = {"id": "c0", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "go"},
        {"role": "assistant", **content, "tool_calls": [called]},
        {"role": "tool", "tool_call_id": "c0", "content": "1"},
    ]
    lane.first.play(OK)
    assert lane.request({"model": lane.model, "messages": messages}).status == 200
    assert lane.first.received[0].json["messages"] == messages


def test_b44_unknown_fields_arrive(lane: Lane) -> None:
    """Fields that no schema of ours knows reach the pool byte for byte; only the model's name is the pool's."""
    tail = (
        b'"messages":[{"role":"user","content":"hi","x":1e40}],"chat_template_kwargs":{"enable_thinking":false},'
        b'"return_token_ids":true,"x_vendor":{"a":[1,null, 1.10]} , "z":"\\u00e9\\/"}'
    )
    lane.first.play(OK)
    reply = lane.request(b'{"model":"%b",%b' % (lane.model.encode(), tail))
    assert reply.status == 200
    assert lane.first.received[0].body == b'{"model":"up",' + tail


ODD_BODIES = {
    "unknown-model": (404, b'{"model":"nobody","messages":[{"role":"user","content":"hi"}]}'),
    "broken-json": (400, b'{"model":"m","messages":['),
    "no-model": (400, b'{"messages":[{"role":"user","content":"hi"}]}'),
    "model-is-a-number": (400, b'{"model":5,"messages":[{"role":"user","content":"hi"}]}'),
    "not-an-object": (400, b"[1]"),
    "empty": (400, b""),
}


@pytest.mark.parametrize("name", ODD_BODIES)
def test_b46_errors_have_openai_shape(gateway: Gateway, name: str) -> None:
    """What the gateway refuses is said as an error object in JSON that SDKs can read."""
    status, body = ODD_BODIES[name]
    reply = call(gateway.port, body)
    assert reply.status == status
    assert reply.error["message"]


def test_b46_errors_for_clients_of_anthropic(gateway: Gateway, lane: Lane) -> None:
    """They go by a ``type`` beside the error: Vercel's shows no message without it. The gateway's own refusals have it,
    wherever they come from, and so has a pool's error that is put into shape or came as the first event of a stream."""
    path = "/v1/messages"

    def refused(body: object, path: str = path) -> tuple[int, str, str]:
        reply = call(gateway.port, body, path=path)
        return reply.status, reply.json["type"], reply.error["code"]

    assert refused(b"{") == (400, "error", "invalid_json")
    assert refused({**r0("nobody"), "max_tokens": 5}, f"{path}?beta=true") == (404, "error", "model_not_found")
    assert refused({**r0("nobody")}, f"{path}/count_tokens") == (404, "error", "model_not_found")
    assert refused({}, f"{path}/batches") == (404, "error", "unknown_path")
    lane.first.play(answer({"detail": "too warm"}, 400))
    told = lane.request(r0(lane.model, max_tokens=5), path=path)
    assert (told.json["type"], told.error["message"]) == ("error", "too warm")
    event = b'event: error\ndata: {"type":"error","error":{"type":"invalid_request_error","message":"no"}}\n\n'
    lane.first.play(stream(event))
    told = lane.request(r0s(lane.model, max_tokens=5), path=path)
    assert (told.status, told.json["type"], told.pool_error["message"]) == (400, "error", "no")
    for endpoint in (lane.first, lane.second):
        endpoint.play(*[[Reset()]] * 3)
    down = lane.request(r0(lane.model, max_tokens=5), path=path)
    assert (down.status, down.json["type"], down.error["code"]) == (502, "error", "upstream_closed")


def test_b46_errors_on_other_paths(gateway: Gateway, lane: Lane) -> None:
    """404, 405 and a pool that is down have the same shape."""
    assert call(gateway.port, {}, path="/v1/nothing").error["code"] == "unknown_path"
    wrong_method = call(gateway.port, method="DELETE", path="/v1/chat/completions")
    assert (wrong_method.status, wrong_method.error["type"]) == (405, "invalid_request_error")
    lane.first.refuse()
    lane.second.refuse()
    for body in (r0(lane.model), r0s(lane.model)):
        down = lane.request(body)
        assert down.status in (502, 503)
        assert down.error["message"]


@pytest.mark.parametrize(
    ("flat", "message"),
    [
        ({"object": "error", "message": "too long", "type": "BadRequestError", "param": None, "code": 400}, "too long"),
        ({"error": "Unauthorized text"}, "Unauthorized text"),
        ({"detail": "no such thing"}, "no such thing"),
    ],
    ids=["sglang", "string", "detail"],
)
def test_b46_pools_with_other_error_shapes(lane: Lane, flat: dict[str, Any], message: str) -> None:
    """A pool's error in another shape reaches the client in OpenAI's, with the pool's status and words."""
    lane.first.play(answer(flat, 400))
    reply = lane.request(r0(lane.model))
    assert reply.status == 400
    assert message in reply.error["message"]


@pytest.mark.parametrize("status", [401, 403, 407])
def test_b46_pool_that_refuses_the_gateway(lane: Lane, status: int) -> None:
    """A pool's 401 speaks of the gateway's credentials, not of the client's: the client gets 502, without the pool's
    words or its challenge."""
    for endpoint in (lane.first, lane.second):
        endpoint.play(failure(status, "bad key of the gateway", WWW_Authenticate="Bearer"))
    reply = lane.request(r0(lane.model))
    assert reply.status == 502
    assert "bad key" not in reply.error["message"]
    assert reply.header("www-authenticate") is None
