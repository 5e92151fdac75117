"""The state directory: generations, slots and the snapshot survive what happens to processes and disks."""

import stat

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.control.durable import SNAPSHOT_FILE, Durable, SlotsExhaustedError, write_atomically
from gateway.model.messages import Prepare


def test_generations_go_on_where_a_killed_control_stopped(tmp_path):
    """A number is never given twice, over any number of restarts."""
    seen = []
    for _ in range(3):
        durable = Durable(tmp_path)
        generation, _ = durable.assign(["tenant:a"])
        durable.save_state()
        seen.append(generation)
    assert seen == [1, 2, 3]


def test_a_name_keeps_its_slot_over_reloads_and_restarts(tmp_path):
    """The shared usage board is read by slot, so a name may not move while it is remembered."""
    durable = Durable(tmp_path)
    _, first = durable.assign(["endpoint:a/0", "tenant:x"])
    _, second = durable.assign(["endpoint:b/0", "tenant:x"])
    durable.save_state()
    _, third = Durable(tmp_path).assign(["endpoint:a/0", "endpoint:b/0", "tenant:x", "tenant:y"])
    assert second["tenant:x"] == third["tenant:x"] == first["tenant:x"]
    assert third["endpoint:a/0"] == first["endpoint:a/0"]
    assert len(set(third.values())) == 4


def test_a_full_board_gives_away_the_longest_absent_names(tmp_path):
    """Names come and go for years; the board has a fixed number of rows."""
    durable = Durable(tmp_path, slots_most=3)
    durable.assign(["a"])
    durable.assign(["b"])
    _, slots = durable.assign(["c", "d"])
    assert set(slots) == {"c", "d"}
    _, again = durable.assign(["b", "c", "d"])
    assert again["c"] == slots["c"] and again["d"] == slots["d"]


def test_more_names_than_rows_are_refused_in_words(tmp_path):
    """A policy that cannot be counted is refused, not counted wrongly."""
    with pytest.raises(SlotsExhaustedError, match="at most 2"):
        Durable(tmp_path, slots_most=2).assign(["a", "b", "c"])


@given(st.lists(st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=4), max_size=12))
@settings(max_examples=60)
def test_no_two_names_ever_share_a_slot(tmp_path_factory, rounds):
    """At every moment the rows of the current names are distinct and within the board."""
    durable = Durable(tmp_path_factory.mktemp("state"), slots_most=5)
    for names in rounds:
        _, slots = durable.assign(names)
        assert sorted(slots) == sorted(names)
        assert len(set(slots.values())) == len(names)
        assert all(0 <= row < 5 for row in slots.values())


def test_the_snapshot_is_private_and_comes_back(tmp_path):
    """Workers start from it when control is away; nobody else reads it."""
    prepare = Prepare(7, b"document", {"tenant:a": 4})
    Durable(tmp_path).save_snapshot(prepare)
    assert stat.S_IMODE((tmp_path / SNAPSHOT_FILE).stat().st_mode) == 0o600
    assert Durable(tmp_path).snapshot == prepare


def test_a_snapshot_outlives_a_lost_state_file(tmp_path):
    """If only the snapshot is left, its generation and slots still bind."""
    Durable(tmp_path).save_snapshot(Prepare(7, b"d", {"tenant:a": 4}))
    durable = Durable(tmp_path)
    generation, slots = durable.assign(["tenant:b", "tenant:a"])
    assert generation == 8
    assert slots["tenant:a"] == 4
    assert slots["tenant:b"] != 4


@pytest.mark.parametrize("content", [b"", b"{", b'{"generation": "x"}', b"\xff\x00", b"[]"])
def test_broken_files_count_as_none(tmp_path, content):
    """A torn state file or snapshot does not keep control from starting."""
    (tmp_path / "publisher.json").write_bytes(content)
    (tmp_path / SNAPSHOT_FILE).write_bytes(content)
    durable = Durable(tmp_path)
    assert durable.generation == 0
    assert durable.snapshot is None


def test_an_atomic_write_that_fails_leaves_the_old_content(tmp_path):
    """Readers see the old or the new whole; nothing temporary stays behind."""
    target = tmp_path / "folder"
    target.mkdir()
    with pytest.raises(OSError, match="folder"):
        write_atomically(target, b"new")
    assert [entry.name for entry in tmp_path.iterdir()] == ["folder"]


def test_numbers_known_from_elsewhere_are_never_given(tmp_path):
    """A worker may serve a generation that this directory has forgotten."""
    durable = Durable(tmp_path)
    durable.raise_generation(41)
    assert durable.assign([])[0] == 42
    durable.raise_generation(3)
    assert durable.generation == 42
