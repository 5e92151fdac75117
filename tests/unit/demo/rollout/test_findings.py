"""The decisions are proven where all accounts agree, and a check fails as soon as one of them tells something else."""

from collections.abc import Callable

import msgspec
import pytest

from gateway.demo.access import Attempt
from gateway.demo.proof import Evidence
from gateway.demo.rollout.findings import Found, checks, phases, requests_until
from gateway.demo.rollout.notes import Way
from gateway.demo.rollout.traffic import Decision
from gateway.demo.witness import Sighting
from tests.unit.demo.rollout.story import EVENTS, FREE_OUT_AFTER, PLAN, story

ANSWERED, ACCOUNTED, SAME_POOL, TOKENS, STAYED_OUT = range(5)
LAST = len(PLAN)
Spoil = Callable[[Found], Found]


def failing(found: Found) -> set[int]:
    """Which checks do not hold."""
    return {index for index, check in enumerate(checks(found)) if not check.holds}


def with_evidence(found: Found, **change: object) -> Found:
    """Other accounts of the gateway or the servers."""
    return msgspec.structs.replace(found, evidence=msgspec.structs.replace(found.evidence, **change))


def with_sent(found: Found, number: int, *, told: bool = True, **answer: object) -> Found:
    """The application tells something else of one request."""
    changed = [
        msgspec.structs.replace(one, told=told, answer=msgspec.structs.replace(one.answer, **answer))
        if one.answer.number == number
        else one
        for one in found.sent
    ]
    answers = {one.answer.number: one.answer for one in changed}
    return with_evidence(msgspec.structs.replace(found, sent=changed), answers=answers)


def with_entry(found: Found, number: int, **change: object) -> Found:
    """The access log tells something else of one request."""
    entries = [
        msgspec.structs.replace(entry, **change) if entry.request_id == f"id-{number}" else entry
        for entry in found.evidence.entries
    ]
    return with_evidence(found, entries=entries)


def with_attempt(found: Found, number: int, attempt: Attempt) -> Found:
    """The gateway tried a pool before the one that answered."""
    (entry,) = [entry for entry in found.evidence.entries if entry.request_id == f"id-{number}"]
    return with_entry(found, number, attempts=(attempt, *entry.attempts))


def also_computed(found: Found, pool: str, number: int) -> Found:
    """A server computed one request more."""
    accounts = [
        msgspec.structs.replace(one, sightings=(*one.sightings, Sighting(number, 99, 40, 60)))
        if one.pool == pool
        else one
        for one in found.evidence.accounts
    ]
    return with_evidence(found, accounts=accounts)


def test_agreement_holds() -> None:
    """Where all three agree every check holds; the one on the rollback names all three."""
    found = checks(story())
    assert all(check.holds for check in found)
    assert found[STAYED_OUT].claim == "After the rollback no request of short/free-json/none reached q4"
    assert len({who for who, _ in found[STAYED_OUT].accounts}) == 3


@pytest.mark.parametrize(
    ("spoil", "expected"),
    [
        (lambda f: with_sent(f, 1, status=503, error="upstream_error: no"), ANSWERED),
        (lambda f: with_sent(f, 1, told=False), ANSWERED),
        (lambda f: with_evidence(f, entries=f.evidence.entries[1:]), ACCOUNTED),
        (lambda f: with_evidence(f, counted=3), ACCOUNTED),
        (lambda f: with_sent(f, 1, pool="q4"), SAME_POOL),
        (lambda f: also_computed(f, "q8", 1), SAME_POOL),
        (lambda f: with_entry(f, 1, completion_tokens=21), TOKENS),
    ],
)
def test_a_difference_fails(spoil: Spoil, expected: int) -> None:
    """Each account alone can make the check fail that it concerns."""
    assert expected in failing(spoil(story()))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda f: with_sent(f, LAST, pool="q4"),
        lambda f: with_attempt(f, LAST, Attempt("q4", 0, "connect")),
        lambda f: also_computed(f, "q4", LAST),
        lambda f: with_evidence(f, accounts=[]),
        lambda f: with_evidence(f, entries=[]),
        lambda f: msgspec.structs.replace(f, decisions={Way.FREE: Decision("rolled_back", LAST)}),
    ],
)
def test_a_request_that_still_reaches_it_is_seen(spoil: Spoil) -> None:
    """By any account, also as an attempt that failed; and without requests or accounts nothing is proven."""
    assert STAYED_OUT in failing(spoil(story()))


def test_before_every_worker_knew_is_not_after() -> None:
    """A request that was decided in that second may still have been the candidate's."""
    found = story(decisions={Way.FREE: Decision("rolled_back", FREE_OUT_AFTER)})
    assert failing(with_attempt(found, FREE_OUT_AFTER - 1, Attempt("q4", 0, "connect"))) == set()


def test_what_was_not_rolled_back_needs_no_proof() -> None:
    """A promotion has no such check, nor has a bucket without a decision."""
    assert len(checks(story(decisions={Way.SCHEMA: Decision("promoted", 8)}))) == STAYED_OUT
    assert len(checks(story(decisions={}))) == STAYED_OUT


def test_nothing_proves_nothing() -> None:
    """Without requests no check holds: emptiness is no agreement."""
    empty = story(sent=[], evidence=Evidence([], {}, [], [], 0))
    assert failing(empty) == {ANSWERED, ACCOUNTED, SAME_POOL, TOKENS, STAYED_OUT}


def test_phases_lie_between_decisions() -> None:
    """Each request is in the phase in which it arrived; all of them are in one; faults are counted by pool."""
    found = phases(story())
    told = [
        (phase.way, phase.requests, phase.by_candidate, phase.wrong_candidate, phase.wrong_baseline) for phase in found
    ]
    assert told == [
        (Way.SCHEMA, 1, 0, 0, 0),
        (Way.SCHEMA, 1, 1, 0, 0),
        (Way.SCHEMA, 1, 1, 0, 0),
        (Way.SCHEMA, 1, 1, 0, 0),
        (Way.FREE, 1, 0, 0, 0),
        (Way.FREE, 2, 2, 2, 0),
        (Way.FREE, 2, 0, 0, 1),
    ]
    assert sum(phase.requests for phase in found) == len(PLAN)
    assert found[0].began is None and found[3].ended is None


def test_how_many_it_took() -> None:
    """From when the candidate came in until the decision."""
    assert requests_until(story(), EVENTS[Way.SCHEMA][-1], Way.SCHEMA) == (2, 2)
    assert requests_until(story(), EVENTS[Way.FREE][-1], Way.FREE) == (2, 2)
