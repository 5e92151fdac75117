"""The transition table is complete, and its rules hold cell by cell."""

import pytest

from gateway.core.rollout import TABLE, EventKind, State
from gateway.core.rollout.states import COMMANDS
from gateway.core.rollout.table import To


def test_every_state_says_what_every_event_does() -> None:
    """No cell is missing, and each ends with a move that always holds."""
    assert set(TABLE) == set(State)
    for state, cells in TABLE.items():
        assert set(cells) == set(EventKind), state
        for kind, cell in cells.items():
            assert cell[-1].when.value == "", (state, kind)
            for move in cell:
                silent = move.to.value == "stay" and not (move.why or move.refusal)
                assert not silent, (state, kind)


@pytest.mark.parametrize("state", [state for state in State if state is not State.ROLLED_BACK])
def test_a_failed_verdict_and_a_persons_rollback_have_no_condition(state: State) -> None:
    """Out, from everywhere."""
    for kind in (EventKind.FAIL, EventKind.ROLLBACK):
        assert [move.to for move in TABLE[state][kind]] == [To.ROLLED_BACK]


def test_out_of_the_latch_lead_two_events_alone() -> None:
    """A person's reset, and the policy's re-entry; both to the start."""
    leaving = {
        kind: {move.to for move in cell if move.to not in (To.STAY, To.NOTE)}
        for kind, cell in TABLE[State.ROLLED_BACK].items()
    }
    assert {kind: to for kind, to in leaving.items() if to} == {
        EventKind.RESET: {To.PENDING},
        EventKind.REENTER: {To.PENDING},
    }


def test_a_person_who_is_refused_is_told_why() -> None:
    """Every command that may do nothing has its words."""
    for state, cells in TABLE.items():
        for kind in COMMANDS:
            for move in cells[kind]:
                assert move.to is not To.STAY or move.refusal, (state, kind)
