"""Files that workers share: made when missing, made longer, never cut under a neighbour that has them mapped."""

import errno
import os
from pathlib import Path

import pytest

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


def test_every_page_has_its_block_before_anybody_touches_it(tmp_path: Path) -> None:
    """A hole is filled when it is written to, and where the disk is full by then the writer is killed."""
    size = 64 * 4096
    (tmp_path / "old").write_bytes(b"x")
    os.truncate(tmp_path / "old", size)  # as a gateway before this one left it
    for name in ("new", "old"):
        mapped = map_shared(tmp_path / name, size)
        assert (tmp_path / name).stat().st_blocks * 512 >= size
        mapped.close()
    assert (tmp_path / "old").read_bytes() == b"x" + bytes(size - 1)


def test_a_full_disk_leaves_memory_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No worker dies of it, neither now nor when it writes."""

    def full(*_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    heard: list[str] = []
    mapped = map_shared(tmp_path / "m", 8192, lambda where, _: heard.append(where))
    assert len(heard) == 1 and "No space left" in heard[0]
    mapped[:] = b"1" * 8192
    assert (tmp_path / "m").stat().st_size == 0
    mapped.close()


def test_a_file_system_that_cannot_allocate_is_taken_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing better is to be had there."""

    def unsupported(*_: int) -> None:
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    monkeypatch.setattr(os, "posix_fallocate", unsupported)
    one, two = map_shared(tmp_path / "m", 8192), map_shared(tmp_path / "m", 8192)
    one[8191] = 7
    assert two[8191] == 7
    one.close()
    two.close()
