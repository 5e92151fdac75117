"""What happens to requests reaches the feeds in order."""

from gateway.core.evidence import SeriesKey
from gateway.core.rollout import State
from gateway.model.messages import Start, Starts
from tests.unit.control.rollout_rig import EngineRig, request_of, rollout_policy

BUCKET = "m/short/chat"


def test_dispatches_are_told_before_what_became_of_them() -> None:
    """Or a block would be closed while one of its requests is open; also before the state is stored."""
    rig = EngineRig(rollout_policy())
    rig.until(lambda: rig.at(State.STEPPING))
    second = int(rig.now_s)
    errors = rig.engine.judge.series(SeriesKey("hard_errors", BUCKET, "int4"))
    rig.engine.take_starts(Starts(0, [Start(second, BUCKET, "int4", 2)]))
    rig.engine.take_outcomes([request_of(BUCKET, "int4", rig.now_s, "q")], rig.now_s)
    assert sum(errors.timeline.pending[second].open_requests().values()) == 1
    rig.engine.take_starts(Starts(1, [Start(second, BUCKET, "int4", 3)]))
    rig.engine.state(rig.now_s)
    assert sum(errors.timeline.pending[second].open_requests().values()) == 4


def test_nothing_is_taken_before_the_past_is_known() -> None:
    """A bucket that is met then would be met anew."""
    rig = EngineRig(rollout_policy())
    rig.engine = rig._made()
    rig.engine.take_outcomes([request_of(BUCKET, "bf16", rig.now_s, "q")], rig.now_s)
    assert not rig.engine.standings
