"""The state directory: what control must find again after ``kill -9`` or a reboot.

Owns three things: the generation counter (numbers never repeat), the slot of every tenant and endpoint on the shared
usage board (stable while its name exists), and ``snapshot.msgpack``, the ``Prepare`` message of the applied
generation, from which workers start when control is away. Every write is atomic: a new file, flushed, renamed.
Only ``control.publisher`` writes here.
"""

import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

from gateway.model.messages import Prepare

# Rows of the shared usage board that names can take before the longest absent ones are given away.
SLOTS_MOST = 4096

_STATE_FILE = "publisher.json"
SNAPSHOT_FILE = "snapshot.msgpack"


class Slot(msgspec.Struct):
    """A row of the usage board and the last generation whose table had its name."""

    row: int
    seen: int


class _State(msgspec.Struct):
    generation: int = 0
    slots: dict[str, Slot] = {}


class SlotsExhaustedError(Exception):
    """One policy names more tenants and endpoints than the usage board has rows."""


class Durable:
    """The state directory, opened. Creates it (mode 0700) if needed; a broken state file counts as none."""

    def __init__(self, directory: Path, slots_most: int = SLOTS_MOST) -> None:
        self.directory = directory
        self._slots_most = slots_most
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._state = _read_state(directory / _STATE_FILE)
        self.snapshot = _read_snapshot(directory / SNAPSHOT_FILE)
        if self.snapshot is not None:
            self._adopt(self.snapshot)

    @property
    def generation(self) -> int:
        """The highest number given to any generation so far, applied or not."""
        return self._state.generation

    def raise_generation(self, at_least: int) -> None:
        """Never give a number up to ``at_least`` again: some worker serves it although this directory forgot it."""
        self._state.generation = max(self._state.generation, at_least)

    def assign(self, names: Iterable[str]) -> tuple[int, dict[str, int]]:
        """The next generation number and the row of every name; ``save_state`` keeps them.

        A name keeps its row while it is remembered. When the board is full, the rows of the names that have been
        absent for longest are given to new ones. Raises ``SlotsExhaustedError`` if ``names`` alone do not fit.
        """
        wanted = sorted(set(names))
        if len(wanted) > self._slots_most:
            raise SlotsExhaustedError(
                f"the policy has {len(wanted)} tenants and endpoints; at most {self._slots_most} are possible"
            )
        self._state.generation += 1
        generation = self._state.generation
        slots = self._state.slots
        missing = [name for name in wanted if name not in slots]
        self._make_room(len(missing), set(wanted))
        taken = {slot.row for slot in slots.values()}
        free = (row for row in range(self._slots_most) if row not in taken)
        for name in missing:
            slots[name] = Slot(row=next(free), seen=generation)
        for name in wanted:
            slots[name].seen = generation
        return generation, {name: slots[name].row for name in wanted}

    def save_state(self) -> None:
        """Put the generation counter and the slots on disk. Raises ``OSError``."""
        write_atomically(self.directory / _STATE_FILE, msgspec.json.encode(self._state))

    def save_snapshot(self, prepare: Prepare) -> None:
        """Make ``prepare`` what workers and the next control start from. Raises ``OSError``."""
        self.snapshot = prepare
        write_atomically(self.directory / SNAPSHOT_FILE, msgspec.msgpack.encode(prepare))

    def _make_room(self, needed: int, keep: set[str]) -> None:
        slots = self._state.slots
        surplus = len(slots) + needed - self._slots_most
        if surplus <= 0:
            return
        absent = sorted((slot.seen, name) for name, slot in slots.items() if name not in keep)
        for _, name in absent[:surplus]:
            del slots[name]

    def _adopt(self, snapshot: Prepare) -> None:
        """The snapshot wins over a state file that was lost or is older."""
        self.raise_generation(snapshot.generation)
        rows = set(snapshot.slots.values())
        slots = {name: slot for name, slot in self._state.slots.items() if slot.row not in rows}
        for name, row in snapshot.slots.items():
            slots[name] = Slot(row=row, seen=snapshot.generation)
        self._state.slots = slots


def write_atomically(path: Path, content: bytes) -> None:
    """Replace ``path`` by ``content`` with mode 0600: readers see the old or the new whole, also after a crash."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _read_state(path: Path) -> _State:
    try:
        return msgspec.json.decode(path.read_bytes(), type=_State)
    except (OSError, msgspec.MsgspecError):
        return _State()


def _read_snapshot(path: Path) -> Prepare | None:
    try:
        return msgspec.msgpack.decode(path.read_bytes(), type=Prepare)
    except (OSError, msgspec.MsgspecError):
        return None
