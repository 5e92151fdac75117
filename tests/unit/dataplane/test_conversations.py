"""The shared memory of conversations: found again from any worker, forgotten after an hour, bounded in size."""

import random
from pathlib import Path

from gateway.dataplane.conversations import FRESH_S, KEEP_S, SLOTS, Conversations, Memory


def test_a_turn_is_remembered_for_all_workers(tmp_path: Path) -> None:
    """What one process puts another gets, by digest."""
    one, two = Conversations(tmp_path / "c"), Conversations(tmp_path / "c")
    one.put(b"12345678", "m", 3, 16, 1000.0)
    assert two.get(b"12345678", "m", 1001.0) == Memory(3, 16)
    assert two.get(b"12345679", "m", 1001.0) is None
    one.close()
    two.close()


def test_models_of_one_session_are_remembered_apart(tmp_path: Path) -> None:
    """In every worker alike; another model's turn neither answers for this one nor takes its slot."""
    one, two = Conversations(tmp_path / "c"), Conversations(tmp_path / "c")
    one.put(b"12345678", "big", 3, 16, 1000.0)
    one.put(b"12345678", "small", 1, 4, 1001.0)
    assert [two.get(b"12345678", model, 1002.0) for model in ("small", "big", "other")] == [
        Memory(1, 4),
        Memory(3, 16),
        None,
    ]
    one.close()
    two.close()


def test_an_old_turn_is_forgotten(tmp_path: Path) -> None:
    """After the keep time a conversation is new again."""
    table = Conversations(tmp_path / "c")
    table.put(b"12345678", "m", 1, 4, 1000.0)
    assert table.get(b"12345678", "m", 1000.0 + KEEP_S) == Memory(1, 4)
    assert table.get(b"12345678", "m", 1001.0 + KEEP_S) is None
    table.close()


def test_turns_in_quick_succession_keep_a_conversation_alive(tmp_path: Path) -> None:
    """One that says the same a moment later need not be written; it is remembered for an hour less that moment."""
    table = Conversations(tmp_path / "c")
    turns = [1000.0 + 10.0 * turn for turn in range(20)]
    for wall_s in turns:
        table.put(b"12345678", "m", 1, 4, wall_s)
    assert table.get(b"12345678", "m", turns[-1] + KEEP_S - FRESH_S) == Memory(1, 4)
    assert table.get(b"12345678", "m", turns[-1] + KEEP_S + 1.0) is None
    table.close()


def test_a_turn_that_says_something_new_counts_at_once(tmp_path: Path) -> None:
    """Another length or another pool a moment later, and a clock that was set back."""
    table = Conversations(tmp_path / "c")
    for length, rank, wall_s in ((1, 4, 1000.0), (2, 4, 1001.0), (2, 16, 1002.0), (2, 16, 500.0)):
        table.put(b"12345678", "m", length, rank, wall_s)
        assert table.get(b"12345678", "m", wall_s) == Memory(length, rank)
    assert table.get(b"12345678", "m", 501.0 + KEEP_S) is None
    table.close()


def test_a_full_table_loses_old_entries_and_never_answers_wrong(tmp_path: Path) -> None:
    """Far more conversations than slots: recent ones are mostly found, and what is found is right."""
    table = Conversations(tmp_path / "c")
    rng = random.Random(7)
    digests = [rng.randbytes(8) for _ in range(2 * SLOTS)]
    for index, digest in enumerate(digests):
        table.put(digest, "m", index % 7, index % 32, 1000.0 + index / 100)
    wall = 1000.0 + len(digests) / 100
    recent = list(enumerate(digests))[-1000:]
    found = [(index, table.get(digest, "m", wall)) for index, digest in recent]
    assert all(memory in (None, Memory(index % 7, index % 32)) for index, memory in found)
    assert sum(memory is not None for _, memory in found) > 900
    table.close()


def test_turns_of_a_clock_that_was_ahead_do_not_push_out_those_of_now(tmp_path: Path) -> None:
    """They looked like the newest of all, so that conversations took each other's last slot until time caught up."""
    table = Conversations(tmp_path / "c")
    alike = [b"12" + bytes([number] * 6) for number in range(8)]  # of one slot
    for digest in alike[:4]:
        table.put(digest, "m", 1, 4, 8_000.0)
    for digest in alike[4:]:
        table.put(digest, "m", 2, 4, 1_000.0)
    assert [table.get(digest, "m", 1_001.0) for digest in alike[4:]] == [Memory(2, 4)] * 4
    table.close()
