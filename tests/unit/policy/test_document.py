"""Files are read whole and at one moment (cases B88, B89, B91)."""

import os
from pathlib import Path

import pytest

from gateway.errors import PolicyRejectedError
from gateway.policy import document
from gateway.policy.document import snapshot


def message(path: Path) -> str:
    with pytest.raises(PolicyRejectedError) as caught:
        snapshot(path)
    return caught.value.findings[0].message


def test_a_folder_is_its_yaml_files_by_name(tmp_path: Path) -> None:
    """Tests, hidden files, editors' files and folders do not take part; the case of an ending does not count."""
    for name in ("20-b.yaml", "10-a.yml", "x.test.yaml", ".20-b.yaml.swp", ".hidden.yaml", "#a.yaml", "note.txt"):
        (tmp_path / name).write_text("version: 1\n")
    (tmp_path / "30-c.YAML").write_text("version: 1\n")
    (tmp_path / "folder").mkdir()
    found = snapshot(tmp_path)
    assert [Path(file.name).name for file in found.files] == ["10-a.yml", "20-b.yaml", "30-c.YAML"]
    assert found.folder


def test_what_has_a_policys_name_is_never_left_out(tmp_path: Path) -> None:
    """A folder where a mounted file was missing, or a pipe, which nobody can read without waiting: an error at once."""
    (tmp_path / "a.yaml").write_text("version: 1\n")
    (tmp_path / "b.yaml").mkdir()
    assert message(tmp_path) == "cannot be read: a folder stands where a file is expected"
    (tmp_path / "b.yaml").rmdir()
    os.mkfifo(tmp_path / "b.yaml")
    assert message(tmp_path) == "cannot be read: a pipe or device, and no file"


def test_one_file_is_a_set_of_its_own(tmp_path: Path) -> None:
    """A file may be named whatever it is called."""
    (tmp_path / "p.test.yaml").write_text("x")
    found = snapshot(tmp_path / "p.test.yaml")
    assert (found.folder, found.files[0].content) == (False, b"x")


def test_the_fingerprint_follows_every_byte_and_name(tmp_path: Path) -> None:
    """Control can tell by it alone whether to read again."""
    file = tmp_path / "a.yaml"
    seen = set()
    for text in ("a: 1\n", "a: 1 \n", ""):
        file.write_text(text)
        seen.add(snapshot(tmp_path).fingerprint)
    file.rename(tmp_path / "b.yaml")
    seen.add(snapshot(tmp_path).fingerprint)
    assert len(seen) == 4
    assert snapshot(tmp_path).fingerprint == snapshot(tmp_path).fingerprint


def test_b88_a_configmap_swap_is_followed(tmp_path: Path) -> None:
    """The file is a link into ..data, which is a link that is replaced."""
    for version in ("1", "2"):
        (tmp_path / f"..{version}").mkdir()
        (tmp_path / f"..{version}" / "policy.yaml").write_text(f"v: {version}\n")
    (tmp_path / "..data").symlink_to("..1")
    (tmp_path / "policy.yaml").symlink_to("..data/policy.yaml")
    first = snapshot(tmp_path)
    (tmp_path / "..data_tmp").symlink_to("..2")
    (tmp_path / "..data_tmp").rename(tmp_path / "..data")
    second = snapshot(tmp_path)
    assert [file.content for file in (*first.files, *second.files)] == [b"v: 1\n", b"v: 2\n"]
    assert first.fingerprint != second.fingerprint


def test_b91_what_is_not_there_is_an_error(tmp_path: Path) -> None:
    """A missing file, a dangling link, an empty folder: never an empty policy."""
    assert "does not exist" in message(tmp_path / "none.yaml")
    assert "holds no policy" in message(tmp_path)
    (tmp_path / "a.yaml").symlink_to("gone.yaml")
    assert "vanished" in message(tmp_path)


def test_a_file_that_vanishes_while_the_set_is_read_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a set is never taken for a whole one."""
    (tmp_path / "a.yaml").write_text("a")
    (tmp_path / "b.yaml").write_text("b")
    listed = document._members(tmp_path)
    (tmp_path / "b.yaml").unlink()
    monkeypatch.setattr(document, "_members", lambda folder: listed)
    assert "vanished" in message(tmp_path)


def test_files_that_will_not_stand_still_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two readings must agree; a writer in between is waited for, but not for ever."""
    contents = iter(range(100))
    monkeypatch.setattr(document, "_content", lambda name: str(next(contents)).encode())
    (tmp_path / "a.yaml").write_text("a")
    assert "change while they are being read" in message(tmp_path)


def test_a_change_between_two_files_does_not_give_a_mixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A swap in the middle of a reading shows up as a difference to the next reading."""
    (tmp_path / "a.yaml").write_text("old")
    (tmp_path / "b.yaml").write_text("old")
    real, reads = document._content, iter(range(100))

    def swapping(name: Path) -> bytes:
        if next(reads) == 1:  # between a and b of the first reading
            (tmp_path / "a.yaml").write_text("new")
            (tmp_path / "b.yaml").write_text("new")
        return real(name)

    monkeypatch.setattr(document, "_content", swapping)
    assert {file.content for file in snapshot(tmp_path).files} == {b"new"}


def test_size_and_number_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong folder or a huge file costs an error, not the memory."""
    monkeypatch.setattr(document, "FILE_BYTES_MOST", 10)
    monkeypatch.setattr(document, "SET_BYTES_MOST", 15)
    monkeypatch.setattr(document, "FILES_MOST", 2)
    (tmp_path / "a.yaml").write_text("x" * 11)
    assert "larger than" in message(tmp_path)
    (tmp_path / "a.yaml").write_text("x" * 8)
    (tmp_path / "b.yaml").write_text("x" * 8)
    assert "the set is larger" in message(tmp_path)
    (tmp_path / "c.yaml").write_text("")
    assert "more than 2 files" in message(tmp_path)


def test_an_unreadable_file_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The operating system's reason is passed on."""

    def refuse(name: Path) -> bytes:
        raise PermissionError(13, os.strerror(13), str(name))

    (tmp_path / "a.yaml").write_text("x")
    monkeypatch.setattr(document, "_content", refuse)
    assert "Permission denied" in message(tmp_path)
