"""Files that workers share: made when missing, made longer, never cut under a neighbour that has them mapped."""

from pathlib import Path

from gateway.dataplane.mapped import map_shared


def test_everybody_sees_what_one_writes(tmp_path: Path) -> None:
    """Two mappings of one file are one memory, which begins as zeros."""
    one, two = map_shared(tmp_path / "m", 8192), map_shared(tmp_path / "m", 8192)
    assert two[:] == bytes(8192)
    one[5000] = 7
    assert two[5000] == 7
    one.close()
    two.close()


def test_another_size_leaves_a_neighbours_pages_alone(tmp_path: Path) -> None:
    """A process that wants less or more finds its bytes, and the pages of the one before it stay."""
    first = map_shared(tmp_path / "m", 3 * 4096)
    first[3 * 4096 - 1] = 9
    for size in (4096, 5 * 4096):
        other = map_shared(tmp_path / "m", size)
        assert len(other) == size
        other.close()
        assert first[3 * 4096 - 1] == 9
    first.close()
