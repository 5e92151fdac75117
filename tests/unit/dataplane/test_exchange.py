"""Exactly one outcome per request, whatever the order of events; what a stage never reached stays empty."""

import pytest
from msgspec.structs import astuple

from gateway.dataplane.exchange import Exchange, Taking, outcome_of
from gateway.dataplane.kinds import PackedKinds
from gateway.dataplane.outcomes import Tried
from gateway.errors import ApiError
from gateway.model.enums import Api, Result
from gateway.model.outcome import Attempt
from tests.unit.dataplane.outcome_values import recorded
from tests.unit.dataplane.parts import Client, attempt_of, generation_of, pool_of, table_of


def exchange() -> tuple[Exchange, Client, list[tuple[Result, int]]]:
    client = Client(now=10.0)
    ends: list[tuple[Result, int]] = []
    made = Exchange(
        client.connection,
        client.ask("/v1/x", b"body"),
        api=Api.CHAT,
        request_id="r-1",
        generation=generation_of(table_of([pool_of("p")], generation=4)),
        wall_at=1000.0,
        on_finish=lambda _exchange, result, status: ends.append((result, status)),
    )
    return made, client, ends


def test_the_first_end_counts() -> None:
    """A client that leaves after the answer, an error after a refusal: the first says how it ended."""
    made, _, ends = exchange()
    made.finish(Result.OK, 200)
    made.finish(Result.INTERNAL, 500)
    made.gone()
    assert ends == [(Result.OK, 200)]


def test_a_refusal_answers_and_ends() -> None:
    """OpenAI's shape, the request's id, the reason on record."""
    made, client, ends = exchange()
    made.refuse(ApiError(429, "rate_limit_exceeded", "slow", headers=(("Retry-After", "3"),)), Result.RATE_LIMITED)
    (answer,) = client.answers
    assert answer.status == 429
    assert ("Retry-After", "3") in answer.fields
    assert ("x-quantgate-request-id", "r-1") in answer.fields
    assert b'"code":"rate_limit_exceeded"' in answer.body
    assert ends == [(Result.RATE_LIMITED, 429)]
    assert made.error_code == "rate_limit_exceeded"


def test_a_refusal_that_cannot_be_written_ends_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client may go without its answer; the record does not go without the request."""
    made, client, ends = exchange()

    def broken(_data: bytes) -> None:
        raise OSError("no socket")

    monkeypatch.setattr(client.transport, "write", broken)
    with pytest.raises(OSError, match="no socket"):
        made.refuse(ApiError(500, "internal_error", "broken"), Result.INTERNAL)
    assert ends == [(Result.INTERNAL, 500)]


def test_an_outcome_of_a_request_that_reached_nothing() -> None:
    """Unknown is empty or -1, never a made-up number."""
    made, _, _ = exchange()
    kind = PackedKinds(2).of(made, Result.UNAUTHORIZED, 401)
    outcome = recorded(outcome_of(made, kind, 401, 10.5))
    assert (outcome.request_id, outcome.kind.generation, outcome.kind.worker, outcome.kind.api) == ("r-1", 4, 2, "chat")
    assert (outcome.kind.bucket, outcome.kind.pool, outcome.kind.rule, outcome.kind.tenant) == ("", "", "", "")
    assert (outcome.ttft_s, outcome.overhead_s, outcome.prompt_tokens, outcome.total_s) == (-1.0, -1.0, -1, 0.5)
    assert outcome.capture is None


def test_the_wait_in_the_queue_is_no_overhead() -> None:
    """Queue wait and the gateway's own time are told apart."""
    made, _, _ = exchange()
    made.began_at, made.queued_at, made.admitted_at = 10.1, 10.2, 12.2
    outcome = outcome_of(made, b"", 200, 13.0)
    assert abs(outcome.queue_s - 2.0) < 1e-9
    assert abs(outcome.overhead_s - 0.1) < 1e-9


@pytest.mark.parametrize(
    "tried",
    [
        [],
        [Attempt("p", "p/0", 200, "", 0.25, 0.5)],
        [Attempt("p", "p/0", 201, "", 0.25, 0.5)],
        [Attempt("p", "p/0", 200, "error_event", 0.25, 0.5)],
        [Attempt("q", "q/0", 0, "connect", 0.0, 0.25), Attempt("p", "p/0", 200, "", 0.25, 0.5)],
    ],
)
def test_attempts_reach_control_as_they_were(tried: list[Attempt]) -> None:
    """However they travel: only the times of one that answered are its own."""
    made, _, _ = exchange()
    made.attempts = [Tried(*astuple(one)) for one in tried]
    ended = outcome_of(made, PackedKinds(0).of(made, Result.OK, 200), 200, 11.0)
    assert (ended.attempts is None) is (tried == [Attempt("p", "p/0", 200, "", 0.25, 0.5)])
    assert recorded(ended).attempts == tuple(tried)


def test_the_queue_deadline_sheds_only_what_still_waits() -> None:
    """A request that has started is not shed by its old deadline."""
    made, client, ends = exchange()
    made.relay = attempt_of(made)
    made.on_due(11.0)
    assert client.answers == []
    made.relay = None
    made.on_due(11.0)
    assert ends == [(Result.SHED, 429)]


def test_taking_is_bounded() -> None:
    """Texts for the checks stop at the bound and say that they were cut."""
    taking = Taking(b"request", 5)
    for piece in (b"abc", b"defg", b"h"):
        taking.add(piece)
    taken = taking.taken()
    assert (taken.request, taken.answer, taken.cut) == (b"request", b"abcde", True)
