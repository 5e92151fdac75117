"""What goes on record of a bucket: each series with its baseline beside it."""

import random

import orjson
import pytest

from gateway.control.rollouts_record import evidence_of, packed
from gateway.core.evidence import SeriesKey
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


@pytest.mark.parametrize(("together", "said"), [(1, False), (6, True)])
def test_blocks_that_repeat_each_other_are_too_short_and_that_is_said(together: int, said: bool) -> None:
    """From the baseline's votes; with the length that the guard should have."""
    table = rollout_policy(guards="\n  errors: {metric: error_rate, limit: 10%, block: 10s}\n", names="errors")
    rig = EngineRig(table)
    rig.until(lambda: rig.at(State.STEPPING))
    run = next(iter(rig.engine.runs.values()))
    draw = random.Random(2)
    key, bad = SeriesKey("errors", "m/short/chat", "bf16"), 0
    for block in range(600):
        bad = draw.randrange(4) if block % together == 0 else bad
        rig.engine.judge.accept(key, rig.now_s + 10.0 * block + 20.0, 0.0, 40 - bad)
        rig.engine.judge.accept(key, rig.now_s + 10.0 * block + 20.0, 1.0, bad)
    rig.engine.judge.advance(rig.now_s + 10_000.0)
    reasons = next(one["reasons"] for one in evidence_of(run, rig.now_s)["series"] if one["series"] == "errors")
    assert any("give the guard block: 20s" in reason for reason in reasons) is said
