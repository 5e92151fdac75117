"""Standings are compared and set, and their record cannot be rewritten unnoticed."""

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.exc import DatabaseError

from gateway.core.rollout import Audit, Event, EventKind, Persist, Standing, begin_standing, step
from gateway.model.proving import Rollout, Stage
from gateway.store import rollouts
from gateway.store.rollouts import Change

PLAN = Rollout(
    "int4-chat", "id-1", "m", "int4", "bf16", lambda profile: True, "always", (Stage("weight", 500, 0, 0, 0, 9),), ()
)


def change(standing: Standing, kind: EventKind, reason: str = "because") -> Change:
    actor = "ann" if kind in (EventKind.HOLD, EventKind.RESET) else "quantgate"
    stepped = step(standing, Event(kind, 5.0, reason, actor), PLAN)
    persist, audit = stepped.effects[:2]
    assert isinstance(persist, Persist)
    assert isinstance(audit, Audit)
    return Change(persist.standing, persist.expected, audit, "digest", '{"n": 3}')


def test_a_stored_standing_comes_back_as_it_was_with_its_record(engine: Engine) -> None:
    """Value and line, in one transaction."""
    begun = change(begin_standing(PLAN, "b", "r", 1.0), EventKind.BEGIN)
    assert rollouts.commit(engine, begun)
    failed = change(begun.standing, EventKind.FAIL, "the meter tripped")
    assert rollouts.commit(engine, failed)
    assert rollouts.load(engine) == [failed.standing]
    assert rollouts.versions(engine) == {("id-1", "b"): 2}
    newest, oldest = rollouts.history(engine, rollout="int4-chat", bucket="b")
    assert (newest.event, newest.before, newest.after, newest.reason) == (
        "fail",
        "stepping",
        "rolled_back",
        "the meter tripped",
    )
    assert (newest.share_bp, newest.policy, newest.evidence, newest.actor) == (-1, "digest", '{"n": 3}', "quantgate")
    assert oldest.version == 1
    assert rollouts.history(engine, before=newest.id) == [oldest]
    assert rollouts.history(engine, rollout="other") == []


def test_the_second_of_two_writers_stores_nothing(engine: Engine) -> None:
    """Neither the standing nor a line, at the first row and later."""
    standing = begin_standing(PLAN, "b", "r", 1.0)
    assert rollouts.commit(engine, change(standing, EventKind.BEGIN))
    assert not rollouts.commit(engine, change(standing, EventKind.HOLD))
    begun = rollouts.load(engine)[0]
    assert rollouts.commit(engine, change(begun, EventKind.FAIL))
    assert not rollouts.commit(engine, change(begun, EventKind.HOLD))
    assert rollouts.load(engine)[0].state.value == "rolled_back"
    assert len(rollouts.history(engine)) == 2


@pytest.mark.parametrize("statement", ["UPDATE rollout_events SET reason = 'x'", "DELETE FROM rollout_events"])
def test_the_record_is_append_only(engine: Engine, statement: str) -> None:
    """The database itself refuses."""
    rollouts.commit(engine, change(begin_standing(PLAN, "b", "r", 1.0), EventKind.BEGIN))
    with pytest.raises(DatabaseError, match="append-only"), engine.begin() as connection:
        connection.execute(text(statement))


def test_a_line_that_was_altered_shows_in_the_chain(engine: Engine) -> None:
    """Even if somebody takes the triggers away first."""
    begun = change(begin_standing(PLAN, "b", "r", 1.0), EventKind.BEGIN)
    rollouts.commit(engine, begun)
    rollouts.commit(engine, change(begun.standing, EventKind.FAIL))
    assert rollouts.broken_chain(engine) is None
    with engine.begin() as connection:
        named = "no_update" if engine.dialect.name == "sqlite" else "append_only ON rollout_events"
        connection.execute(text(f"DROP TRIGGER rollout_events_{named}"))
        connection.execute(text("UPDATE rollout_events SET reason = 'all is well' WHERE version = 1"))
    first = rollouts.history(engine)[-1]
    assert rollouts.broken_chain(engine) == first.id
