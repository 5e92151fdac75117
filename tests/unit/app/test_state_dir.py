"""The state directory: one holder, and a socket whose path fits."""

import os

import pytest

from gateway.app.state_dir import SOCKET_PATH_MOST, StateDirError, StateDirInUseError, lock_state_dir, socket_path


def test_the_lock_is_let_go_with_its_holder(tmp_path):
    """A second holder is refused by name, until the first is gone."""
    first = lock_state_dir(tmp_path / "state")
    with pytest.raises(StateDirInUseError, match=str(os.getpid())):
        lock_state_dir(tmp_path / "state")
    first.close()
    lock_state_dir(tmp_path / "state").close()


@pytest.mark.parametrize("where", ["file", "file/below", "/proc/nowhere"])
def test_a_directory_that_cannot_be_made_is_told_by_its_option(tmp_path, where):
    """And what to give instead; an absolute one stays as it is."""
    (tmp_path / "file").write_text("")
    with pytest.raises(StateDirError, match=r"--state-dir .* cannot be used: .*; give a folder"):
        lock_state_dir(tmp_path / where)


def test_the_socket_lies_in_the_state_directory_or_in_a_short_private_one(tmp_path, monkeypatch):
    """A socket's path has a hard limit that a state directory's path may pass."""
    assert socket_path(tmp_path) == tmp_path.resolve() / "control.sock"
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    path = socket_path(tmp_path / ("x" * 120))
    assert len(os.fsencode(path)) <= max(SOCKET_PATH_MOST, len(os.fsencode(tmp_path)) + 40)
    assert path.parent.stat().st_mode & 0o777 == 0o700
