"""The checks hold where three accounts agree, and fail as soon as one of them tells something else."""

from collections.abc import Callable

import msgspec
import pytest

from gateway.demo.access import Attempt
from gateway.demo.proof import Evidence, checks
from gateway.demo.witness import Counters, Sighting
from gateway.demo.workload import Kind
from tests.unit.demo.accounts import (
    LONG,
    PRIVILEGED,
    account_of,
    good_evidence,
    spoil_account,
    spoil_answer,
    spoil_entry,
)

ANSWERS, ACCOUNTED, SAME_POOL, TOKENS, NO_PRIVILEGED, NO_LONG = range(6)
Spoil = Callable[[Evidence], Evidence]


def failing(evidence: Evidence) -> set[int]:
    """Which checks do not hold."""
    return {index for index, check in enumerate(checks(evidence, PRIVILEGED, LONG)) if not check.holds}


def also_seen(evidence: Evidence, pool: str, sighting: Sighting) -> Evidence:
    """A server computed one request more."""
    account = account_of(evidence, pool)
    return spoil_account(evidence, pool, sightings=(*account.sightings, sighting))


def without(evidence: Evidence, *kinds: Kind) -> Evidence:
    """Only these kinds were never sent, by any account."""
    gone = {item.number for item in evidence.items if item.kind in kinds}
    ids = {f"id-{number}" for number in gone}
    return Evidence(
        [item for item in evidence.items if item.number not in gone],
        {number: answer for number, answer in evidence.answers.items() if number not in gone},
        [entry for entry in evidence.entries if entry.request_id not in ids],
        evidence.accounts,
        evidence.counted - len(gone),
    )


def test_agreement_holds() -> None:
    """Where all three agree every check holds, and each names at least two of them but the first."""
    found = checks(good_evidence(), PRIVILEGED, LONG)
    assert all(check.holds for check in found)
    assert all(len({who for who, _ in check.accounts}) >= 2 for check in found[1:])


@pytest.mark.parametrize(
    ("spoil", "expected"),
    [
        (lambda e: spoil_answer(e, 1, status=500, error="x: y"), {ANSWERS}),
        (lambda e: spoil_answer(e, 5, retry_after=""), {ANSWERS}),
        (lambda e: spoil_answer(e, 4, valid_json=False), {ANSWERS}),
        (lambda e: msgspec.structs.replace(e, entries=e.entries[1:]), {ACCOUNTED, SAME_POOL, TOKENS}),
        (lambda e: msgspec.structs.replace(e, counted=6), {ACCOUNTED}),
        (lambda e: spoil_account(e, "q4", sightings=()), {ACCOUNTED, SAME_POOL}),
        (lambda e: also_seen(e, "q4", Sighting(-1, 99, 5, 6)), {ACCOUNTED}),
        (lambda e: also_seen(e, "q8", Sighting(1, 99, 40, 50)), {ACCOUNTED, SAME_POOL}),
        (lambda e: spoil_answer(e, 1, pool="q8"), {SAME_POOL}),
        (lambda e: spoil_account(e, "q4", counters=Counters(41, 10, 50)), {TOKENS}),
        (lambda e: spoil_account(e, "q4", counters=Counters(40, 11, 50)), {TOKENS}),
    ],
)
def test_a_difference_fails(spoil: Spoil, expected: set[int]) -> None:
    """Each account alone can make the check fail that it concerns."""
    assert failing(spoil(good_evidence())) >= expected
    assert failing(spoil(good_evidence())) & {ANSWERS, ACCOUNTED, SAME_POOL, TOKENS} == expected


@pytest.mark.parametrize(
    "spoil",
    [
        lambda e: spoil_entry(e, 2, pool="q8", attempts=(Attempt("q8", 200),)),
        lambda e: spoil_entry(e, 2, attempts=(Attempt("q4", 0, "connect"), Attempt("bf16", 200))),
        lambda e: spoil_entry(e, 2, constraints=()),
        lambda e: spoil_entry(e, 1, constraints=("privileged",)),
        lambda e: also_seen(e, "q8", Sighting(2, 99, 50, 60)),
        lambda e: spoil_account(e, "bf16", sightings=account_of(e, "bf16").sightings[1:]),
        lambda e: without(e, Kind.PRIVILEGED),
    ],
)
def test_a_privileged_call_elsewhere_is_seen(spoil: Spoil) -> None:
    """By the gateway's log, an attempt that failed included, or by a server's; also if none was sent at all."""
    assert NO_PRIVILEGED in failing(spoil(good_evidence()))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda e: spoil_entry(e, 3, pool="q4", attempts=(Attempt("q4", 200),)),
        lambda e: also_seen(e, "q4", Sighting(3, 99, 1200, 1210)),
        lambda e: also_seen(e, "q4", Sighting(8, 99, 1020, 1030)),
        lambda e: spoil_account(e, "q4", counters=Counters(40, 10, 1024)),
        lambda e: without(e, Kind.LONG),
    ],
)
def test_a_long_context_elsewhere_is_seen(spoil: Spoil) -> None:
    """By the log, by the server's tasks whoever sent them, or by the longest context that the server ever held."""
    assert NO_LONG in failing(spoil(good_evidence()))


def test_nothing_proves_nothing() -> None:
    """Without requests no check holds: emptiness is no agreement."""
    empty = Evidence([], {}, [], [], 0)
    assert failing(empty) == {ANSWERS, ACCOUNTED, SAME_POOL, TOKENS, NO_PRIVILEGED, NO_LONG}
