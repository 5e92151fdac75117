"""What becomes a leg, and what a client's end means for its pair."""

from types import SimpleNamespace
from typing import Any

import pytest

from gateway.core.answer import AnswerInfo
from gateway.core.mirror import Event
from gateway.dataplane.exchange import Exchange, Taking
from gateway.dataplane.legs import Sink, baseline_of, fields_of, leg_exchange, leg_of, request_of
from gateway.dataplane.outcomes import Tried
from gateway.model.enums import Api, Result
from gateway.model.facts import Facts
from gateway.model.pair import Leg
from gateway.model.proving import Shadow
from gateway.wire.http import AnswerHead
from tests.unit.core.test_decide import PROFILE
from tests.unit.dataplane.parts import Client, attempt_of, generation_of, pool_of, table_of
from tests.unit.dataplane.plane import chunk, event

RULE = Shadow("s", lambda _: True, "always", 1.0, "m", "cand", "base")


def attempt(pool: str = "base", failure: str = "", status: int = 200) -> Tried:
    return Tried(pool, f"{pool}/0", status, failure, 0.5, 2.0)


def exchange(**state: Any) -> Exchange:
    """A request in this state."""
    client = Client()
    made = Exchange(
        client.connection,
        client.ask(),
        api=Api.CHAT,
        request_id="r-1",
        generation=generation_of(table_of([pool_of("cand")])),
        wall_at=0.0,
        on_finish=lambda *_: None,
    )
    for name, value in state.items():
        setattr(made, name, value)
    return made


def ended(*attempts: Tried, failure: str = "", answer: bytes = b"words", most: int = 100, **more: Any) -> Exchange:
    """An exchange at its end, as far as legs look at it."""
    capture = Taking(b"", most)
    capture.add(answer)
    times = {"content_at": 11.0, "content_last_at": 12.0, "started_at": 10.0, "longest_gap_s": 0.7}
    counts = {"usage": AnswerInfo(), "facts": Facts(Api.CHAT, "m"), "events": 20, "content_events": 2}
    fields = {**times, **counts, **more}
    return exchange(attempts=list(attempts), failure=failure, capture=capture, **fields)


def test_times_count_from_the_attempt() -> None:
    """A client's wait for room in the gateway is no slowness of the pool: legs and clients are timed alike."""
    leg = leg_of(ended(attempt()), Result.OK, "base")
    assert (leg.ttft_s, leg.first_to_last_s, leg.total_s, leg.longest_gap_s) == (0.5, 1.0, 2.0, 0.7)
    assert (leg.pool, leg.endpoint, leg.answer, leg.failure) == ("base", "base/0", b"words", "")


def test_a_leg_in_one_piece_has_no_pace() -> None:
    """Forty tokens that a runtime held back until the end would make a candidate the fastest of all."""
    leg = leg_of(ended(attempt(), events=6, usage=AnswerInfo(completion_tokens=40)), Result.OK, "base")
    assert (leg.ttft_s, leg.first_to_last_s) == (0.5, -1.0)


def test_a_leg_that_was_never_tried_still_names_its_pool() -> None:
    """Counts go by the candidate's name, also where every endpoint was quarantined."""
    leg = leg_of(ended(answer=b""), Result.NO_POOL, "cand")
    assert (leg.pool, leg.failure, leg.total_s, leg.missing) == ("cand", "no_pool", -1.0, True)


@pytest.mark.parametrize(
    ("failure", "result", "missing"),
    [
        ("shed", Result.CLIENT_CANCELLED, True),
        ("busy", Result.SHED, True),
        ("status_429", Result.UPSTREAM_ERROR, True),
        ("timeout", Result.CLIENT_CANCELLED, False),
        ("status_5xx", Result.UPSTREAM_ERROR, False),
        ("broken_stream", Result.UPSTREAM_TRUNCATED, False),
        ("connect", Result.UPSTREAM_ERROR, False),
    ],
)
def test_failed_is_not_missing(failure: str, result: Result, missing: bool) -> None:
    """What the gateway took away, or the pool had no room for, is unknown; what broke, hung or erred is known bad."""
    leg = leg_of(ended(attempt(failure=failure), failure=failure), result, "base")
    assert leg.missing is missing
    assert (leg.failure, leg.answer) == (failure, b"")


def test_an_answer_over_the_bound_is_a_failure_of_the_leg() -> None:
    """Leaving such pairs out would hide a pool that never ends; a client's own long answer rules its pair out."""
    exchange = ended(attempt(), answer=b"x" * 200)
    assert leg_of(exchange, Result.OK, "base").failure == "too_long"
    assert not leg_of(exchange, Result.OK, "base").missing
    assert baseline_of(exchange, Result.OK, "base") is Event.TOO_LONG


@pytest.mark.parametrize(
    ("exchange", "result", "event"),
    [
        (ended(attempt()), Result.CLIENT_CANCELLED, Event.CLIENT_GONE),
        (ended(), Result.SHED, Event.NOT_SERVED),
        (ended(attempt(failure="status_4xx")), Result.CLIENT_ERROR, Event.NOT_SERVED),
        (ended(), Result.OK, Event.NOT_SERVED),
        (ended(attempt("other")), Result.OK, Event.SERVED_ELSEWHERE),
        (ended(attempt("other", "connect"), attempt()), Result.OK, Event.SERVED_ELSEWHERE),
    ],
)
def test_what_rules_a_pair_out(exchange: Any, result: Result, event: Event) -> None:
    """Only the client's own request does, never a leg."""
    assert baseline_of(exchange, result, "base") is event


def test_a_baseline_that_failed_over_failed() -> None:
    """Whatever another pool answered then, it is not the baseline's; another endpoint's answer is."""
    over = baseline_of(ended(attempt(failure="status_5xx", status=500), attempt("other")), Result.OK, "base")
    assert isinstance(over, Leg)
    assert (over.pool, over.failure, over.status, over.answer) == ("base", "status_5xx", 500, b"")
    again = baseline_of(ended(attempt(failure="connect"), attempt()), Result.OK, "base")
    assert isinstance(again, Leg)
    assert (again.failure, again.answer) == ("", b"words")


def test_the_sink_calls_once_when_it_has_had_enough() -> None:
    """The first bytes count too, the bound itself is allowed, and nobody is called after the end."""
    calls: list[int] = []
    sink = Sink(10, lambda: calls.append(1))
    sink.begin(200, b"", None, b"12345")
    sink.send(b"67890")
    assert calls == []
    sink.pass_on(b"", b"0\r\n\r\n")
    assert calls == [], "framing is no part of the answer"
    sink.send(b"1")
    sink.send(b"1")
    assert calls == [1]
    other = Sink(1, lambda: calls.append(2))
    other.answer(200, b"", b"x" * 100)
    other.end(b"x" * 100)
    other.abort()
    other.send(b"x" * 100)
    assert calls == [1]


def test_a_leg_takes_every_way_in_which_an_answer_comes() -> None:
    """A read that is one whole chunk goes to clients as it is framed; a leg takes it too, and counts its bytes."""
    calls: list[Exchange] = []
    origin = exchange(facts=Facts(Api.CHAT, "m", stream=True))
    leg = leg_exchange(
        origin,
        RULE,
        "cand",
        "candidate",
        body=b"{}",
        profile=PROFILE,
        now=0.0,
        over=calls.append,
        on_finish=lambda *_: None,
    )
    attempt, said = attempt_of(leg), [event("a"), event("b"), event("c" * 300_000)]
    attempt.on_head(AnswerHead(200, [(b"content-type", b"text/event-stream")]), None)
    for data in said:
        assert calls == []
        attempt.on_chunk(data, chunk(data))
    assert calls == [leg]
    assert leg.capture is not None
    assert leg.capture.taken().answer == b"".join(said)[: 256 * 1024]


def test_a_leg_says_nothing_of_its_sender() -> None:
    """No query, no field but the content type and the API's version, both from the client's request."""
    fields = {b"content-type": b"application/json", b"anthropic-version": b"2023-06-01", b"x-api-key": b"secret"}
    origin: Any = SimpleNamespace(
        request=SimpleNamespace(method=b"POST", target=b"/v1/messages?key=secret", fields=fields)
    )
    made = request_of(origin, 5.0)
    assert (made.method, made.target, made.headers, made.body, made.received_at) == (
        b"POST",
        b"/v1/messages",
        [],
        b"",
        5.0,
    )
    lines = fields_of(origin, RULE, "id.candidate")
    assert lines == (
        b"content-type: application/json\r\nx-quantgate-shadow: s\r\nx-request-id: id.candidate\r\n"
        b"anthropic-version: 2023-06-01\r\n"
    )
    assert b"secret" not in lines
