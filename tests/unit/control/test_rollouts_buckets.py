"""Buckets are met once, found again, and taken over from other gateways; another policy asks them anew."""

import pytest

from gateway.control import rollouts_buckets
from gateway.control.rollouts_buckets import Buckets
from gateway.core.evidence import Budget, Judge
from gateway.core.rollout import State, begin_standing
from tests.unit.control.rollout_rig import request_of, rollout_policy

TABLE = rollout_policy()
PLAN = TABLE.rollouts[0]
AT = 1_700_000_000.0


@pytest.fixture
def buckets() -> Buckets:
    """Under a policy with one rollout."""
    made = Buckets()
    made.apply(TABLE, {"int4": "rec"})
    return made


def test_a_bucket_is_met_by_its_first_request_and_known_after(buckets: Buckets) -> None:
    """With its slices and the deployment that it speaks of; a request of another rollout meets none."""
    judge = Judge(Budget())
    request = request_of("m/short/chat", "int4", AT, "q1")
    assert buckets.known(request) is None
    run = buckets.met(judge, request, AT)
    assert run is not None
    assert buckets.met(judge, request, AT + 1) is run is buckets.known(request)
    assert (run.standing.slices, run.standing.record) == (("task=chat", "length=short"), "rec")
    assert list(buckets.of("m/short/chat")) == [run]
    assert list(buckets.of("m/long/chat")) == []
    assert buckets.shares() == {PLAN.identity: {"m/short/chat": 0}}


def test_there_is_a_bound_on_buckets(buckets: Buckets, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names of buckets come from requests."""
    monkeypatch.setattr(rollouts_buckets, "BUCKETS_MOST", 1)
    judge = Judge(Budget())
    assert buckets.met(judge, request_of("m/short/chat", "int4", AT, "q1"), AT) is not None
    assert buckets.met(judge, request_of("m/long/chat", "int4", AT, "q2"), AT) is None
    assert len(buckets.standings) == 1


def test_a_rebuild_keeps_every_standing_and_says_that_the_policy_is_new(buckets: Buckets) -> None:
    """In a fresh judge; a bucket that finds no slot is told, and its share stands."""
    judge = Judge(Budget())
    buckets.met(judge, request_of("m/short/chat", "int4", AT, "q1"), AT)
    buckets.rebuild(Judge(Budget()), AT)
    assert buckets.unplaced == {(PLAN.identity, "m/short/chat")} == set(buckets.runs)
    buckets.rebuild(Judge(Budget(slots=3)), AT)
    assert buckets.runs == {}
    assert "slots" in buckets.refused[PLAN.identity, "m/short/chat"]
    assert buckets.shares() == {PLAN.identity: {"m/short/chat": 0}}


def test_how_long_conversations_are_survives_reloads_and_restarts(buckets: Buckets) -> None:
    """It is known again at once, or a stage would pass on less evidence for a while."""
    judge = Judge(Budget())
    run = buckets.met(judge, request_of("m/short/chat", "int4", AT, "q1"), AT)
    assert run is not None
    for number in range(400):
        run.feed.turns.see(f"c{number // 4}", AT)
    buckets.rebuild(Judge(Budget()), AT)
    (again,) = buckets.runs.values()
    assert again.feed.turns.mean() == pytest.approx(4.0)
    stored = buckets.turns()
    restarted = Buckets()
    restarted.apply(TABLE, {})
    restarted.standings.update(buckets.standings)
    restarted.rebuild(Judge(Budget()), AT)
    restarted.restore_turns(stored)
    (found,) = restarted.runs.values()
    assert found.feed.turns.mean() == pytest.approx(4.0)
    restarted.restore_turns({})
    assert found.feed.turns.mean() == pytest.approx(4.0)


def test_what_another_gateway_met_or_moved_is_taken_over(buckets: Buckets) -> None:
    """A bucket that was never seen here is watched from now on; one of a rollout that is gone is only kept."""
    judge = Judge(Budget())
    new = begin_standing(PLAN, "m/long/chat", "rec", AT)
    buckets.adopt(judge, new, AT)
    assert buckets.runs[PLAN.identity, "m/long/chat"].standing == new
    gone = begin_standing(PLAN, "m/short/chat", "rec", AT)
    buckets.apply(rollout_policy(extra="buckets: {length: [long]}"), {})
    buckets.adopt(judge, gone, AT)
    assert (PLAN.identity, "m/short/chat") in buckets.standings
    assert (PLAN.identity, "m/short/chat") not in buckets.runs
    assert list(buckets.in_force()) == []
    assert gone.state is State.PENDING
