"""Group 7 of the cases: cancelling, leaks, memory."""

import time

import pytest

from tests.cases.client import ClosedError, request_bytes
from tests.cases.conftest import Lane
from tests.cases.gateway import wait_for
from tests.cases.messages import DONE, FIN, OK, SSE_HEAD, USAGE, c, chunk, event, r0, r0s, stream
from tests.cases.upstream import Gate, Hang, Repeat

PROMPT_S = 5.0  # at once, on a machine with much else to do: no timer of the gateway is as short


def _idle(lane: Lane) -> bool:
    """Whether the gateway holds nothing of this lane any more."""
    return lane.gateway.total("quantgate_inflight", pool=f"{lane.model}-a") == 0


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "stream"])
def test_b63_client_leaves_before_the_answer(lane: Lane, streamed: bool) -> None:
    """The pool's connection closes at once although no byte has come; in-flight returns to zero; nobody is blamed."""
    lane.first.play([Hang()])
    client = lane.gateway.connect()
    client.send(request_bytes(r0s(lane.model) if streamed else r0(lane.model)))
    received = lane.first.wait_received()
    left_at = time.monotonic()
    client.close()
    assert received.wait_closed()
    assert received.closed_at - left_at < PROMPT_S
    outcome = lane.outcome()
    assert outcome["result"] == "client_cancelled"
    assert outcome.get("failure", "") == ""
    wait_for(lambda: _idle(lane), "in-flight is zero")


def test_b63_client_leaves_with_a_second_request_behind_the_first(lane: Lane) -> None:
    """What it has pipelined does not hide that it left: the first one's connection closes at once, and the second
    reaches no pool."""
    lane.first.play([Hang()])
    client = lane.gateway.connect()
    client.send(request_bytes(r0s(lane.model)))
    received = lane.first.wait_received()
    client.send(request_bytes(r0s(lane.model)))
    left_at = time.monotonic()
    client.close()
    assert received.wait_closed()
    assert received.closed_at - left_at < PROMPT_S
    assert lane.outcome()["result"] == "client_cancelled"
    wait_for(lambda: _idle(lane), "in-flight is zero")
    assert len(lane.first.received) == 1


@pytest.mark.parametrize("how", ["reset", "close"])
@pytest.mark.parametrize("moment", ["flowing", "silent"])
def test_b64_client_leaves_in_mid_stream(lane: Lane, how: str, moment: str) -> None:
    """The pool's connection closes while tokens flow, and also while nothing is being written."""
    tail = Repeat(chunk(c("x")), 3000, 0.02) if moment == "flowing" else Hang()
    lane.first.play([SSE_HEAD, Repeat(chunk(c("x")), 3), tail])
    client = lane.gateway.connect()
    events = client.request(r0s(lane.model)).events()
    for _ in range(3):
        next(events)
    left_at = time.monotonic()
    client.reset() if how == "reset" else client.close()
    received = lane.first.received[0]
    assert received.wait_closed()
    assert received.closed_at - left_at < PROMPT_S
    assert lane.outcome()["result"] == "client_cancelled"
    lane.first.play(OK)
    assert lane.request(r0(lane.model)).status == 200
    assert lane.first.received[1].connection != received.connection, "a cancelled connection was used again"


def test_client_hangs_up_at_the_last_word(lane: Lane) -> None:
    """SDKs close at [DONE] without waiting for the framing's end: that is a whole answer, with its usage, and no
    cancelled one; nor does what comes too late open a breaker."""
    gate = Gate()
    usage = event({"id": "a", "object": "chat.completion.chunk", "choices": [], "usage": USAGE})
    lane.first.play(stream(c("x"), FIN, usage, DONE, gate))
    client = lane.gateway.connect()
    reply = client.request(r0s(lane.model, stream_options={"include_usage": True}))
    assert next(found for found in reply.events() if found.data == b"[DONE]")
    client.close()
    assert lane.first.wait_received().wait_closed()
    gate.open()
    outcome = lane.outcome()
    assert (outcome["result"], outcome["status"], outcome["finish_reason"]) == ("ok", 200, "stop")
    assert (outcome["prompt_tokens"], outcome["completion_tokens"]) == (3, 1)
    wait_for(lambda: _idle(lane), "in-flight is zero")


@pytest.mark.parametrize(
    "last",
    [
        event({"error": {"message": "the engine died", "type": "server_error", "code": 500}}),
        event({"choices": [{"index": 0, "delta": {}, "finish_reason": "abort"}]}),
    ],
    ids=["error", "given up"],
)
def test_client_hangs_up_at_the_pools_error(lane: Lane, last: bytes) -> None:
    """SDKs raise at an error in the stream and close: the pool failed, and its client did not change its mind."""
    gate = Gate()
    lane.first.play(stream(c("x"), last, gate, end=False))
    client = lane.gateway.connect()
    events = client.request(r0s(lane.model)).events()
    assert [next(events).data, next(events).data] == [c("x")[6:-2], last[6:-2]]
    client.close()
    assert lane.first.wait_received().wait_closed()
    gate.open()
    outcome = lane.outcome()
    assert (outcome["result"], outcome["status"], outcome["failure"]) == ("upstream_error", 200, "error_event")
    wait_for(lambda: _idle(lane), "in-flight is zero")


def test_b66_abandoned_streams_leak_nothing(lane: Lane) -> None:
    """After hundreds of abandoned streams the next request is served, and descriptors and memory are where they
    were."""
    lane.first.default = [SSE_HEAD, chunk(c("x")), Hang()]

    def abandon(times: int) -> None:
        for _ in range(times):
            client = lane.gateway.connect()
            next(client.request(r0s(lane.model)).events())
            client.reset()

    abandon(150)  # what is allocated once is allocated now
    wait_for(lambda: lane.first.open_connections == 0, "the pool's connections of the first round are closed")
    descriptors, resident = lane.gateway.descriptors(), lane.gateway.resident_bytes()
    abandon(600)
    wait_for(lambda: lane.first.open_connections == 0, "every connection to the pool is closed")
    wait_for(lambda: lane.gateway.descriptors() <= descriptors + 2, "descriptors are back where they were")
    assert lane.gateway.resident_bytes() < resident * 1.05
    lane.first.default = OK
    assert lane.request(r0(lane.model)).status == 200
    wait_for(lambda: _idle(lane), "in-flight is zero")


def test_b66_limited_pool_is_not_starved(take: object, request: pytest.FixtureRequest) -> None:
    """A pool that allows one request at a time is free again after each abandoned stream."""
    lane: Lane = request.getfixturevalue("take")("narrow")
    for _ in range(20):
        lane.first.play([SSE_HEAD, chunk(c("x")), Hang()])
        client = lane.gateway.connect()
        next(client.request(r0s(lane.model)).events())
        client.reset()
        received = lane.first.received[-1]
        assert received.wait_closed()
    lane.first.play(OK)
    assert lane.request(r0(lane.model)).status == 200
    assert lane.second.received == []


def _stalled(lane: Lane, megabytes: int) -> "tuple[object, int]":
    """A client that reads only the head of a large stream; (it, bytes the pool could send until all stood still)."""
    block = chunk(c("x" * 1_000_000))
    lane.first.play([SSE_HEAD, Repeat(block, megabytes), chunk(FIN + DONE), b"0\r\n\r\n"])
    client = lane.gateway.connect(receive_buffer=65_536)
    client.send(request_bytes(r0s(lane.model)))
    client.line()
    received = lane.first.received[0]

    def still() -> bool:
        before = received.sent_bytes
        time.sleep(0.4)  # nothing moves for this long: everything on the way is full
        return received.sent_bytes == before > 0

    wait_for(still, "the pool is held back")
    return client, received.sent_bytes


def test_b68_reader_that_never_reads(lane: Lane) -> None:
    """Backpressure reaches the pool: it stops being read, and memory grows by a few buffers only."""
    before = lane.gateway.resident_bytes()
    client, sent = _stalled(lane, 200)
    assert sent < 40_000_000, "the gateway swallowed what its client did not read"
    assert lane.gateway.resident_bytes() - before < 24_000_000
    received = lane.first.received[0]
    client.close()  # type: ignore[attr-defined]
    assert received.wait_closed()
    assert lane.outcome()["result"] == "client_cancelled"


def test_b68_slow_reader_gets_everything(lane: Lane) -> None:
    """A client that reads late gets every byte, in order."""
    gate = Gate()
    block = c("y" * 1_000_000)
    lane.first.play(stream(*([block] * 12), gate, FIN, DONE))
    with lane.gateway.connect(receive_buffer=65_536) as client:
        client.send(request_bytes(r0s(lane.model)))
        lane.first.wait_received()
        time.sleep(0.3)  # the stream runs into the client's closed window
        gate.open()
        assert client.reply().read() == block * 12 + FIN + DONE


@pytest.mark.slow
def test_b68_stalled_client_is_let_go(lane: Lane) -> None:
    """A client that reads nothing for the stall limit loses its connection, and the pool's slot is free."""
    client, _ = _stalled(lane, 60)
    received = lane.first.received[0]
    assert received.wait_closed(90)
    with pytest.raises((ClosedError, ConnectionError)):
        while True:
            client.line()  # type: ignore[attr-defined]
