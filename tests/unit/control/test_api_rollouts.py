"""The admin API over rollouts: roles, votes, records, incidents."""

import hashlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from sqlalchemy import Engine as Database

from gateway.control.access import Access
from gateway.control.api_rollouts import RolloutsApi
from gateway.control.incident import Places
from gateway.core.rollout import State
from gateway.model.proving import Operator
from tests.unit.control.rollout_served import BUCKET, Served


class Kept:
    """The archive, as much of it as reading asks for."""

    error = "the disk is full"

    def __init__(self, served: Served) -> None:
        self._served = served

    @property
    def engine(self) -> Database | None:
        """The served rollout's database."""
        return self._served.database


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
        RolloutsApi(
            served.service,
            access,
            Kept(served),  # type: ignore[arg-type]
            lambda: served.now_s,
            lambda: Places(Path("/etc/policy"), tmp_path),
        ).routes()
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
    """And none can be replayed whose text was not kept."""
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
    assert (incident["replayable"], incident["replay"]) == ([], "")


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
    status, body = await client.get("/api/v1/rollouts/int4-all/history")
    assert (status, body["error"]["code"]) == (503, "no_database")
    assert "the disk is full" in body["error"]["message"]
    served.database = database
    status, body = await client.get("/api/v1/rollouts/int4-all/history?before=x")
    assert (status, body["error"]["code"], body["error"]["param"]) == (400, "invalid_value", "before")
    assert (await client.get("/api/v1/rollouts/int4-all/incident"))[0] == 400
    for asked in (
        "?name=int4-all",
        "?history=perhaps",
        "/int4-all/history?since=1h",
        "/int4-all/history?limit=0",
        "/int4-all/history?limit=501",
        "/int4-all/incident?bucket=b&at=1",
    ):
        assert (await client.get(f"/api/v1/rollouts{asked}"))[0] == 400, asked
