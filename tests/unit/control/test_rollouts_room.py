"""What the baseline could not take back is counted by tier, and nothing else is."""

import pytest

from gateway.control.rollouts_room import Room
from gateway.core.rollout import Standing, State
from tests.unit.control.conftest import outcome


def counted(state: State | None, **fields: object) -> dict[tuple[str, ...], float]:
    """The counts after one outcome of a bucket in that state."""

    def standing(rollout: str, bucket: str) -> Standing | None:
        assert (rollout, bucket) == ("r", "m/short/chat")
        return Standing("r", "id", "m/short/chat", "int4", "bf16", state=state) if state is not None else None

    room = Room(standing)
    given = {"rollout": "r", "bucket": "m/short/chat", "result": "shed", "tier": "bronze", **fields}
    room.take_outcomes([outcome(**given)])
    return {key: row[0] for key, row in room.shed.rows.items()}


@pytest.mark.parametrize("state", [State.ROLLED_BACK, State.PAUSED])
def test_a_refusal_in_a_bucket_that_is_out_is_counted_by_tier(state: State) -> None:
    """Rolled back or paused: its traffic is on the pools that remain."""
    assert counted(state) == {("m/short/chat", "r", "bronze"): 1.0}
    assert counted(state, tier="") == {("m/short/chat", "r", "none"): 1.0}


@pytest.mark.parametrize(
    ("state", "fields"),
    [
        (State.STEPPING, {}),
        (None, {}),
        (State.ROLLED_BACK, {"result": "ok"}),
        (State.ROLLED_BACK, {"result": "rate_limited"}),
        (State.ROLLED_BACK, {"rollout": ""}),
    ],
)
def test_other_refusals_are_not_the_rollbacks(state: State | None, fields: dict[str, object]) -> None:
    """A bucket that runs, a tenant's own limit, a request of no rollout."""
    assert counted(state, **fields) == {}
