"""Events cannot be built without what goes on record."""

import pytest

from gateway.core.rollout import Event, EventKind
from gateway.core.rollout.states import COMMANDS


def test_nothing_moves_without_a_reason_and_commands_need_a_person() -> None:
    """An event without a reason, a nameless command or a person's evidence cannot be built."""
    with pytest.raises(ValueError, match="reason"):
        Event(EventKind.FAIL, 1.0, "  ")
    with pytest.raises(ValueError, match="person"):
        Event(EventKind.HOLD, 1.0, "because")
    with pytest.raises(ValueError, match="person"):
        Event(EventKind.PASS, 1.0, "because", "ann")


def test_commands_are_what_people_do_and_evidence_is_the_rest() -> None:
    """Closed: a new event must say which it is."""
    assert {kind.value for kind in COMMANDS} == {
        "approve",
        "promote",
        "hold",
        "pause",
        "resume",
        "rollback",
        "reset",
    }
    assert len(EventKind) == 18
