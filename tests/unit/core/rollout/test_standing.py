"""What follows from where a bucket stands."""

import msgspec
import pytest

from gateway.core.rollout import Standing, State, Vote, begin_standing
from gateway.core.rollout.standing import is_last, share_of_standing, stage_state
from tests.unit.core.rollout.conftest import make_plan

PLAN = make_plan()


def standing(state: State, below: State, stage: int) -> Standing:
    return msgspec.structs.replace(begin_standing(PLAN, "b", "r", 0.0), state=state, below=below, stage=stage)


@pytest.mark.parametrize(
    ("state", "below", "stage", "share"),
    [
        (State.PENDING, State.PENDING, 0, 0),
        (State.SHADOWING, State.SHADOWING, 0, 0),
        (State.STEPPING, State.STEPPING, 2, 2_500),
        (State.PROMOTED, State.PROMOTED, 3, 10_000),
        (State.HOLDING, State.STEPPING, 1, 500),
        (State.HOLDING, State.SHADOWING, 0, 0),
        (State.FROZEN, State.PROMOTED, 3, 10_000),
        (State.PAUSED, State.STEPPING, 2, 0),
        (State.ROLLED_BACK, State.PENDING, 2, -1),
    ],
)
def test_the_share_of_each_state(state: State, below: State, stage: int, share: int) -> None:
    """Holds and freezes keep it, a pause takes it, the latch is below none."""
    assert share_of_standing(PLAN, standing(state, below, stage)) == share


def test_votes_are_counted_by_person_and_kind() -> None:
    """An approval is no promotion."""
    voted = msgspec.structs.replace(
        standing(State.STEPPING, State.STEPPING, 1),
        votes=(Vote("ann", "approve", 1.0), Vote("ann", "approve", 2.0), Vote("bob", "promote", 3.0)),
    )
    assert voted.voters("approve") == {"ann"}
    assert voted.voters("promote") == {"bob"}


def test_stages_say_what_runs_and_which_is_the_last() -> None:
    """Shadow first, then live."""
    assert [stage_state(PLAN, stage) for stage in range(4)] == [State.SHADOWING, *[State.STEPPING] * 3]
    assert [is_last(PLAN, stage) for stage in range(4)] == [False, False, False, True]


def test_it_is_stored_as_json_and_read_back_the_same() -> None:
    """The row's own form."""
    made = standing(State.HOLDING, State.STEPPING, 1)
    assert msgspec.json.decode(msgspec.json.encode(made), type=Standing) == made
    assert (made.watched, made.live) == (True, False)
