"""Rollouts in service: stored, then obeyed, then told; after a kill the same; and the admin API over it."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from sqlalchemy import Engine as Database

from gateway.control import rollouts_service
from gateway.control.access import Access
from gateway.control.api_rollouts import RolloutsApi
from gateway.control.rollouts_gauges import rollout_families
from gateway.control.rollouts_service import RolloutService
from gateway.control.webhooks import Message, Webhooks
from gateway.core.rollout import EventKind, State
from gateway.model.messages import LATCHED_FILE, Rollouts
from gateway.model.proving import Operator, Oversight, Samples
from gateway.store import rollouts
from gateway.store.engine import open_engine, url_of
from gateway.store.migrate import upgrade
from tests.unit.control.rollout_rig import START_S, EngineRig, World, rollout_policy

BUCKET = "m/short/chat"
OVERSIGHT = Oversight(None, 1e9, Samples(), (), (), 1.0, 1024)


class Served:
    """A service over a state directory, with simulated traffic; ``messages`` is what workers were sent."""

    def __init__(self, directory: Path, *, approvals: int = 0) -> None:
        self.directory = directory
        self.now_s = START_S
        self.database: Database | None = open_engine(url_of(None, directory))
        upgrade(self.database)
        extra = f"promote: {{approvals: {approvals}}}"
        self.rig = EngineRig(rollout_policy(extra=extra))
        self.messages: list[Rollouts] = []
        self.told: list[Message] = []
        self.service = self.start()

    def start(self) -> RolloutService:
        """A fresh control over the same directory."""
        webhooks = Webhooks(lambda: self.now_s)
        webhooks.tell = self.told.append  # type: ignore[method-assign]
        service = RolloutService(
            self.directory,
            database=lambda: self.database,
            broadcast=self.messages.append,  # type: ignore[arg-type]
            surroundings=World(),
            webhooks=webhooks,
            wall=lambda: self.now_s,
        )
        service.apply(self.rig.table, OVERSIGHT, {"int4": "r-a", "bf16": "r-b"})
        service.take_up()
        self.service = service
        self.rig.engine = service.engine
        return service

    async def seconds(self, count: int, **bad: float) -> None:
        """Traffic through the service's own engine and turns."""
        for _ in range(count):
            self.rig.now_s = self.now_s
            self.rig.turn = list  # type: ignore[method-assign]
            self.rig.second(**bad)  # type: ignore[arg-type]
            self.now_s += 1.0
            await self.service.turn()

    async def until(self, state: State, most: int = 400, **bad: float) -> None:
        """Seconds until the bucket is in that state."""
        for _ in range(most):
            if self.rig.at(state):
                return
            await self.seconds(1, **bad)
        raise AssertionError(f"never {state}: {self.rig.state()}")

    def share(self) -> int | None:
        """What workers were told last of the bucket."""
        return self.messages[-1].shares.get(self.rig.table.rollouts[0].identity, {}).get(BUCKET)


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
    served.database = database
    await served.seconds(3)
    assert served.rig.at(State.STEPPING)


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


async def test_metrics_tell_states_suspicion_and_budget(served: Served) -> None:
    """One family each, with what an alert needs."""
    await served.until(State.STEPPING)
    await served.seconds(30)
    families = {
        family.name: family for family in rollout_families(served.service.engine, served.service.keeper, served.now_s)
    }
    assert families["quantgate_rollout_state"].samples["int4-all", BUCKET, "int4", "stepping"] == (1.0,)
    assert families["quantgate_rollout_share"].samples["int4-all", BUCKET, "int4"] == (0.5,)
    assert -10.0 <= families["quantgate_suspicion"].samples["int4-all", BUCKET, "int4", "json"][0] < 0.0
    assert families["quantgate_rollout_lumps_granted"].samples[()][0] > 0.0
    assert families["quantgate_rollout_buckets"].samples["int4-all",] == (1.0,)
    assert set(families) >= {"quantgate_verdict", "quantgate_evidence_ratio", "quantgate_rollout_restored"}


class Api:
    """The admin API's client, with three people."""

    def __init__(self, client: TestClient[web.Request, web.Application]) -> None:
        self._client = client

    async def get(self, path: str) -> tuple[int, Any]:
        """Status and JSON."""
        answer = await self._client.get(path)
        return answer.status, await answer.json()

    async def act(self, command: str, who: str, **body: object) -> tuple[int, Any]:
        """A command as one of them."""
        headers = {"Authorization": f"Bearer {who}-token"} if who else {}
        sent = {"bucket": BUCKET, "reason": "because", **body}
        answer = await self._client.post(f"/api/v1/rollouts/int4-all/{command}", json=sent, headers=headers)
        return answer.status, await answer.json()


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[tuple[Served, Api]]:
    """A served rollout that asks for two approvals."""
    served = Served(tmp_path, approvals=2)
    access = Access()
    roles = (("ann", "approver"), ("bob", "approver"), ("eve", "operator"), ("vic", "viewer"))
    access.configure(Operator(name, hashlib.sha256(f"{name}-token".encode()).digest(), role) for name, role in roles)
    application = web.Application()
    application.router.add_routes(
        RolloutsApi(served.service, access, lambda: served.database, lambda: served.now_s).routes()
    )
    async with TestClient(TestServer(application)) as client:
        yield served, Api(client)
    assert served.database is not None
    served.database.dispose()


async def test_two_different_people_promote_and_one_operator_rolls_back(api: tuple[Served, Api]) -> None:
    """Roles and votes, through the API, with names on record."""
    served, client = api
    await served.until(State.STEPPING)
    await served.until(State.HOLDING)
    assert (await client.act("approve", "eve"))[0] == 403
    assert (await client.act("approve", ""))[0] == 401
    assert (await client.act("approve", "ann"))[0] == 200
    status, said = await client.act("approve", "ann")
    assert (status, said["buckets"][BUCKET].startswith("refused")) == (409, True)
    await served.seconds(2)
    assert served.rig.at(State.HOLDING)
    assert (await client.act("approve", "bob"))[0] == 200
    await served.seconds(2)
    assert (served.rig.state().state, served.rig.state().stage) == (State.STEPPING, 1)
    assert (await client.act("rollback", "vic"))[0] == 403
    assert (await client.act("rollback", "eve", reason="customers complain")) == (
        200,
        {"actor": "eve", "buckets": {BUCKET: "rolled_back"}},
    )
    _, found = await client.get(f"/api/v1/rollouts/int4-all/history?bucket={BUCKET}&limit=2")
    assert (found["events"][0]["event"], found["events"][0]["actor"]) == ("rollback", "eve")
    assert found["next"] is not None
    assert "approval_needed" in {message.event for message in served.told}


async def test_status_tells_what_is_missing_and_an_incident_names_its_requests(api: tuple[Served, Api]) -> None:
    """Reading needs no token."""
    served, client = api
    await served.until(State.STEPPING)
    await served.seconds(15)
    _, found = await client.get("/api/v1/rollouts?rollout=int4-all")
    (row,) = found["buckets"]
    assert (row["state"], row["share_bp"], row["approvals_needed"]) == ("stepping", 5000, 2)
    assert {series["series"] for series in row["series"]} >= {"errors", "json", "hard_errors"}
    assert "history" not in row["series"][0]
    assert (await client.get("/api/v1/rollouts?rollout=other"))[1]["buckets"] == []
    assert (await client.get(f"/api/v1/rollouts/int4-all/incident?bucket={BUCKET}"))[0] == 404
    await served.until(State.ROLLED_BACK, json=1.0)
    status, incident = await client.get(f"/api/v1/rollouts/int4-all/incident?bucket={BUCKET}")
    assert status == 200
    assert incident["requests"]
    assert incident["event"]["event"] == "fail"


@pytest.mark.parametrize(
    ("command", "body", "status"),
    [
        ("explode", {}, 404),
        ("hold", {"bucket": "nowhere"}, 404),
        ("hold", {"reason": "  "}, 400),
        ("hold", {"reason": "x" * 1001}, 400),
        ("hold", {"more": 1}, 400),
        ("resume", {}, 409),
        ("hold", {"bucket": "*"}, 200),
    ],
)
async def test_commands_are_checked_before_anything_happens(
    api: tuple[Served, Api], command: str, body: dict[str, object], status: int
) -> None:
    """Unknown words, buckets and fields; a reason is needed; a star means all buckets."""
    served, client = api
    await served.until(State.STEPPING)
    assert (await client.act(command, "ann", **body))[0] == status


async def test_without_a_database_the_record_says_so(api: tuple[Served, Api]) -> None:
    """503 with the place to look; wrong numbers are 400."""
    served, client = api
    database, served.database = served.database, None
    assert (await client.get("/api/v1/rollouts/int4-all/history"))[0] == 503
    served.database = database
    assert (await client.get("/api/v1/rollouts/int4-all/history?before=x"))[0] == 400
    assert (await client.get("/api/v1/rollouts/int4-all/incident"))[0] == 400
