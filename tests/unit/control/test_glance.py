"""Glances at the policy files: no change is missed, and nothing is read or woken where there is none."""

import os
import threading
import time
from pathlib import Path

import pytest

from gateway.control.glance import YOUNG_S, Glance, is_young, stamps_of


def look(path: Path, *extra: Path) -> tuple[tuple[object, ...], ...]:
    return tuple(stamps_of(path, extra))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A policy of two files, with something else beside them."""
    made = tmp_path / "policy"
    made.mkdir()
    for name in ("a.yaml", "b.yml", "access.jsonl"):
        (made / name).write_text("a: 1")
    return made


def test_nothing_happened_is_nothing_seen(folder: Path) -> None:
    """Also when a log beside the policy grows."""
    before = look(folder)
    with (folder / "access.jsonl").open("a") as log:
        log.write("line\n")
    assert look(folder) == before
    assert look(folder / "a.yaml") == look(folder / "a.yaml")


def test_every_way_to_change_a_policy_is_seen(folder: Path, tmp_path: Path) -> None:
    """Written in place, renamed over with the same times and size, added, taken away, replaced as a whole."""
    file, other = folder / "a.yaml", tmp_path / "other"
    seen = [look(folder)]

    def note() -> None:
        seen.append(look(folder))
        assert seen[-1] != seen[-2]

    file.write_text("a: 22")
    note()
    other.write_text("a: 33")
    os.utime(other, ns=(file.stat().st_atime_ns, file.stat().st_mtime_ns))
    other.rename(file)
    note()
    (folder / "c.yaml").write_text("c: 1")
    note()
    (folder / "c.yaml").unlink()
    note()
    folder.rename(tmp_path / "away")
    note()
    (tmp_path / "away").rename(folder)
    note()


def test_a_symlink_that_is_swapped_is_seen(tmp_path: Path) -> None:
    """As Kubernetes replaces a ConfigMap: the file's own link never changes."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "p.yaml").write_text("a: 1")
    mounted = tmp_path / "mounted"
    mounted.mkdir()
    (mounted / "..data").symlink_to(tmp_path / "one")
    (mounted / "p.yaml").symlink_to("..data/p.yaml")
    folder, file = look(mounted)[1:], look(mounted / "p.yaml")
    (mounted / "..new").symlink_to(tmp_path / "two")
    (mounted / "..new").rename(mounted / "..data")
    assert look(mounted)[1:] != folder
    assert look(mounted / "p.yaml") != file


def test_files_that_the_policy_refers_to_count(folder: Path, tmp_path: Path) -> None:
    """A secret that appears, and one that is rotated."""
    secret = tmp_path / "key"
    missing = look(folder, secret)
    secret.write_text("one")
    there = look(folder, secret)
    secret.write_text("three")
    assert len({missing, there, look(folder, secret)}) == 3


def test_what_was_touched_a_moment_ago_counts_as_changed(folder: Path) -> None:
    """Until its stamp is old enough to tell the next change; a missing file is not young."""
    stamp, touched = look(folder / "a.yaml")[0], (folder / "a.yaml").stat().st_ctime
    assert is_young(stamp, touched)
    assert is_young(stamp, touched + YOUNG_S - 0.1)
    assert not is_young(stamp, touched + YOUNG_S + 0.1)
    assert is_young(stamp, 0.0)
    assert not is_young(look(folder / "missing")[0], 0.0)


def test_only_differences_are_told(folder: Path) -> None:
    """What it finds at first, and then what is not as before; while a file is young it cannot tell."""
    now = [time.time() + 1e6]
    glance = Glance(folder, list, lambda: now[0], 1.0)
    assert [glance.differs() for _ in range(3)] == [True, False, False]
    (folder / "a.yaml").write_text("a: 22")
    assert [glance.differs() for _ in range(2)] == [True, False]
    glance.extra = [folder / "access.jsonl"]
    assert [glance.differs() for _ in range(2)] == [True, False]
    now[0] = 0.0
    assert [glance.differs() for _ in range(2)] == [True, True]


def test_it_calls_back_until_it_is_stopped(folder: Path) -> None:
    """From a thread of its own."""
    called = threading.Semaphore(0)
    glance = Glance(folder, called.release, lambda: 0.0, 0.001)
    glance.start()
    for _ in range(3):
        assert called.acquire(timeout=30)
    glance.stop()
    glance._thread.join(30)
    assert not glance._thread.is_alive()
