"""Decisions on disk: by compare and set, in the files that restarts begin from, and owed while the database is away."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from sqlalchemy import Engine as Database

from gateway.control.rollouts_keeping import METERS_FILE, STANDINGS_FILE, Keeper, Kept
from gateway.control.rollouts_values import EngineState
from gateway.core.evidence import Budget, Judge
from gateway.core.rollout import Audit, Event, EventKind, Persist, Standing, State, begin_standing, step
from gateway.model.messages import LATCHED_FILE, Rollouts
from gateway.model.proving import Rollout, Stage
from gateway.store import rollouts
from gateway.store.engine import open_engine, url_of
from gateway.store.migrate import upgrade
from gateway.store.rollouts import Change

PLAN = Rollout("r", "id", "m", "int4", "bf16", lambda profile: True, "", (Stage("weight", 500, 0, 0, 0, 9),), ())
NEW = begin_standing(PLAN, "b", "rec", 1.0)


class Disk:
    """A state directory whose database can go away."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.database: Database = open_engine(url_of(None, directory))
        upgrade(self.database)
        self.there = True
        self.keeper = self.fresh()

    def fresh(self) -> Keeper:
        """As after a restart."""
        return Keeper(self.directory, lambda: self.database if self.there else None)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """With a migrated database."""
    made = Disk(tmp_path)
    yield made
    made.database.dispose()


def change(standing: Standing, kind: EventKind) -> Change:
    actor = "ann" if kind is EventKind.HOLD else "quantgate"
    stepped = step(standing, Event(kind, 5.0, "because", actor), PLAN)
    persist, audit = stepped.effects[:2]
    assert isinstance(persist, Persist)
    assert isinstance(audit, Audit)
    return Change(persist.standing, persist.expected, audit, "digest", "{}")


def test_what_is_stored_is_found_by_the_next_control(disk: Disk) -> None:
    """Standings, shares for workers, meters; versions of the message grow over restarts."""
    begun = change(NEW, EventKind.BEGIN)
    assert disk.keeper.commit(begun, tightens=False) is Kept.STORED
    disk.keeper.read()
    sent = disk.keeper.save({"id": {"b": 500}}, [begun.standing])
    disk.keeper.save_meters(EngineState(Judge(Budget()).state()))
    again = disk.fresh()
    standings, state = again.read()
    assert standings == [begun.standing]
    assert state == EngineState(Judge(Budget()).state())
    assert msgspec.msgpack.decode((disk.directory / LATCHED_FILE).read_bytes(), type=Rollouts) == sent
    assert again.save({}, []).version > sent.version
    assert again.newer({}) == [begun.standing]
    assert again.newer({("id", "b"): 1}) == []


def test_another_replicas_change_is_not_overwritten(disk: Disk) -> None:
    """The second writer hears that it was overtaken."""
    assert disk.keeper.commit(change(NEW, EventKind.BEGIN), tightens=False) is Kept.STORED
    assert disk.fresh().commit(change(NEW, EventKind.HOLD), tightens=True) is Kept.OVERTAKEN


def test_without_a_database_a_pool_may_go_out_but_not_in(disk: Disk) -> None:
    """The rollback acts and is owed; a beginning waits; what is owed is paid in order."""
    begun = change(NEW, EventKind.BEGIN)
    assert disk.keeper.commit(begun, tightens=False) is Kept.STORED
    disk.there = False
    failed = change(begun.standing, EventKind.FAIL)
    assert disk.keeper.commit(failed, tightens=True) is Kept.OWED
    assert disk.keeper.commit(begun, tightens=False) is Kept.REFUSED
    assert (disk.keeper.owed, disk.keeper.available) == (1, False)
    assert disk.keeper.settle([failed.standing]) == []
    disk.there = True
    assert disk.keeper.settle([failed.standing]) == []
    assert disk.keeper.owed == 0
    assert rollouts.load(disk.database) == [failed.standing]


def test_what_was_owed_before_a_restart_is_stored_late_and_says_so(disk: Disk) -> None:
    """The files know it; the record gets a line of its own."""
    begun = change(NEW, EventKind.BEGIN)
    disk.keeper.commit(begun, tightens=False)
    disk.there = False
    failed = change(begun.standing, EventKind.FAIL)
    disk.keeper.commit(failed, tightens=True)
    disk.keeper.save({}, [failed.standing])
    disk.there = True
    again = disk.fresh()
    standings, _ = again.read()
    assert standings is not None
    again.settle(standings)
    assert rollouts.load(disk.database)[0].state is State.ROLLED_BACK
    assert "stored late" in rollouts.history(disk.database)[0].reason


def test_a_change_that_another_replica_overtook_while_owed_is_told(disk: Disk) -> None:
    """Then the database's word is taken up again."""
    begun = change(NEW, EventKind.BEGIN)
    disk.keeper.commit(begun, tightens=False)
    disk.there = False
    disk.keeper.commit(change(begun.standing, EventKind.FAIL), tightens=True)
    disk.there = True
    assert disk.fresh().commit(change(begun.standing, EventKind.HOLD), tightens=True) is Kept.STORED
    (lost,) = disk.keeper.settle([])
    assert (lost.standing.bucket, lost.audit.event) == ("b", EventKind.FAIL)


def test_what_was_owed_before_a_restart_and_overtaken_is_told_too(disk: Disk) -> None:
    """The same version in the database, but another's change: found once, at the first look."""
    begun = change(NEW, EventKind.BEGIN)
    disk.keeper.commit(begun, tightens=False)
    disk.there = False
    failed = change(begun.standing, EventKind.FAIL)
    disk.keeper.commit(failed, tightens=True)
    disk.there = True
    held = change(begun.standing, EventKind.HOLD)
    assert disk.fresh().commit(held, tightens=True) is Kept.STORED
    again = disk.fresh()
    (lost,) = again.settle([failed.standing])
    assert (lost.standing, lost.audit.event) == (failed.standing, EventKind.FAIL)
    assert again.settle([failed.standing]) == []
    assert disk.fresh().settle([held.standing]) == []


def test_what_cannot_wait_for_the_database_is_owed(disk: Disk) -> None:
    """And paid like the rest."""
    begun = change(NEW, EventKind.BEGIN)
    disk.keeper.commit(begun, tightens=False)
    failed = change(begun.standing, EventKind.FAIL)
    disk.keeper.owe(failed)
    assert disk.keeper.owed == 1
    assert disk.keeper.settle([failed.standing]) == []
    assert rollouts.load(disk.database) == [failed.standing]


@pytest.mark.parametrize("name", [LATCHED_FILE, STANDINGS_FILE, METERS_FILE])
def test_a_broken_file_counts_as_none(disk: Disk, name: str) -> None:
    """The database is asked then."""
    (disk.directory / name).write_bytes(b"\xff\xff")
    standings, state = disk.keeper.read()
    assert standings is None or standings == []
    assert state is None


def test_a_full_disk_is_counted_and_stops_nothing(tmp_path: Path) -> None:
    """Workers are told all the same."""
    keeper = Keeper(tmp_path / "missing", lambda: None)
    message = keeper.save({"id": {"b": -1}}, [])
    assert message.shares == {"id": {"b": -1}}
    assert keeper.failures == 2
