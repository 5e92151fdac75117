"""Group 8 of the cases: retries, timeouts, status codes, health."""

import itertools
import time
from collections.abc import Callable, Sequence
from email.utils import formatdate

import pytest

from tests.cases.client import Client, request_bytes
from tests.cases.conftest import Lane
from tests.cases.gateway import wait_for
from tests.cases.messages import DONE, FIN, OK, ROLE, SSE_HEAD, answer, c, chunk, completion, failure, r0, r0s, stream
from tests.cases.upstream import Close, Gate, Hang, Pause, Received, Repeat, Reset, Step


def test_b70_no_retry_after_the_first_byte_of_output(lane: Lane) -> None:
    """Once output has reached the client no other endpoint repeats the answer: the stream ends in an error event."""
    gate = Gate()
    lane.first.play([SSE_HEAD, chunk(c("Hel")), gate, Reset()])
    with lane.gateway.connect() as client:
        events = client.request(r0s(lane.model)).events()
        assert next(events).json["choices"][0]["delta"]["content"] == "Hel"
        gate.open()
        rest = [event.data for event in events if event.data is not None]
    assert [b'"error"' in data for data in rest] == [True, False]
    assert lane.second.received == []


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "stream"])
def test_b70_retry_before_output(lane: Lane, streamed: bool) -> None:
    """A break before any content is repaired by another endpoint, and the client sees one whole answer."""
    if streamed:
        lane.first.play([SSE_HEAD, chunk(ROLE), Pause(), Reset()])
        lane.second.play(stream(ROLE, c("Hello"), FIN, DONE))
        assert lane.request(r0s(lane.model)).body == ROLE + c("Hello") + FIN + DONE
    else:
        whole = answer(completion("Hello"))[0]
        assert isinstance(whole, bytes)
        lane.first.play([whole[: len(whole) // 2], Pause(), Reset()])
        lane.second.play([whole])
        assert lane.request(r0(lane.model)).json == completion("Hello")
    outcome = lane.outcome()
    assert outcome["result"] == "ok"
    assert [attempt["failure"] for attempt in outcome["attempts"][:1]] == ["broken_stream"]


def test_b72_kept_connection_dies_under_the_request(lane: Lane) -> None:
    """A kept-alive connection that closes as the request arrives costs nothing: one retry on a fresh connection."""
    with lane.gateway.connect() as client:
        for _ in range(30):
            lane.first.play(OK, [Close()], OK)
            for _ in range(2):
                assert client.request(r0(lane.model)).json["choices"]
    assert lane.second.received == []
    assert len(lane.first.received) == 90


def test_b72_idle_close_races_the_request(lane: Lane) -> None:
    """Whatever the moment at which an endpoint drops an idle connection, no client sees a 502."""
    lane.first.idle_close_s = lane.second.idle_close_s = 0.03
    with lane.gateway.connect() as client:
        for number in range(80):
            assert client.request(r0(lane.model)).json["choices"]
            time.sleep(0.0285 + 0.00004 * number)  # sweeps over the endpoint's limit
    assert {outcome["result"] for outcome in lane.gateway.outcomes(model=lane.model)} <= {"ok"}


def test_b72_fresh_connection_that_closes_is_a_failure(lane: Lane) -> None:
    """An endpoint that drops a fresh connection unanswered has failed: another one is tried, none is tried twice."""
    lane.first.play([Close()])
    assert lane.request(r0(lane.model)).status == 200
    assert (len(lane.first.received), len(lane.second.received)) == (1, 1)
    lane.first.play([Close()])
    lane.second.play([Close()], [Close()])  # on the kept connection, then on a fresh one
    reply = lane.request(r0(lane.model))
    assert reply.status == 502
    assert reply.error["message"]


def test_b73_dead_backend_blocks_nobody(take: Callable[[str], Lane]) -> None:
    """A backend that accepts and never answers is given up within its limit, and others do not notice it."""
    dead, well = take("quick"), take("plain")
    dead.first.silent = dead.second.silent = True
    waiting = []
    for _ in range(100):
        client = dead.gateway.connect()
        client.send(request_bytes(r0(dead.model)))
        waiting.append(client)
    dead.first.wait_received(50)
    for _ in range(10):
        assert well.request(r0(well.model)).status == 200
    for client in waiting:
        reply = client.reply()
        assert reply.status in (502, 503, 504, 429)
        assert reply.error["message"]
        client.close()
    assert dead.outcome()["result"] in ("upstream_timeout", "upstream_error")


def test_b73_first_byte_limit_leads_to_the_next_endpoint(quick: Lane) -> None:
    """An endpoint that does not begin to answer in time is given up before anything reached the client."""
    quick.first.play([Hang()])
    assert quick.request(r0(quick.model)).status == 200
    assert quick.outcome()["attempts"][0]["failure"] == "first_byte_timeout"
    quick.first.play([SSE_HEAD, chunk(ROLE), Hang()])
    quick.second.play(stream(c("x"), FIN, DONE))
    reply = quick.request(r0s(quick.model))
    assert reply.status == 200
    assert reply.payloads()[-1] == b"[DONE]"


def test_b73_silence_in_mid_stream(quick: Lane) -> None:
    """A stream that falls silent ends in an error event within the idle limit."""
    quick.first.play([SSE_HEAD, chunk(c("x")), Hang()])
    payloads = quick.request(r0s(quick.model)).payloads()
    assert payloads[-1] == b"[DONE]"
    assert b'"error"' in payloads[-2]
    outcome = quick.outcome()
    assert (outcome["result"], outcome["failure"]) == ("upstream_truncated", "idle_timeout")
    assert quick.first.received[0].wait_closed()


PINGS = Repeat(chunk(b":\n\n"), 120, 0.05)
LATE = chunk(c("late") + FIN + DONE) + b"0\r\n\r\n"


def test_comments_do_not_hide_that_nothing_begins(take: Callable[[str], Lane]) -> None:
    """Servers ping from the thread that holds the connection, whatever became of the engine: the first-byte limit
    stands although the client has been given the pings."""
    slow = take("slow")
    slow.first.play([SSE_HEAD, PINGS, LATE])
    payloads = slow.request(r0s(slow.model)).payloads()
    assert payloads[-1] == b"[DONE]"
    assert b'"error"' in payloads[-2]
    outcome = slow.outcome()
    assert (outcome["result"], outcome["failure"]) == ("upstream_truncated", "first_byte_timeout")
    assert slow.first.received[0].wait_closed()


def test_comments_do_not_hide_that_nothing_goes_on(quick: Lane) -> None:
    """The same in the middle of an answer, with the idle limit."""
    quick.first.play([SSE_HEAD, chunk(c("x")), PINGS, LATE])
    payloads = quick.request(r0s(quick.model)).payloads()
    assert b'"error"' in payloads[-2]
    outcome = quick.outcome()
    assert (outcome["result"], outcome["failure"]) == ("upstream_truncated", "idle_timeout")


def test_a_slow_beginning_behind_comments_has_its_time(take: Callable[[str], Lane]) -> None:
    """Longer than the idle limit, which begins with the first event; an event in pieces is movement as well."""
    slow = take("slow")
    whole = c("hello")
    pieces = [chunk(whole[at : at + 20]) for at in range(0, len(whole), 20)]
    slowly = [step for piece in pieces for step in (piece, Pause(0.15))]
    slow.first.play([SSE_HEAD, Repeat(chunk(b": ping\r\n\r\n"), 24, 0.05), *slowly, chunk(FIN + DONE), b"0\r\n\r\n"])
    reply = slow.request(r0s(slow.model))
    assert reply.read().endswith(whole + FIN + DONE)
    assert slow.outcome()["result"] == "ok"


def test_b74_long_streams_have_no_total_limit(quick: Lane) -> None:
    """A stream that outlives first-byte and idle limits many times over goes on as long as it moves."""
    quick.first.play([SSE_HEAD, Repeat(chunk(c("x")), 16, 0.2), chunk(FIN + DONE), b"0\r\n\r\n"])
    started = time.monotonic()
    reply = quick.request(r0s(quick.model))
    assert reply.body == c("x") * 16 + FIN + DONE
    assert time.monotonic() - started > 3.0
    assert quick.outcome()["result"] == "ok"


def test_b76_busy_and_down_come_with_retry_after(take: Callable[[str], Lane]) -> None:
    """429 and 503 tell in whole seconds when to come again: pools that fail for good, and pools that are full."""
    lane = take("plain")
    for endpoint in (lane.first, lane.second):
        endpoint.default = failure(503)
    for _ in range(12):
        reply = lane.request(r0(lane.model))
        assert reply.status in (429, 503)
        assert (reply.header("retry-after") or "").isdigit()
        assert reply.pool_error["message"]
    narrow = take("narrow")
    held = []
    for endpoint in (narrow.first, narrow.second):
        endpoint.play([SSE_HEAD, chunk(c("x")), Hang()])
        client = narrow.gateway.connect()
        next(client.request(r0s(narrow.model)).events())
        held.append(client)
    shed = narrow.request(r0(narrow.model))
    assert shed.status == 429
    assert (shed.header("retry-after") or "").isdigit()
    assert shed.error["type"] == "rate_limit_error"
    assert narrow.outcome(status=429)["result"] == "shed"
    for client in held:
        client.close()


RETRY_AFTER = {
    "past-date": "Wed, 21 Oct 2015 07:28:00 GMT",
    "case-date": "Wed, 21 Oct 2026 07:28:00 GMT",
    "fraction": "1.5",
    "negative": "-1",
    "word": "abc",
    "huge": "99999999999",
    "seconds": "7",
    "unicode-digits": "\xb2",
    "empty": "",
}


@pytest.mark.parametrize("name", RETRY_AFTER)
def test_b78_retry_after_of_the_pool(lane: Lane, name: str) -> None:
    """Seconds and dates are understood, anything else ignored, all capped; none of it is an exception."""
    for endpoint in (lane.first, lane.second):
        endpoint.play(failure(503, "busy", Retry_After=RETRY_AFTER[name]))
    reply = lane.request(r0(lane.model))
    assert reply.status == 503
    assert reply.pool_error["message"] == "busy"
    value = reply.header("retry-after") or ""
    assert value.isdigit()
    assert int(value) <= 3600
    if name == "seconds":
        assert int(value) == 7


def test_b78_retry_after_as_a_date_to_come(lane: Lane) -> None:
    """A date in the future becomes the seconds until then."""
    for endpoint in (lane.first, lane.second):
        endpoint.play(failure(503, Retry_After=formatdate(time.time_ns() / 1e9 + 100, usegmt=True)))
    assert 80 <= int(lane.request(r0(lane.model)).header("retry-after") or "") <= 101


@pytest.mark.parametrize(
    ("status", "said"),
    [(400, "Out of range float values are not JSON compliant: nan"), (417, "the engine is gone")],
    ids=["nan", "417"],
)
def test_a_pools_own_fault_under_a_clients_status(lane: Lane, status: int, said: str) -> None:
    """A KV cache that gives no numbers any more answers 400 to good requests: another endpoint is tried, the pool is
    blamed, and where there is no other the client hears of no mistake of its own."""
    broken = failure(status, said)
    lane.first.play(broken)
    lane.second.play(OK)
    assert lane.request(r0(lane.model)).status == 200
    first, _ = lane.outcome()["attempts"]
    assert (first["status"], first["failure"]) == (status, "status_5xx")
    lane.first.play(broken)
    lane.second.play(broken)
    assert lane.request(r0(lane.model)).status == 502
    assert lane.outcome(2)["result"] == "upstream_error"


def test_b79_client_errors_do_not_open_the_breaker(lane: Lane) -> None:
    """A burst of 400s is the clients' affair: the endpoint goes on being used."""
    with lane.gateway.connect() as client:
        for status in [400, 404, 413, 422] * 5:
            lane.first.play(failure(status, "too long"))
            assert client.request(r0(lane.model)).pool_error["message"] == "too long"
        assert client.request(r0(lane.model)).json["choices"]
    assert len(lane.first.received) == 21
    assert lane.second.received == []
    assert {outcome["result"] for outcome in lane.gateway.outcomes(model=lane.model)} <= {"client_error", "ok"}


def _alternating() -> Callable[[Received], Sequence[Step]]:
    """500, 400, 500, 400, …"""
    kinds = itertools.cycle([failure(500), failure(400)])
    return lambda _: next(kinds)


def test_b81_client_errors_do_not_heal_it_either(lane: Lane) -> None:
    """400s between 500s are neutral: the breaker opens on the 500s as if the 400s had not been there."""
    with lane.gateway.connect() as client:
        lane.first.default = _alternating()
        statuses = []
        for _ in range(40):
            reply = client.request(r0(lane.model))
            reply.read()
            statuses.append(reply.status)
    # 500s are answered by the second endpoint, 400s are the client's; once the first is ejected it sees nothing more.
    assert statuses[:6] == [200, 400] * 3
    assert set(statuses[20:]) == {200}, "the endpoint was never ejected"
    assert 6 <= len(lane.first.received) <= 20
    wait_for(
        lambda: lane.gateway.total("quantgate_endpoint_ejected_workers", pool=f"{lane.model}-a") == 1,
        "the ejection is visible in the metrics",
    )


def test_b81_connect_failures_count(lane: Lane) -> None:
    """An endpoint that refuses connections is left out after a few attempts and every client is served."""
    lane.first.refuse()
    with Client(lane.gateway.port) as client:
        for _ in range(8):
            assert client.request(r0(lane.model)).json["choices"]
    attempts = [len(outcome["attempts"]) for outcome in (lane.outcome(number) for number in range(1, 9))]
    assert attempts[-1] == 1


@pytest.mark.parametrize("status", [302, 600, 999])
def test_b81_a_status_that_no_runtime_gives_is_the_pools_fault(lane: Lane, status: int) -> None:
    """A redirection or a status beyond HTTP's classes is no answer: another endpoint is tried, then the client gets 502
    in the gateway's words."""
    lane.first.play(failure(status))
    assert lane.request(r0(lane.model)).status == 200
    lane.first.play(failure(status))
    lane.second.play(failure(status))
    reply = lane.request(r0(lane.model))
    assert reply.status == 502
    assert str(status) in reply.error["message"]
    assert lane.outcome(status=502)["failure"] == "bad_answer"
