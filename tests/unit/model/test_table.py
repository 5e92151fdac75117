"""The little that the compiled policy does by itself."""

import pytest

from gateway.model.table import MARKS, marks_of


def test_marks_are_bits() -> None:
    """One for each name, whatever the order and however often."""
    assert [marks_of([name]) for name in MARKS] == [1, 2, 4, 8, 16, 32]
    assert marks_of(["tools", "table", "tools"]) == 34
    assert marks_of(()) == 0


def test_an_unknown_mark_is_an_error() -> None:
    """The schema of the policy refuses it with its place long before."""
    with pytest.raises(ValueError, match="tuple"):
        marks_of(["nonsense"])
