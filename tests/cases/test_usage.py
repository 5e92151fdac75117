"""Group 3 of the cases: the usage chunk and stream_options."""

from collections.abc import Sequence
from typing import Any

import pytest

from tests.cases.conftest import Lane
from tests.cases.messages import DONE, FIN, OK, USAGE, answer, c, event, r0, r0s, stream
from tests.cases.upstream import Received, Step

BASE = {"id": "a", "object": "chat.completion.chunk", "usage": USAGE}
SHAPES: dict[str, dict[str, Any]] = {"empty": BASE | {"choices": []}, "null": BASE | {"choices": None}, "missing": BASE}


@pytest.mark.parametrize("shape", SHAPES)
def test_b22_usage_without_choices(lane: Lane, shape: str) -> None:
    """The usage-only chunk passes to a client that asked for it, is kept from one that did not, and is recorded for
    both."""
    usage = event(SHAPES[shape])
    lane.first.play(stream(c("a"), FIN, usage, DONE), stream(c("a"), FIN, usage, DONE))
    asked = lane.request(r0s(lane.model, stream_options={"include_usage": True}))
    assert asked.body == c("a") + FIN + usage + DONE
    silent = lane.request(r0s(lane.model))
    assert silent.body == c("a") + FIN + DONE
    for number in (1, 2):
        outcome = lane.outcome(number)
        assert (outcome["prompt_tokens"], outcome["completion_tokens"]) == (3, 1)


def test_b22_usage_lost_by_a_break(lane: Lane) -> None:
    """An interrupted stream may lack its usage: nothing is invented."""
    lane.first.play(stream(c("a"), FIN, DONE))
    assert lane.request(r0s(lane.model)).body == c("a") + FIN + DONE
    assert "completion_tokens" not in lane.outcome()


@pytest.mark.parametrize("extra", [{"stream": False}, {}, {"stream": None}], ids=["false", "absent", "null"])
def test_b24_no_stream_options_without_stream(lane: Lane, extra: dict[str, Any]) -> None:
    """stream_options is set only where stream is true; upstreams answer 400 otherwise."""
    lane.first.play(OK)
    assert lane.request(r0(lane.model, **extra)).status == 200
    body = lane.first.received[0].json
    assert "stream_options" not in body
    assert body.get("stream", "absent") == extra.get("stream", "absent")


def _usage_if_asked(request: Received) -> Sequence[Step]:
    asked = (request.json.get("stream_options") or {}).get("include_usage") is True
    return stream(c("a"), FIN, *([event(SHAPES["empty"])] if asked else []), DONE)


def test_b25_usage_asked_for_is_delivered(lane: Lane) -> None:
    """A client's include_usage reaches the pool, and one chunk with empty choices comes before [DONE]."""
    lane.first.default = _usage_if_asked
    reply = lane.request(r0s(lane.model, stream_options={"include_usage": True}))
    assert reply.body == c("a") + FIN + event(SHAPES["empty"]) + DONE
    assert lane.first.received[0].json["stream_options"] == {"include_usage": True}


def test_b25_usage_is_asked_for_by_the_gateway(lane: Lane) -> None:
    """Where the client says nothing the gateway asks for itself and keeps the chunk; an explicit false is respected."""
    lane.first.default = _usage_if_asked
    assert lane.request(r0s(lane.model)).body == c("a") + FIN + DONE
    assert lane.outcome()["completion_tokens"] == 1
    assert lane.request(r0s(lane.model, stream_options={"include_usage": False})).body == c("a") + FIN + DONE
    assert lane.first.received[1].json["stream_options"] == {"include_usage": False}
    assert "completion_tokens" not in lane.outcome(2)
    other = lane.request(r0s(lane.model, stream_options={"continuous_usage_stats": False}))
    assert other.body == c("a") + FIN + DONE
    assert lane.first.received[2].json["stream_options"]["continuous_usage_stats"] is False


def test_b22_usage_at_the_end_of_a_long_answer(lane: Lane) -> None:
    """A whole answer of any length: vectors of many inputs, logprobs; usage stands behind them."""
    vectors = [{"index": index, "object": "embedding", "embedding": [0.123456789] * 1_000} for index in range(60)]
    usage = {"prompt_tokens": 600, "total_tokens": 600}
    lane.first.play(answer({"object": "list", "data": vectors, "model": "up", "usage": usage}))
    reply = lane.request({"model": lane.model, "input": ["text"] * 60}, path="/v1/embeddings")
    assert len(reply.body) > 600_000
    assert (reply.json["usage"], lane.outcome()["prompt_tokens"]) == (usage, 600)
