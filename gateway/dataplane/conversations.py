"""What a conversation must keep between its turns: its length class and the precision it was served on.

A hash table in a memory-mapped file that the workers of a host share, because the turns of one conversation arrive on
different workers. It holds 8-byte digests and small numbers, no text. It is a cache: an entry may be overwritten by
another conversation, and then the conversation is treated as new.

A session that a client names may be several conversations, one with each model: what one of them was served on says
nothing of another's pools. So the model is part of the key, here alone: arms, records and places go by the session.
"""

from hashlib import blake2b
from pathlib import Path
from struct import Struct
from typing import Final, NamedTuple

from gateway.dataplane.mapped import OnError, map_shared

SLOTS: Final = 1 << 16
PROBES: Final = 4
ENTRY: Final = 2  # int64 cells: key, packed value
KEEP_S: Final = 3600
FRESH_S: Final = 60  # an entry this young that says the same already is not written again
_KEY: Final = Struct("<q").unpack_from
_PROBED: Final = Struct(f"={PROBES * ENTRY}q").unpack_from


class Memory(NamedTuple):
    """``length``: index of the length class. ``rank``: precision rank of the pool that served the last turn."""

    length: int
    rank: int


class Conversations:
    """The shared table. A key is the digest that ``core.openai`` makes, by its first 8 bytes, and the model's
    canonical name; times are whole epoch seconds.
    """

    def __init__(self, path: Path, on_error: OnError | None = None) -> None:
        self._map = map_shared(path, SLOTS * ENTRY * 8, on_error)
        self._cells = memoryview(self._map).cast("q")
        self._salts: dict[str, int] = {}  # by model; the same in all workers, as ``hash`` would not be

    def close(self) -> None:
        """Release the mapping."""
        self._cells.release()
        self._map.close()

    def get(self, digest: bytes, model: str, wall_s: float) -> Memory | None:
        """What is known of a conversation, if it was seen within the last hour."""
        key = _key_of(digest) ^ self._salt_of(model)
        cells = self._probed(_first(key))
        for at in range(0, PROBES * ENTRY, ENTRY):
            if cells[at] == key:
                value = cells[at + 1]
                if (value >> 16) + KEEP_S < wall_s:
                    return None
                return Memory(value & 0xFF, (value >> 8) & 0xFF)
        return None

    def put(self, digest: bytes, model: str, length: int, rank: int, wall_s: float) -> None:
        """Remember a turn; takes the conversation's slot, a free one, or the oldest of its probes."""
        key = _key_of(digest) ^ self._salt_of(model)
        now = int(wall_s)
        served = ((rank & 0xFF) << 8) | (length & 0xFF)
        first = _first(key)
        cells = self._probed(first)
        best, oldest = -1, 1 << 62
        for at in range(0, PROBES * ENTRY, ENTRY):
            if cells[at] == key:
                value = cells[at + 1]
                if value & 0xFFFF == served and 0 <= now - (value >> 16) < FRESH_S:
                    return
                best = at
                break
            age = cells[at + 1] >> 16
            if age > now + FRESH_S:  # from before the clock was set back: it must not outlive those of now
                age = 0
            if age < oldest:
                best, oldest = at, age
        best += first * ENTRY
        self._cells[best + 1] = (now << 16) | served
        self._cells[best] = key

    def _salt_of(self, model: str) -> int:
        salt = self._salts.get(model)
        if salt is None:
            salt = self._salts[model] = _KEY(blake2b(model.encode(), digest_size=8).digest())[0]
        return salt

    def _probed(self, first: int) -> tuple[int, ...]:
        """The cells of all probes, read at once: a call for each costs more than the search."""
        return _PROBED(self._map, first * ENTRY * 8)


def _key_of(digest: bytes) -> int:
    if len(digest) < 8:
        return int.from_bytes(digest, "little")
    key: int = _KEY(digest)[0]
    return key


def _first(key: int) -> int:
    """The slot where the search for a key begins. The last few slots share one, so that no search runs over the end."""
    return min(key % SLOTS, SLOTS - PROBES)
