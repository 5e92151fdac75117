"""Rollouts stored: the database's rows and record, and three files that a restart finds without it.

Order of a change: the row with its record by compare and set, then the file that workers start from, then anybody is
told. The database may be away: what takes a pool OUT is then kept in the files alone, acts, and is owed to the
database; what lets a pool IN waits. Blocks: its methods run in threads, and changes go one after the other.
"""

import re
import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from threading import Lock
from typing import TypeVar

import msgspec
import structlog
from sqlalchemy import Engine as Database
from sqlalchemy.exc import SQLAlchemyError

from gateway.control.durable import write_atomically
from gateway.control.rollouts_values import EngineState, Key
from gateway.core.rollout import Audit, EventKind, Standing, State
from gateway.model.messages import LATCHED_FILE, Rollouts
from gateway.store import rollouts
from gateway.store.rollouts import Change

STANDINGS_FILE = "rollout-standings.msgpack"
METERS_FILE = "rollout-meters.msgpack"
NAME_FILE = "gateway-name"

T = TypeVar("T")

_log = structlog.get_logger("control.rollouts_keeping")


class Kept(StrEnum):
    """How storing a change went."""

    STORED = "stored"
    OVERTAKEN = "overtaken"  # another replica was first: take up what it stored
    OWED = "owed"  # in the files only, so far
    REFUSED = "refused"  # the database is away and the change lets a pool in: later

    @property
    def acts(self) -> bool:
        """Whether the change is on disk, and may be obeyed."""
        return self in (Kept.STORED, Kept.OWED)


class Keeper:
    """Stores changes. ``database`` gives the engine, or None while there is none."""

    def __init__(self, state_dir: Path, database: Callable[[], Database | None]) -> None:
        self.failures = 0
        self._directory = state_dir
        self._database = database
        self._owed: list[Change] = []
        self._version = 0
        self._compared = False
        self._turn = Lock()

    @property
    def owed(self) -> int:
        """Changes that the database has not got yet."""
        return len(self._owed)

    def name(self) -> str:
        """What this gateway is called among others on the same database; the same one as long as its files live."""
        path = self._directory / NAME_FILE
        try:
            found = path.read_text()
        except (OSError, UnicodeDecodeError):
            found = ""
        if not re.fullmatch(r"[0-9a-f]{16}", found):
            found = secrets.token_hex(8)
            self._write_bytes(NAME_FILE, found.encode())
        return found

    # reading

    def read(self) -> tuple[list[Standing] | None, EngineState | None]:
        """What the files hold: standings (None = no file) and meters."""
        latched = self._decoded(LATCHED_FILE, Rollouts)
        self._version = latched.version if latched is not None else 0
        return self._decoded(STANDINGS_FILE, list[Standing]), self._decoded(METERS_FILE, EngineState)

    def newer(self, known: Mapping[Key, int]) -> list[Standing]:
        """Standings of the database over the known versions. Raises SQLAlchemy's errors; empty without a database."""
        database = self._database()
        if database is None:
            return []
        if all(known.get(key, 0) >= version for key, version in rollouts.versions(database).items()):
            return []
        loaded = rollouts.load(database)
        return [one for one in loaded if one.version > known.get((one.identity, one.bucket), 0)]

    @property
    def available(self) -> bool:
        """Whether there is a database to write to."""
        return self._database() is not None

    # writing

    def commit(self, change: Change, *, tightens: bool) -> Kept:
        """Store one change. ``tightens``: it takes a pool out or keeps it where it is."""
        with self._turn:
            return self._commit(change, tightens=tightens)

    def _commit(self, change: Change, *, tightens: bool) -> Kept:
        key = (change.standing.identity, change.standing.bucket)
        behind = any((owed.standing.identity, owed.standing.bucket) == key for owed in self._owed)
        if not behind:
            stored = self._store(change)
            if stored is not None:
                return Kept.STORED if stored else Kept.OVERTAKEN
        if not tightens:
            return Kept.REFUSED
        self._owed.append(change)
        return Kept.OWED

    def owe(self, change: Change) -> None:
        """Leave a change that takes a pool out to be stored later; for when the database does not answer."""
        self._owed.append(change)

    def settle(self, standings: Collection[Standing]) -> list[Change]:
        """Store what is owed, also from before a restart; returns the changes that another replica's came before.

        Raises SQLAlchemy's errors.
        """
        with self._turn:
            overtaken = self._pay()
            database = self._database()
            if database is None or self._owed:
                return overtaken
            stored = rollouts.versions(database)
            for standing in standings:
                behind = stored.get((standing.identity, standing.bucket), 0)
                if behind < standing.version:
                    self._store(_late_change(standing, behind))
            if not self._compared:
                self._compared = True
                overtaken += _other_words(standings, rollouts.load(database))
            return overtaken

    def _pay(self) -> list[Change]:
        overtaken = []
        while self._owed:
            change = self._owed[0]
            stored = self._store(change)
            if stored is None:
                break
            self._owed.pop(0)
            if not stored:
                overtaken.append(change)
        return overtaken

    def save(self, shares: Mapping[str, Mapping[str, int]], standings: Iterable[Standing]) -> Rollouts:
        """Put the shares where workers start from and the standings where control does; the message to send."""
        self._version += 1
        message = Rollouts(self._version, {identity: dict(buckets) for identity, buckets in shares.items()})
        self._write(STANDINGS_FILE, list(standings))
        self._write(LATCHED_FILE, message)
        return message

    def save_meters(self, state: EngineState) -> None:
        """Meters and evidence; losing the last few seconds of them costs only those seconds' evidence."""
        self._write(METERS_FILE, state)

    def _store(self, change: Change) -> bool | None:
        database = self._database()
        if database is None:
            return None
        try:
            return rollouts.commit(database, change)
        except (SQLAlchemyError, OSError) as error:
            self.failures += 1
            _log.error("rollout_not_stored", bucket=change.standing.bucket, error=type(error).__name__)
            return None

    def _write(self, name: str, value: object) -> None:
        self._write_bytes(name, msgspec.msgpack.encode(value))

    def _write_bytes(self, name: str, data: bytes) -> None:
        try:
            write_atomically(self._directory / name, data)
        except OSError as error:
            self.failures += 1
            _log.error("rollout_file_not_written", file=name, error=str(error))

    def _decoded(self, name: str, kind: type[T]) -> T | None:
        try:
            return msgspec.msgpack.decode((self._directory / name).read_bytes(), type=kind)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError) as error:
            _log.error("rollout_file_unusable", file=name, error=str(error))
            return None


def _other_words(mine: Iterable[Standing], stored: Iterable[Standing]) -> Iterator[Change]:
    """What was owed when this process's predecessor ended, and has the version that another's change now has."""
    known = {(one.identity, one.bucket): one for one in stored}
    for standing in mine:
        other = known.get((standing.identity, standing.bucket))
        if standing.state is State.ROLLED_BACK and other not in (None, standing) and other.version == standing.version:
            yield _late_change(standing, other.version)


def _late_change(standing: Standing, behind: int) -> Change:
    """A standing that was decided while the database was away, and whose own record a restart has lost."""
    kind = EventKind.FAIL if standing.state is State.ROLLED_BACK else EventKind.RELOADED
    audit = Audit(
        standing.identity,
        standing.bucket,
        standing.version,
        standing.since_s,
        kind,
        standing.below,
        standing.state,
        standing.stage,
        standing.share_bp,
        f"stored late, the database was away: {standing.reason}",
        standing.actor,
    )
    return Change(standing, behind, audit, "", "{}")
