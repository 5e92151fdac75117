"""What a transition asks for comes in the order in which it must be done."""

from gateway.core.rollout import (
    Audit,
    Event,
    EventKind,
    Notice,
    Notify,
    Persist,
    SetShare,
    StartStage,
    begin_standing,
    step,
)
from tests.unit.core.rollout.conftest import make_plan
from tests.unit.core.rollout.test_transitions import after


def test_the_first_stage_takes_the_pool_as_a_new_one_and_later_ones_keep_its_money() -> None:
    """Pairs get their lump at shadow start and at the first live stage only."""
    plan = make_plan()
    starts = [
        effect
        for kinds in ([EventKind.BEGIN], [EventKind.BEGIN, EventKind.PASS], [EventKind.BEGIN] + [EventKind.PASS] * 2)
        for effect in after(plan, *kinds).effects
        if isinstance(effect, StartStage)
    ]
    assert starts == [StartStage(True), StartStage(False, first_live=True), StartStage(False)]


def test_first_it_is_stored_then_it_acts_then_people_hear() -> None:
    """A rollback: row and record, share, notice."""
    plan = make_plan()
    failed = step(after(plan, EventKind.BEGIN, EventKind.PASS).standing, Event(EventKind.FAIL, 9.0, "tripped"), plan)
    assert [type(effect) for effect in failed.effects] == [Persist, Audit, SetShare, Notify]
    told = failed.effects[-1]
    assert isinstance(told, Notify)
    assert (told.notice, told.standing) == (Notice.ROLLBACK, failed.standing)
    begun = step(begin_standing(plan, "b", "r", 0.0), Event(EventKind.BEGIN, 9.0, "ready"), plan)
    assert [type(effect) for effect in begun.effects] == [Persist, Audit, StartStage, SetShare]
