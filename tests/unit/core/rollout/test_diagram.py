"""The picture in the documentation is the table."""

from pathlib import Path

from gateway.core.rollout import TABLE, State, mermaid
from gateway.core.rollout.states import EventKind

PAGE = Path(__file__).parents[4] / "docs" / "rollouts.md"


def test_every_state_is_in_the_picture_and_rollback_has_an_arrow_from_all_others() -> None:
    """Eight states; seven ways into the latch."""
    picture = mermaid()
    for state in State:
        assert state.value in picture
    assert picture.count("--> rolled_back") == len(State) - 1
    assert all(set(cells) == set(EventKind) for cells in TABLE.values())


def test_the_page_shows_the_generated_picture() -> None:
    """Copy the output of ``mermaid()`` into the page when the table changes."""
    assert mermaid() in PAGE.read_text()
