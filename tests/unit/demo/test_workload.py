"""The demo's requests are what they claim to be, and the policy sees them as they are meant."""

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.cli.ask import Ask, answer, make_ask, tenant_of
from gateway.demo.policy import bans, compiled
from gateway.demo.witness import FIRST_MARK, WATERMARK
from gateway.demo.workload import (
    LEAST,
    MISSPELT_MODEL,
    STRANGER,
    TENANTS,
    TRIAL,
    TRIAL_REQUESTS,
    Item,
    Kind,
    items_of,
    workload,
)
from gateway.errors import ApiError

POLICY = Path("routing_policies/demo.yaml")
TABLE = compiled(POLICY)
PRIVILEGED, LONG = bans(POLICY)

counts = st.integers(LEAST, 150)
seeds = st.integers(0, 10_000)


def asked(item: Item) -> Ask:
    """The request as it comes to the gateway."""
    body = {name: value for name, value in item.body.items() if name != "extra_body"}
    path = "/v1/embeddings" if item.kind is Kind.EMBEDDINGS else "/v1/chat/completions"
    return make_ask(path, {}, {**body, **item.body.get("extra_body", {})})


@given(counts, seeds)
@settings(max_examples=40, deadline=None)
def test_the_asked_number_with_every_kind(count: int, seed: int) -> None:
    """As many as asked for, each with its own number, and each kind at least once."""
    items = items_of(workload(count, seed))
    assert [item.number for item in items] == list(range(1, count + 1))
    assert {item.kind for item in items} == set(Kind)
    marks = [item.body["extra_body"][WATERMARK] for item in items if item.kind is not Kind.EMBEDDINGS]
    assert marks == [FIRST_MARK + item.number for item in items if item.kind is not Kind.EMBEDDINGS]
    assert {item.tenant for item in items} == {*TENANTS, STRANGER}


@given(counts, seeds)
@settings(max_examples=15, deadline=None)
def test_the_policy_sees_them_as_they_are_meant(count: int, seed: int) -> None:
    """What the demo calls privileged or long, and only that, is bound by the constraint on it."""
    for item in items_of(workload(count, seed)):
        if item.kind in (Kind.WRONG_KEY, Kind.UNKNOWN_MODEL):
            continue
        decision = answer(TABLE, asked(item), tenant_of(TABLE, item.tenant), None).explanation.decision
        assert (PRIVILEGED.constraint in decision.constraints) == item.privileged, item
        assert (LONG.constraint in decision.constraints) == item.long, item
        assert decision.pools


def test_a_misspelt_model_is_not_served() -> None:
    """The name that is to be refused is refused, and the right one is offered."""
    (item,) = [item for item in items_of(workload(LEAST, 1)) if item.kind is Kind.UNKNOWN_MODEL]
    assert item.body["model"] == MISSPELT_MODEL
    with pytest.raises(ApiError, match="Did you mean"):
        answer(TABLE, asked(item), tenant_of(TABLE, item.tenant), None)


@given(counts, seeds)
@settings(max_examples=20, deadline=None)
def test_plain_chat_comes_first_and_last(count: int, seed: int) -> None:
    """An edit of chat's route in between shows; what depends on order is one step."""
    steps = workload(count, seed)
    assert steps[0][0].kind is steps[-1][0].kind is Kind.CHAT
    together = {item.kind: len(step) for step in steps for item in step if len(step) > 1}
    assert together.keys() <= {Kind.TRIAL, Kind.LONG}
    assert together[Kind.TRIAL] > TRIAL_REQUESTS + 1


def test_the_limit_is_the_policys() -> None:
    """The limited tenant sends more than the policy lets it."""
    assert TABLE.tenants[TRIAL].limits.requests_per_minute == TRIAL_REQUESTS


def test_a_seed_gives_the_same_again() -> None:
    """Two runs with one seed send the same; another seed sends otherwise."""
    assert workload(60, 3) == workload(60, 3)
    assert workload(60, 3) != workload(60, 4)


def test_streamed_and_not() -> None:
    """Both ways are sent, of chat too."""
    streams = Counter(item.stream for item in items_of(workload(72, 7)) if item.kind is Kind.CHAT)
    assert min(streams[True], streams[False]) > 5


def test_too_few_are_refused() -> None:
    """Fewer than one of each kind is an error that says how many are needed."""
    with pytest.raises(ValueError, match=str(LEAST)):
        workload(LEAST - 1, 1)
