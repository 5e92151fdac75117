"""What is due for a bucket that did not trip."""

import msgspec
import pytest

from gateway.control.rollouts_due import Moment, due_events
from gateway.control.rollouts_runs import Run
from gateway.core.rollout import Cause, EventKind, State
from tests.unit.control.rollout_rig import EngineRig, rollout_policy


@pytest.fixture
def run() -> Run:
    """A bucket that was just met."""
    rig = EngineRig(rollout_policy(extra="reentry: {after: 60s, most: 1}"))
    rig.world.is_ready = False
    rig.second()
    return next(iter(rig.engine.runs.values()))


def moment(run: Run, after_s: float = 0.0, **fields: object) -> Moment:
    now_s = run.standing.since_s + after_s
    base = Moment(now_s, run.standing.record, 0.0, ready=True, serves=True, braked=False, calm=False)
    return msgspec.structs.replace(base, **fields)


def kinds(run: Run, at: Moment) -> list[EventKind]:
    return [event.kind for event in due_events(run, at)]


def become(run: Run, state: State, below: State = State.STEPPING, cause: Cause = Cause.NONE) -> None:
    run.standing = msgspec.structs.replace(run.standing, state=state, below=below, cause=cause)


def test_a_bucket_begins_once_its_pool_is_ready_and_the_brake_is_off(run: Run) -> None:
    """Neither a cold pool nor an incident is a beginning."""
    assert kinds(run, moment(run)) == [EventKind.BEGIN]
    assert kinds(run, moment(run, ready=False)) == []
    assert kinds(run, moment(run, braked=True)) == []


def test_another_record_comes_first(run: Run) -> None:
    """What was won was the old pool's."""
    assert kinds(run, moment(run, record="new"))[0] is EventKind.CHANGED


def test_a_rolled_back_bucket_comes_again_after_its_time(run: Run) -> None:
    """Not before, and not under the brake."""
    become(run, State.ROLLED_BACK, State.PENDING)
    assert kinds(run, moment(run, 59.0)) == []
    assert kinds(run, moment(run, 60.0)) == [EventKind.REENTER]
    assert kinds(run, moment(run, 60.0, braked=True)) == []


def test_calm_ends_freezes_and_incidents(run: Run) -> None:
    """A freeze when the brake lets go, an incident after an hour without another."""
    become(run, State.FROZEN)
    assert kinds(run, moment(run, calm=True)) == [EventKind.CALM]
    assert kinds(run, moment(run)) == []
    assert kinds(run, moment(run, 900.0)) == [EventKind.CALM], "the brake let go when nobody saw it"
    assert kinds(run, moment(run, 900.0, braked=True)) == []
    become(run, State.HOLDING, cause=Cause.INCIDENT)
    assert kinds(run, moment(run, 3_601.0)) == [EventKind.CALM]
    late = moment(run, 3_601.0)
    assert kinds(run, msgspec.structs.replace(late, incident_s=late.now_s - 10)) == []


def test_a_stage_without_data_is_never_passed_and_times_out(run: Run) -> None:
    """The words name what is missing; promoted and paused buckets are not asked."""
    become(run, State.STEPPING)
    assert kinds(run, moment(run, 100.0)) == []
    (event,) = due_events(run, moment(run, run.stage.most_s + 1))
    assert event.kind is EventKind.TIMEOUT
    assert "no data" in event.reason
    for state, below in ((State.PROMOTED, State.PROMOTED), (State.PAUSED, State.STEPPING)):
        become(run, state, below)
        assert kinds(run, moment(run, 1e8)) == []
