"""Group 1 of the cases: framing and parsing of server-sent events."""

import time

import pytest

from tests.cases.client import request_bytes
from tests.cases.conftest import Lane
from tests.cases.messages import DONE, FIN, ROLE, answer, c, completion, r0, r0s, stream
from tests.cases.upstream import GAP, Close, Gate, Hang, Reset, Step


def test_b01_event_cut_in_two(lane: Lane) -> None:
    """An event exists only at its blank line: cut by the transport it arrives whole, and nothing reports an error."""
    whole = c("hello")
    for cut in (1, 5, 6, 40, len(whole) - 2, len(whole) - 1):
        lane.first.play(stream(whole[:cut], GAP, whole[cut:], FIN, DONE))
        reply = lane.request(r0s(lane.model))
        assert reply.status == 200
        assert reply.body == whole + FIN + DONE
    outcomes = [lane.outcome(number) for number in range(1, 7)]
    assert {outcome["result"] for outcome in outcomes} == {"ok"}


def test_b03_character_cut_in_two(lane: Lane) -> None:
    """Bytes are passed on as they are: a multi-byte character on the boundary comes out unharmed."""
    whole = c("é漢🙂")
    for position in (whole.index("é".encode()) + 1, whole.index("漢".encode()) + 2, whole.index("🙂".encode()) + 1):
        lane.first.play(stream(c("before"), whole[:position], GAP, whole[position:], FIN, DONE))
        reply = lane.request(r0s(lane.model))
        assert reply.body == c("before") + whole + FIN + DONE


@pytest.mark.parametrize("end", [b"\r\n", b"\r", b"\n"], ids=["crlf", "cr", "lf"])
def test_b05_every_line_end_ends_an_event(lane: Lane, end: bytes) -> None:
    """LF, CR and CRLF all end lines: the first event is with the client before the second is sent."""
    gate = Gate()
    first, second, done = (part.rstrip(b"\n") + end + end for part in (c("a"), c("b"), DONE))
    lane.first.play(stream(first, gate, second, done))
    with lane.gateway.connect() as client:
        events = client.request(r0s(lane.model)).events()
        assert next(events).json["choices"][0]["delta"]["content"] == "a"
        gate.open()
        rest = [event.data for event in events]
    assert rest[-1] == b"[DONE]"
    assert rest.count(b"[DONE]") == 1
    assert len(lane.first.received) == 1, "the request was done twice"


def test_b07_no_space_after_the_colon(lane: Lane) -> None:
    """At most one space is cut after the colon: usage without it is recorded, and its [DONE] is the end."""
    usage = b'data:{"id":"a","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":1,"total_tokens":4}}\n\n'
    done = b"data:[DONE]\n\n"
    lane.first.play(stream(usage, done), stream(c("x"), FIN, usage, done))
    bare = lane.request(r0s(lane.model, stream_options={"include_usage": True}))
    assert bare.body == usage + done
    whole = lane.request(r0s(lane.model, stream_options={"include_usage": True}))
    assert whole.body == c("x") + FIN + usage + done
    for number in (1, 2):
        outcome = lane.outcome(number)
        assert (outcome["prompt_tokens"], outcome["completion_tokens"]) == (3, 1)
        assert outcome["result"] == "ok"


def test_b08_comments_are_no_data(lane: Lane) -> None:
    """Keep-alive comments are passed as comments or dropped, never as data, and never count as the first token."""
    gate = Gate()
    lane.first.play(stream(b": PROCESSING\n\n", GAP, b": PROCESSING\n\n", gate, c("x"), FIN, DONE))
    with lane.gateway.connect() as client:
        sent_at = time.monotonic()
        client.send(request_bytes(r0s(lane.model)))
        assert gate.reached.wait(10)
        time.sleep(0.05)  # lets the first token be visibly later than the comments
        opened_after_ms = (time.monotonic() - sent_at) * 1000
        gate.open()
        events = list(client.reply().events())
    for event in events:
        if event.data is None:
            assert all(line.startswith(b":") for line in event.raw.splitlines())
        else:
            assert not event.data.startswith(b":")
    assert [event.data for event in events if event.data is not None][-1] == b"[DONE]"
    assert lane.outcome()["ttft_ms"] >= opened_after_ms - 25


def test_b10_one_very_long_line(lane: Lane) -> None:
    """A line of 700,000 characters passes: no reader limit of a library cuts the stream."""
    long = c("x" * 700_000)
    lane.first.play(stream(long, FIN, DONE))
    reply = lane.request(r0s(lane.model))
    assert reply.body == long + FIN + DONE
    assert lane.outcome()["result"] == "ok"


@pytest.mark.parametrize(
    "steps",
    [[c("a"), FIN, DONE], [c("a"), FIN], [c("a"), FIN, DONE.rstrip(b"\n")], [c("a"), FIN.rstrip(b"\n")]],
    ids=["complete", "done-missing", "done-unfinished", "last-event-unfinished"],
)
@pytest.mark.parametrize("close", [False, True], ids=["kept", "closed"])
def test_b11_done_is_the_last_event_once(lane: Lane, steps: list[Step], close: bool) -> None:
    """[DONE] ends a normal stream exactly once, also where the pool forgot it."""
    lane.first.play([*stream(*steps), *([Close()] if close else [])])
    reply = lane.request(r0s(lane.model))
    payloads = reply.payloads()
    assert payloads[-1] == b"[DONE]"
    assert payloads.count(b"[DONE]") == 1
    assert lane.outcome()["result"] == "ok"


@pytest.mark.parametrize("ending", [Reset(), Close(), Hang()], ids=["reset", "close", "silence"])
def test_a_stream_is_whole_at_its_last_word(quick: Lane, ending: Step) -> None:
    """After [DONE] only the framing's end is missing, and some servers never send it: no error follows the terminator,
    and nobody is to blame."""
    quick.first.play(stream(c("a"), FIN, DONE, GAP, ending, end=False))
    reply = quick.request(r0s(quick.model))
    assert reply.body == c("a") + FIN + DONE
    outcome = quick.outcome()
    assert (outcome["result"], outcome.get("failure")) == ("ok", None)
    assert quick.request(r0(quick.model)).header("x-quantgate-pool") == f"{quick.model}-a"


def test_b13_no_buffering(lane: Lane) -> None:
    """Each event leaves as it comes, and the head tells proxies not to hold it back."""
    gates = [Gate() for _ in range(6)]
    parts: list[Step] = [ROLE]
    for number, gate in enumerate(gates):
        parts += [c(str(number)), gate]
    lane.first.play(stream(*parts, FIN, DONE))
    with lane.gateway.connect() as client:
        reply = client.request(r0s(lane.model), headers=[("Accept-Encoding", "gzip, br")])
        assert (reply.header("content-type") or "").startswith("text/event-stream")
        assert reply.header("cache-control") == "no-cache"
        assert reply.header("x-accel-buffering") == "no"
        assert reply.header("content-encoding") is None
        events = reply.events()
        assert next(events).json["choices"][0]["delta"]["role"] == "assistant"
        for number, gate in enumerate(gates):
            assert next(events).json["choices"][0]["delta"]["content"] == str(number)
            gate.open()
        assert [event.data for event in events][-1] == b"[DONE]"


def test_a_whole_answer_where_a_stream_was_asked(lane: Lane) -> None:
    """An SDK that waits for events would read JSON as an empty answer: another endpoint is tried, else the client gets
    502. Audio models may ignore the wish."""
    lane.first.play(answer(completion()))
    lane.second.play(stream(c("x"), FIN, DONE))
    assert lane.request(r0s(lane.model)).body == c("x") + FIN + DONE
    lane.first.play(answer(completion()))
    lane.second.play(answer(completion()))
    reply = lane.request(r0s(lane.model))
    assert (reply.status, reply.error["code"]) == (502, "bad_upstream_answer")


def test_b14_stream_where_a_whole_answer_was_asked(lane: Lane) -> None:
    """SSE is never relayed as JSON: another endpoint is tried, else the client gets 502 and a clear error."""
    script = stream(c("a"), c("b"), FIN, DONE)
    lane.first.play(script)
    assert lane.request(r0(lane.model)).json["choices"][0]["message"]["content"] == "hello"
    assert len(lane.second.received) == 1
    lane.first.play(script)
    lane.second.play(script)
    reply = lane.request(r0(lane.model))
    assert reply.status == 502
    assert reply.error["message"]
    outcome = lane.outcome(status=502)
    assert (outcome["result"], outcome["failure"]) == ("upstream_error", "bad_answer")
