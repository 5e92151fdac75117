"""Simulated requests are bad as often and in the way that they should be."""

import random

import msgspec
import pytest

from gateway.control import worth
from gateway.control.rehearsal.requests import draw_pair, draw_request
from gateway.model.proving import Guard
from tests.unit.control.rehearsal.test_scenario import PLAN, TABLE

BUCKET = ("bucket-1", "chat", "short")


def drawn(seed: int = 1, **levels: float):  # type: ignore[no-untyped-def]
    rand = random.Random(seed)
    return [
        draw_request(PLAN, TABLE.guards, levels, bucket=BUCKET, pool="int4", at_s=5.0, number=number, rand=rand)
        for number in range(2_000)
    ]


def test_a_healthy_request_is_good_in_every_guard() -> None:
    """Answered, in time, valid."""
    one = drawn()[0]
    outcome, kind = one.scored.outcome, one.scored.outcome.kind
    assert not one.bad
    assert (kind.rollout, kind.bucket, kind.pool, kind.result) == (PLAN.name, "bucket-1", "int4", "ok")
    assert worth.check_value(TABLE.guards["json"], one.scored.inspection) == 0.0
    assert worth.attempt_value(outcome, outcome.attempts[0]) == 0.0


def test_each_guards_share_is_bad_and_in_its_own_way() -> None:
    """Within five standard deviations."""
    errors = drawn(errors=0.1)
    assert 133 < sum(one.scored.outcome.kind.result == "upstream_error" for one in errors) < 267
    json = drawn(json=0.1)
    bad = [one for one in json if worth.check_value(TABLE.guards["json"], one.scored.inspection) == 1.0]
    assert 133 < len(bad) < 267
    assert all(one.bad for one in bad)
    slow = drawn(ttft=0.1)
    assert 133 < sum(one.scored.outcome.ttft_s > 2.0 for one in slow) < 267


def test_an_answer_lasts_as_long_as_its_first_token_and_all_others_take() -> None:
    """Slow ones are known later, and that is a part of what a rehearsal has to show."""
    guard = Guard("pace", "tpot", limit=1.0, quantile=0.95)
    plan = msgspec.structs.replace(PLAN, guards=("pace",))
    for level, took_s in ((0.0, 1.1), (1.0, 200.1)):
        one = draw_request(
            plan, {"pace": guard}, {"pace": level}, bucket=BUCKET, pool="int4", at_s=5.0, number=1, rand=random.Random()
        )
        assert one.scored.outcome.attempts[0].took_s == pytest.approx(took_s)


def test_pairs_of_equal_pools_cancel_and_a_worse_one_loses_on_average() -> None:
    """A tenth differs at least."""
    rand = random.Random(2)
    for loss in (0.0, 0.2):
        values = [
            found.trip or 0.0
            for number in range(4_000)
            for _, found in [draw_pair(PLAN, bucket="b", at_s=1.0, number=number, loss=loss, rand=rand)]
        ]
        assert abs(sum(values) / len(values) - loss) < 0.04
        assert set(values) <= {-1.0, 0.0, 1.0}
