"""Reading what people named as a file never waits for anybody."""

import os
from pathlib import Path

import pytest

from gateway.policy.plain_file import read_plain_file


def test_a_file_is_read_up_to_a_bound_also_through_a_link(tmp_path: Path) -> None:
    """Links are files to people, and to ConfigMaps."""
    (tmp_path / "a").write_bytes(b"12345")
    (tmp_path / "b").symlink_to("a")
    assert (read_plain_file(tmp_path / "a", 99), read_plain_file(tmp_path / "b", 2)) == (b"12345", b"12")


def test_a_pipe_a_device_and_a_folder_are_errors_that_name_the_path(tmp_path: Path) -> None:
    """Opening a pipe that nobody writes to would wait for ever, and with it the reload of the policy."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "pipe", tmp_path / "link", tmp_path / "folder", Path("/dev/null"), tmp_path / "gone"):
        with pytest.raises(OSError) as caught:
            read_plain_file(path, 10)
        assert caught.value.filename == str(path)
