"""What the policy files hold: by content, whatever the editor or orchestrator does to names and times."""

import os

import pytest

from gateway.control.watch import READ_MOST_BYTES, read_policy_files


def test_equal_content_is_equal_whatever_the_times(tmp_path):
    """Touching, rewriting and renaming the same bytes is no change."""
    file = tmp_path / "p.yaml"
    file.write_text("a: 1")
    before = read_policy_files(tmp_path)
    os.utime(file, (1, 1))
    assert read_policy_files(tmp_path).same_content(before)
    (tmp_path / "q").write_text("a: 1")
    (tmp_path / "q").rename(file)
    assert read_policy_files(tmp_path).same_content(before)


def test_equal_times_and_sizes_do_not_hide_a_change(tmp_path):
    """A swap of symlinks can bring other content with an older time and the same size."""
    file = tmp_path / "p.yaml"
    file.write_text("a: 1")
    os.utime(file, (1, 1))
    before = read_policy_files(tmp_path)
    file.write_text("a: 2")
    os.utime(file, (1, 1))
    assert not read_policy_files(tmp_path).same_content(before)


def test_a_new_file_is_a_change_and_an_editors_hidden_file_is_not(tmp_path):
    """Only files that belong to the set count."""
    (tmp_path / "p.yaml").write_text("a: 1")
    before = read_policy_files(tmp_path)
    (tmp_path / ".p.yaml.swp").write_text("x")
    (tmp_path / "notes.txt").write_text("x")
    assert read_policy_files(tmp_path).same_content(before)
    (tmp_path / "q.yaml").write_text("b: 1")
    assert not read_policy_files(tmp_path).same_content(before)


@pytest.mark.parametrize("make", [lambda path: None, lambda path: path.mkdir()])
def test_nothing_there_is_told_with_findings(tmp_path, make):
    """A missing file and an empty folder are no policy, and never an empty one."""
    path = tmp_path / "policy"
    make(path)
    reading = read_policy_files(path)
    assert reading.source is None
    assert reading.findings


def test_an_open_writer_is_noticed(tmp_path):
    """As long as somebody has a file open for writing it is busy, and not a moment longer."""
    file = tmp_path / "p.yaml"
    file.write_text("a: 1")
    assert not read_policy_files(file).busy
    with file.open("a"):
        assert read_policy_files(file).busy
    assert not read_policy_files(file).busy


def test_a_reader_does_not_make_it_busy(tmp_path):
    """Backups and log shippers read files all the time."""
    file = tmp_path / "p.yaml"
    file.write_text("a: 1")
    with file.open():
        assert not read_policy_files(file).busy


def test_files_that_the_policy_refers_to_count(tmp_path):
    """A rotated secret is a change of what is served although no policy file changed."""
    (tmp_path / "p.yaml").write_text("a: 1")
    secret = tmp_path / "key"
    before = read_policy_files(tmp_path, [secret])
    secret.write_text("one")
    first = read_policy_files(tmp_path, [secret])
    secret.write_text("two")
    assert not first.same_content(before)
    assert not read_policy_files(tmp_path, [secret]).same_content(first)


def test_a_large_file_is_compared_by_its_stat(tmp_path):
    """A vocabulary of megabytes is not read every second."""
    (tmp_path / "p.yaml").write_text("a: 1")
    large = tmp_path / "tokenizer.json"
    large.write_bytes(b"x" * (READ_MOST_BYTES + 1))
    before = read_policy_files(tmp_path, [large])
    assert read_policy_files(tmp_path, [large]).same_content(before)
    large.write_bytes(b"y" * (READ_MOST_BYTES + 2))
    assert not read_policy_files(tmp_path, [large]).same_content(before)


def test_a_secret_that_is_a_pipe_is_stamped_without_reading_it(tmp_path):
    """Waiting for its writer would end all reloading."""
    policy, pipe = tmp_path / "a.yaml", tmp_path / "pipe"
    policy.write_text("version: 1\n")
    os.mkfifo(pipe)
    assert read_policy_files(policy, [pipe]).extra
