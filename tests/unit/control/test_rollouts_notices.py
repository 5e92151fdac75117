"""Which messages a transition calls for, and their words."""

import pytest

from gateway.control.rollouts_notices import brake_message, messages_of
from gateway.control.rollouts_trips import BESIDE
from gateway.control.rollouts_values import Proposal
from gateway.core.rollout import Event, EventKind, Standing, State, Stepped, begin_standing, step
from tests.unit.core.rollout.conftest import make_plan

PLAN = make_plan()


def proposed(standing: Standing, kind: EventKind, evidence: str = "{}") -> Proposal:
    """What an event leads to."""
    actor = "ann" if kind in (EventKind.RESET, EventKind.HOLD, EventKind.RESUME) else "quantgate"
    event = Event(kind, 9.0, "because", actor, "r1")
    stepped: Stepped = step(standing, event, PLAN)
    return Proposal((standing.identity, standing.bucket), stepped, event, evidence)


def begun() -> Standing:
    """A bucket in its first stage."""
    return step(begin_standing(PLAN, "b", "r1", 0.0), Event(EventKind.BEGIN, 1.0, "ready"), PLAN).standing


def test_a_rollback_is_told_with_the_room_that_is_left() -> None:
    """Who, where, why, and what the baseline can take."""
    before = begun()
    (message,) = messages_of(proposed(before, EventKind.FAIL, '{"headroom": "room for 3"}'), before)
    assert (message.event, message.resolved) == ("rollback", False)
    assert message.labels == {"rollout": "int4-chat", "bucket": "b", "pool": "int4"}
    assert "int4 in b is rolled_back (share none): because" in message.summary
    assert message.details["headroom"] == "room for 3"


def test_what_is_over_is_told_as_resolved_under_the_same_labels() -> None:
    """A reset ends a rollback, a resume a hold; a beginning nothing."""
    before = begun()
    out = proposed(before, EventKind.FAIL).stepped.standing
    (over,) = messages_of(proposed(out, EventKind.RESET), out)
    assert (over.event, over.resolved, over.labels["bucket"]) == ("rollback", True, "b")
    held = proposed(before, EventKind.HOLD).stepped.standing
    (resumed,) = messages_of(proposed(held, EventKind.RESUME), held)
    assert (resumed.event, resumed.resolved) == ("hold", True)
    pending = begin_standing(PLAN, "b", "r1", 0.0)
    assert list(messages_of(proposed(pending, EventKind.BEGIN), pending)) == []


@pytest.mark.parametrize(
    ("kind", "reason", "event"),
    [
        (EventKind.INCIDENT, "the baseline is no better", "incident"),
        (EventKind.BESIDE, f"{BESIDE}: json of another bucket", "hold"),
        (EventKind.TIMEOUT, "not enough evidence", "hold"),
        (EventKind.PASS, "seen enough", "approval_needed"),
    ],
)
def test_a_hold_ends_under_the_name_that_told_it(kind: EventKind, reason: str, event: str) -> None:
    """An alert that nobody ends would fire for a day."""
    before = begun()
    plan = make_plan(approvals=1)
    stepped = step(before, Event(kind, 9.0, reason), plan)
    (told,) = messages_of(Proposal((before.identity, before.bucket), stepped, Event(kind, 9.0, reason), "{}"), before)
    held = stepped.standing
    (over,) = messages_of(proposed(held, EventKind.RESUME), held)
    assert (told.event, told.resolved) == (event, False)
    assert (over.event, over.resolved, over.labels) == (event, True, told.labels)


def test_the_brake_is_told_once_for_all() -> None:
    """With the number of buckets, and again when the last of them is free."""
    before = begun()
    frozen = [proposed(before, EventKind.BRAKE) for _ in range(3)]
    message = brake_message(frozen, {frozen[0].key: before}, [])
    assert message is not None
    assert "3 buckets are frozen" in message.summary
    out = frozen[0].stepped.standing
    assert out.state is State.FROZEN
    assert brake_message([proposed(before, EventKind.FAIL)], {frozen[0].key: before}, []) is None
    freed = proposed(out, EventKind.CALM)
    assert list(messages_of(freed, out)) == []
    assert brake_message([freed], {freed.key: out}, [freed.stepped.standing, out]) is None
    over = brake_message([freed], {freed.key: out}, [freed.stepped.standing])
    assert over is not None
    assert (over.event, over.resolved, over.labels) == ("incident", True, message.labels)
