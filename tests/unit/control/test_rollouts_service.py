"""Rollouts in service: stored, then obeyed, then told; after a kill the same."""

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
import structlog

from gateway.control import rollouts_service
from gateway.control.rollouts_keeping import METERS_FILE
from gateway.core.evidence import SeriesKey
from gateway.core.rollout import Event, EventKind, State
from gateway.model.messages import LATCHED_FILE, Rollouts, Start, Starts
from gateway.store import rollouts
from tests.unit.control.rollout_rig import rollout_policy
from tests.unit.control.rollout_served import BUCKET, OVERSIGHT, Served


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    """With a database."""
    made = Served(tmp_path)
    yield made
    if made.database is not None:
        made.database.dispose()


async def test_a_decision_is_on_disk_before_workers_hear_of_it(served: Served) -> None:
    """At the moment of the broadcast, file and database say the same."""
    seen: list[tuple[int, int]] = []

    def broadcast(message: Rollouts) -> None:
        served.messages.append(message)
        filed = msgspec.msgpack.decode((served.directory / LATCHED_FILE).read_bytes(), type=Rollouts)
        assert served.database is not None
        stored = {one.bucket: one.share_bp for one in rollouts.load(served.database)}
        assert filed == message
        if BUCKET in stored:
            seen.append((stored[BUCKET], served.share() or 0))

    served.service._broadcast = broadcast  # type: ignore[assignment]
    await served.until(State.STEPPING)
    await served.seconds(20)
    await served.until(State.ROLLED_BACK, json=1.0)
    assert seen[-1] == (-1, -1)
    assert all(stored == told for stored, told in seen)


async def test_killed_after_the_decision_everything_is_found_again(served: Served) -> None:
    """The next control tells every worker the same, also with the database or the files lost."""
    await served.until(State.STEPPING)
    await served.seconds(20)
    await served.until(State.ROLLED_BACK, json=1.0)
    for lost in ("nothing", "files"):
        if lost == "files":
            for path in served.directory.glob("rollout*"):
                path.unlink()
        served.start()
        await served.seconds(3)
        assert served.rig.at(State.ROLLED_BACK), lost
        assert served.share() == -1
    await served.service.stop()
    assert [message.event for message in served.told] == ["rollback"]


async def test_before_the_past_is_known_workers_keep_what_they_have(served: Served) -> None:
    """No files and no database: nothing begins, nothing is told; then the database comes."""
    served.messages.clear()
    database, served.database = served.database, None
    served.start()
    await served.seconds(5)
    assert served.messages == []
    assert served.rig.state() is None
    meters = served.directory / METERS_FILE
    meters.write_bytes(b"stored")
    await served.service.stop()
    assert meters.read_bytes() == b"stored", "an end before the past is known leaves it as it is"
    meters.unlink()
    served.database = database
    await served.seconds(3)
    assert served.rig.at(State.STEPPING)


async def test_without_any_rollout_nobody_is_woken(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """No thread, no database, no file: a gateway without rollouts does not pay for them every other second."""
    served.service.apply(dataclasses.replace(served.rig.table, rollouts=()), OVERSIGHT, {})
    await served.service.turn()
    assert served.service.engine.restored
    monkeypatch.setattr(asyncio, "to_thread", None)
    for _ in range(20):
        served.now_s += 1.0
        await served.service.turn()


async def test_a_rollback_does_not_wait_for_a_database_and_a_beginning_does(served: Served) -> None:
    """Out at once, owed; paid when it is back."""
    await served.until(State.STEPPING)
    await served.seconds(20)
    database, served.database = served.database, None
    await served.until(State.ROLLED_BACK, json=1.0)
    assert served.share() == -1
    assert served.service.keeper.owed == 1
    served.database = database
    await served.seconds(4)
    assert served.service.keeper.owed == 0
    assert database is not None
    assert rollouts.load(database)[0].state is State.ROLLED_BACK


async def test_a_command_after_a_reload_is_about_the_stages_in_force(served: Served) -> None:
    """Asked before the next turn: the bucket is placed first. Where that cannot be stored, nothing is raised."""
    await served.until(State.STEPPING)
    assert (served.rig.state().stage, served.share()) == (0, 5_000)
    served.rig.table = rollout_policy(stages="[{weight: 10%}, {weight: 50%}, {weight: 60%}, {weight: 100%}]")
    served.service.apply(served.rig.table, OVERSIGHT, {"int4": "r-a", "bf16": "r-b"})
    database, served.database = served.database, None
    answers = await served.service.command(EventKind.PROMOTE, "int4-all", BUCKET, "ann", "go on")
    assert "other stages" in answers[BUCKET]
    assert (await served.service.command(EventKind.HOLD, "int4-all", BUCKET, "ann", "wait"))[BUCKET] == "holding"
    assert served.share() == 5_000
    served.database = database
    served.now_s += 5.0
    await served.service.turn()
    answers = await served.service.command(EventKind.RESUME, "int4-all", BUCKET, "ann", "go on")
    assert (answers[BUCKET], served.rig.state().stage, served.share()) == ("stepping", 1, 5_000)


async def test_a_policy_that_lets_go_of_a_rollback_is_told(served: Served) -> None:
    """Without the rollout, or with its pools or buckets changed, nothing keeps the pool out: not in silence."""
    await served.until(State.STEPPING)
    await served.service.command(EventKind.ROLLBACK, "int4-all", BUCKET, "ann", "bad")
    with structlog.testing.capture_logs() as lines:
        served.service.apply(served.rig.table, OVERSIGHT, {"int4": "r-a", "bf16": "r-b"})
        assert lines == []
        bare = dataclasses.replace(served.rig.table, rollouts=())
        served.service.apply(bare, OVERSIGHT, {"int4": "r-a", "bf16": "r-b"})
    (line,) = lines
    assert (line["event"], line["log_level"]) == ("rollback_left_behind", "warning")
    assert (line["rollout"], line["pool"], line["buckets"], line["of"]) == ("int4-all", "int4", [BUCKET], 1)


async def test_what_another_replica_decided_is_obeyed(served: Served) -> None:
    """Its row is newer: this control tells its own workers."""
    await served.until(State.STEPPING)
    other = Served.__new__(Served)
    other.__dict__.update(served.__dict__)
    other.messages, other.told = [], []
    other.start()
    await other.service.command(EventKind.ROLLBACK, "int4-all", BUCKET, "ann", "bad answers")
    served.rig.engine = served.service.engine
    for _ in range(3):
        served.now_s += 1.0
        await served.service.turn()
    assert served.service.engine.standings[served.rig.table.rollouts[0].identity, BUCKET].state is State.ROLLED_BACK
    assert served.share() == -1


async def test_a_rollback_is_not_lost_to_a_change_that_came_before_it(served: Served) -> None:
    """It acted while the database was away; meanwhile another gateway stored a hold. Both stand in the record."""
    await served.until(State.STEPPING)
    await served.seconds(20)
    other = Served.__new__(Served)
    other.__dict__.update(served.__dict__)
    other.messages, other.told = [], []
    other.start()
    served.rig.engine = served.service.engine
    database, served.database = served.database, None
    await served.until(State.ROLLED_BACK, json=1.0)
    served.database = other.database = database
    await other.service.command(EventKind.HOLD, "int4-all", BUCKET, "ann", "wait a moment")
    assert database is not None
    assert rollouts.load(database)[0].state is State.HOLDING
    await served.seconds(4)
    assert rollouts.load(database)[0].state is State.ROLLED_BACK
    newest, before = rollouts.history(database)[:2]
    assert (newest.event, before.event) == ("fail", "hold")
    assert "another gateway's change came before" in newest.reason
    assert served.share() == -1


async def test_what_a_slices_trip_led_to_is_asked_for_again(served: Served) -> None:
    """It is answered once: another gateway's change that came before must not make it as if it never tripped."""
    await served.until(State.STEPPING)
    other = Served.__new__(Served)
    other.__dict__.update(served.__dict__)
    other.messages, other.told = [], []
    other.start()
    await other.service.command(EventKind.HOLD, "int4-all", BUCKET, "ann", "wait a moment")
    served.rig.engine = served.service.engine
    at = (served.rig.table.rollouts[0].identity, BUCKET)
    proposal = served.service.engine.propose(at, Event(EventKind.FAIL, served.now_s, "a slice tripped"))
    assert proposal is not None
    assert await served.service._carry_out([proposal]) == []
    await served.seconds(3)
    assert served.rig.at(State.ROLLED_BACK)
    assert served.database is not None
    newest, before = rollouts.history(served.database)[:2]
    assert (newest.event, newest.reason, before.event) == ("fail", "a slice tripped", "hold")


async def test_two_rollouts_of_one_bucket_hear_of_a_dispatch_once(served: Served) -> None:
    """Their baseline is one pool: its block must not wait for requests that do not exist."""
    await served.until(State.STEPPING)
    (run,) = served.service.engine.runs.values()
    served.service.engine.buckets._by_bucket[BUCKET].append(run)
    series = served.service.engine.judge.series(SeriesKey("errors", BUCKET, "bf16"))
    second = int(served.now_s)
    served.service.engine.take_starts(Starts(0, [Start(second, BUCKET, "bf16", 3)]))
    served.service.engine.take_outcomes([], served.now_s)
    assert series.timeline.pending[series.timeline.number_at(second)].announced == {0.0: 3}


async def test_a_turn_that_fails_does_not_end_the_service(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is logged, and the next turn comes."""
    second = asyncio.Event()
    calls: list[int] = []

    async def broken() -> None:
        calls.append(1)
        if len(calls) > 1:
            second.set()
        raise RuntimeError("broken")

    monkeypatch.setattr(rollouts_service, "TURN_S", 0.0)
    monkeypatch.setattr(served.service, "turn", broken)
    task = asyncio.create_task(served.service.run())
    async with asyncio.timeout(10):
        await second.wait()
    task.cancel()
