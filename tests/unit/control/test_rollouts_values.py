"""What passes between the engine and its callers."""

import msgspec

from gateway.control.rollouts_values import fingerprint_of, told_shares
from gateway.core.evidence import Budget
from tests.unit.control.rollout_rig import EngineRig, rollout_policy


def test_series_are_made_anew_only_if_what_they_are_made_of_changed() -> None:
    """Pools' records and other parts of a policy do not matter; guards, stages and the budget do."""
    table = rollout_policy()
    same = fingerprint_of(table, Budget())
    assert fingerprint_of(rollout_policy(record="b"), Budget()) == same
    assert fingerprint_of(rollout_policy(stages="[{weight: 10%}]"), Budget()) != same
    assert fingerprint_of(rollout_policy(names="errors"), Budget()) != same
    assert fingerprint_of(table, Budget(slots=10)) != same


def test_proposals_say_whether_workers_must_hear() -> None:
    """A vote does not move a share."""
    rig = EngineRig(rollout_policy())
    begun = rig.second()
    begun = begun or rig.second()
    assert told_shares(begun)
    assert not told_shares([])
    kept = tuple(effect for effect in begun[0].stepped.effects if type(effect).__name__ != "SetShare")
    quiet = msgspec.structs.replace(begun[0], stepped=msgspec.structs.replace(begun[0].stepped, effects=kept))
    assert not told_shares([quiet])
