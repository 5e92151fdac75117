"""Group 2 of the cases: success, error and truncation of a stream are told apart."""

import json

import pytest

from tests.cases.conftest import Lane
from tests.cases.messages import DONE, FIN, OK, ROLE, answer, c, event, r0, r0s, stream
from tests.cases.upstream import Close, Gate, Reset, Step

QUEUE_FULL = event({"error": {"message": "queue full", "type": "overloaded", "code": 503}})
TOO_LONG = event({"error": {"code": 400, "message": "exceeds context"}})


def _finish_reasons(payloads: list[bytes]) -> list[str]:
    chunks = [json.loads(payload) for payload in payloads if payload != b"[DONE]"]
    return [
        choice["finish_reason"] for chunk in chunks for choice in chunk.get("choices", ()) if choice["finish_reason"]
    ]


@pytest.mark.parametrize("ending", [Reset(), Close()], ids=["reset", "close"])
@pytest.mark.parametrize("tail", [b"", b'data: {"id":"a","cho'], ids=["at-boundary", "inside-event"])
def test_b15_break_after_content_is_no_success(lane: Lane, ending: Step, tail: bytes) -> None:
    """A stream that breaks ends in an error event and [DONE], without an invented finish reason, and counts as
    truncated."""
    gate = Gate()
    parts: list[Step] = [c("par"), *([tail] if tail else []), gate, ending]
    lane.first.play(stream(*parts, end=False))
    with lane.gateway.connect() as client:
        reply = client.request(r0s(lane.model))
        events = reply.events()
        assert next(events).json["choices"][0]["delta"]["content"] == "par"
        gate.open()
        rest = [found.data for found in events if found.data is not None]
    assert rest[-1] == b"[DONE]"
    errors = [json.loads(data) for data in rest[:-1] if data.startswith(b'{"error"')]
    assert len(errors) == 1
    assert {"message", "type", "param", "code"} <= errors[0]["error"].keys()
    assert b'finish_reason":"' not in reply.body.replace(b" ", b"")
    assert lane.outcome()["result"] == "upstream_truncated"
    assert lane.second.received == []


def test_b15_end_without_a_finish_reason_is_no_success(lane: Lane) -> None:
    """A properly framed stream that lacks finish reason and [DONE] is incomplete all the same."""
    lane.first.play(stream(c("par"), c("tial")))
    payloads = lane.request(r0s(lane.model)).payloads()
    assert payloads[-1] == b"[DONE]"
    assert b'"error"' in payloads[-2]
    assert lane.outcome()["result"] == "upstream_truncated"


@pytest.mark.parametrize("before", [[], [ROLE], [b": wait\n\n"]], ids=["first", "after-role", "after-comment"])
def test_b17_error_as_first_word_is_the_status(lane: Lane, before: list[bytes]) -> None:
    """Nothing had reached the client, so it gets the error's real status; and another endpoint may answer instead."""
    script = stream(*before, QUEUE_FULL, DONE)
    lane.first.play(script)
    lane.second.play(script)
    reply = lane.request(r0s(lane.model))
    assert reply.status == 503
    assert reply.pool_error["message"] == "queue full"
    assert lane.outcome(status=503)["result"] == "upstream_error"
    lane.first.play(script)
    lane.second.play(stream(c("fine"), FIN, DONE))
    assert lane.request(r0s(lane.model)).body == c("fine") + FIN + DONE


def test_b17_error_as_a_whole_answer(lane: Lane) -> None:
    """Status 200 over an error object and nothing else: the client gets the error's own, another endpoint is tried, and
    it counts against the pool; a client's error stays its own."""
    script = answer({"error": {"message": "queue full", "type": "overloaded", "code": 503}})
    lane.first.play(script)
    lane.second.play(script)
    reply = lane.request(r0(lane.model))
    assert (reply.status, reply.pool_error["message"]) == (503, "queue full")
    outcome = lane.outcome(status=503)
    assert (outcome["result"], outcome["failure"]) == ("upstream_error", "error_event")
    lane.first.play(script)
    lane.second.play(OK)
    assert lane.request(r0(lane.model)).json["choices"]
    lane.first.play(answer({"error": {"message": "exceeds context", "code": 400}}))
    assert lane.request(r0(lane.model)).status == 400


def test_b17_error_in_mid_stream_is_relayed(lane: Lane) -> None:
    """After content the error event is passed on unchanged, and the request counts as failed with its cause."""
    lane.first.play(stream(c("a"), QUEUE_FULL, DONE))
    reply = lane.request(r0s(lane.model))
    assert reply.status == 200
    assert reply.body == c("a") + QUEUE_FULL + DONE
    outcome = lane.outcome()
    assert (outcome["result"], outcome["failure"]) == ("upstream_error", "error_event")


def test_b19_client_error_inside_a_200(lane: Lane) -> None:
    """An error event with code 400 as the first word becomes 400 JSON, is the client's fault, and no other endpoint is
    bothered; many of them do not eject the endpoint."""
    for number in range(8):
        lane.first.play([*stream(TOO_LONG), Close()] if number % 2 else stream(TOO_LONG, DONE))
        reply = lane.request(r0s(lane.model))
        assert reply.status == 400
        assert "exceeds context" in reply.pool_error["message"]
    assert lane.outcome(8)["result"] == "client_error"
    assert lane.second.received == []
    lane.first.play(stream(c("fine"), FIN, DONE))
    assert lane.request(r0s(lane.model)).body == c("fine") + FIN + DONE


HOSTILE = [
    b"data: nope\n\n",
    b"data: [1,2]\n\n",
    b'data: {"choices":7}\n\n',
    b'data: {"choices":[null]}\n\n',
    b'data: {"choices":[{"delta":[]}]}\n\n',
    b'data: {"choices":[{"delta":{"content":5,"tool_calls":"x"}}],"usage":"much"}\n\n',
    b'data: {"choices":[],"usage":{"prompt_tokens":"three","completion_tokens":null}}\n\n',
    b"data: \xff\xfe\x00\n\n",
    b"event\n\n",
    b"data\n\n",
    b'data: {"error":null,"choices":[{"index":99999999999999999999,"delta":{"content":"x"}}]}\n\n',
]


@pytest.mark.parametrize("place", ["first", "second", "last"])
def test_b21_what_observers_cannot_read_passes(lane: Lane, place: str) -> None:
    """Observers never break the stream: events they cannot make sense of arrive as they were sent."""
    for strange in HOSTILE:
        parts = {"first": [strange, c("a"), FIN], "second": [c("a"), strange, FIN], "last": [c("a"), FIN, strange]}[
            place
        ]
        lane.first.play(stream(*parts, DONE))
        options = {"stream_options": {"include_usage": True}}
        reply = lane.request(r0s(lane.model, **options))
        assert reply.status == 200
        assert reply.body == b"".join(parts) + DONE, strange
    assert {lane.outcome(number + 1)["result"] for number in range(len(HOSTILE))} == {"ok"}
