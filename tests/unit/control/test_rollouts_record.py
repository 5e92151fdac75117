"""What goes on record of a bucket: each series with its baseline beside it."""

import orjson

from gateway.control.rollouts_record import evidence_of, packed
from gateway.core.rollout import State
from tests.unit.control.rollout_rig import EngineRig, rollout_policy


def test_the_record_holds_the_baseline_beside_each_series() -> None:
    """Counts, suspicion, reasons, and the meter's steps."""
    rig = EngineRig(rollout_policy())
    rig.until(lambda: rig.at(State.STEPPING))
    for _ in range(60):
        rig.second(json=0.02)
    run = next(iter(rig.engine.runs.values()))
    found = {series["series"]: series for series in evidence_of(run, rig.now_s, "room")["series"]}
    assert found["json"]["baseline"]["outcomes"] > 0
    assert found["json"]["interval"][0] <= 0.02 <= found["json"]["interval"][1]
    assert len(found["json"]["history"]) > 10


def test_the_record_is_json_with_what_a_person_needs() -> None:
    """Requests to blame, room, votes, the deployment and its entries."""
    rig = EngineRig(rollout_policy())
    rig.until(lambda: rig.at(State.STEPPING))
    for _ in range(30):
        rig.second(json=0.1)
    run = next(iter(rig.engine.runs.values()))
    found = orjson.loads(packed(evidence_of(run, rig.now_s, "room for ten")))
    assert found["requests"]["json"]
    assert (found["headroom"], found["record"], found["entries"], found["votes"]) == ("room for ten", "r-a", 0, [])
