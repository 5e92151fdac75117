"""Group 2 of the cases: success, error and truncation of a stream are told apart."""

import json
from typing import Any

import pytest

from tests.cases.client import ClosedError
from tests.cases.conftest import Lane
from tests.cases.messages import DONE, FIN, OK, ROLE, answer, c, choice, completion, event, r0, r0s, stream
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


def _until_close(body: bytes) -> list[Step]:
    """A whole answer whose end is the close of its connection, as HTTP/1.0 has it."""
    return [b"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n" + body, Close()]


WHOLE = json.dumps(completion("x" * 400_000)).encode()
NO_ANSWERS: dict[str, list[Step]] = {
    "empty": answer(b""),
    "page": answer(b"<html>maintenance</html>", headers=[("Content-Type", "text/html")]),
    "null": answer(None),
    "no-content": [b"HTTP/1.1 204 No Content\r\n\r\n"],
    "cut": _until_close(json.dumps(completion()).encode()[:-9]),
}


@pytest.mark.parametrize("name", NO_ANSWERS)
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "stream"])
def test_a_200_that_is_no_answer(lane: Lane, name: str, streamed: bool) -> None:
    """Empty bodies, pages of a load balancer and half an answer are the pool's fault: another endpoint is tried, then
    the client gets 502; never a 200 that its SDK cannot read."""
    request = (r0s if streamed else r0)(lane.model)
    lane.first.play(NO_ANSWERS[name])
    lane.second.play(stream(c("fine"), FIN, DONE) if streamed else OK)
    assert lane.request(request).header("x-quantgate-pool") == f"{lane.model}-b"
    assert lane.outcome()["attempts"][0]["failure"] == "bad_answer"
    lane.first.play(NO_ANSWERS[name])
    lane.second.play(NO_ANSWERS[name])
    reply = lane.request(request)
    assert (reply.status, reply.error["code"]) == (502, "bad_upstream_answer")


def test_a_long_answer_that_its_connection_cuts(lane: Lane) -> None:
    """Most of it is with the client by then, so the client's connection breaks off too; a whole one arrives."""
    lane.first.play(_until_close(WHOLE), _until_close(WHOLE[:-9]))
    assert lane.request(r0(lane.model)).body == WHOLE
    with lane.gateway.connect() as client, pytest.raises(ClosedError):
        client.request(r0(lane.model)).read()
    outcome = lane.outcome(result="upstream_truncated")
    assert outcome["failure"] == "broken_stream"


@pytest.mark.parametrize(
    ("path", "extra"),
    [("/v1/messages", {"max_tokens": 5}), ("/v1/embeddings", {"input": "x"})],
    ids=["messages", "embeddings"],
)
def test_error_under_a_200_of_other_apis(lane: Lane, path: str, extra: dict[str, Any]) -> None:
    """What is an error and nothing else has its own status on every path."""
    lane.first.play(answer({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}))
    assert lane.request(r0(lane.model, **extra), path=path).header("x-quantgate-pool") == f"{lane.model}-b"
    lane.first.play(answer({"type": "error", "error": {"type": "invalid_request_error", "message": "bad"}}))
    reply = lane.request(r0(lane.model, **extra), path=path)
    assert (reply.status, reply.pool_error["message"]) == (400, "bad")
    assert len(lane.second.received) == 1


def test_errors_that_have_words_alone(lane: Lane) -> None:
    """Events of the Messages and Responses APIs have no numbers: a client's mistake is told as one, ejects nobody and
    is tried nowhere else; a full pool is told as that."""
    bad = b"event: error\n" + event({"type": "error", "error": {"type": "invalid_request_error", "message": "bad"}})
    for _ in range(8):
        lane.first.play(stream(bad))
        reply = lane.request(r0s(lane.model, max_tokens=5), path="/v1/messages")
        assert (reply.status, reply.pool_error["message"]) == (400, "bad")
    assert lane.outcome(8)["result"] == "client_error"
    assert lane.second.received == []
    response = {"object": "response", "status": "failed", "error": {"code": "rate_limit_exceeded", "message": "full"}}
    full = stream(event({"type": "response.failed", "response": response}))
    lane.first.play(full)
    lane.second.play(full)
    reply = lane.request({"model": lane.model, "input": "x", "stream": True}, path="/v1/responses")
    assert (reply.status, reply.header("retry-after")) == (429, "1")


@pytest.mark.parametrize("word", ["abort", "error"])
def test_an_answer_that_the_engine_gave_up(lane: Lane, word: str) -> None:
    """Engines that stop or are paused end answers with a reason of their own under a 200: the client gets what there
    is, and it counts as the pool's failure; before any output another endpoint is tried."""
    given_up = event(choice({}, word))
    whole = completion()
    whole["choices"][0]["finish_reason"] = word
    lane.first.play(stream(c("a"), given_up, DONE), answer(whole), stream(ROLE, given_up, DONE))
    assert lane.request(r0s(lane.model)).body == c("a") + given_up + DONE
    assert lane.request(r0(lane.model)).json == whole
    assert lane.second.received == []
    for outcome in (lane.outcome(1), lane.outcome(2)):
        assert (outcome["result"], outcome["failure"]) == ("upstream_error", "error_event")
        assert (outcome["status"], outcome["finish_reason"]) == (200, word)
    lane.second.play(stream(c("fine"), FIN, DONE))
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
