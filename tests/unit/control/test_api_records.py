"""The admin API over records, on a real socket and a real database."""

import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from gateway.control.api_records import RecordsApi
from gateway.control.endpoints import EndpointView
from gateway.control.evidence import Evidence
from gateway.core.quality import Check
from gateway.core.report import Report
from gateway.model.messages import Feedback
from gateway.model.proving import Oversight, Samples
from gateway.model.table import Table
from gateway.runtimes.attestation import Attestation, reported
from gateway.store.samples import KEY_HEADER, Sample, SampleRow, Sealer
from tests.unit.control.conftest import compiled, load_text, outcome, policy_text
from tests.unit.control.exchanges import SECRET, batch, scored, until

NOW = 1_700_000_100.0
KEY = "0123456789abcdef0123"
Client = TestClient[web.Request, web.Application]


class World:
    """The API's parts. ``table`` None: no policy yet."""

    def __init__(self, folder: Path) -> None:
        self.evidence = Evidence(folder, processes=0, monotonic=time.monotonic, wall=lambda: NOW, rand=lambda: 0.0)
        self.table: Table | None = compiled(load_text(policy_text({"bf16": 1, "int4": 1})).document, 1, {})
        attested = Attestation("vllm", weights=reported("bf16", "config"), version="0.25.1")
        self.view = EndpointView("bf16", "bf16/0", "http://h:1", "vllm", enforce=True, attestation=attested)
        self.api = RecordsApi(self.evidence, lambda: NOW, self.in_force, lambda: [self.view])

    def in_force(self) -> tuple[Table, Samples] | None:
        return None if self.table is None else (self.table, Samples())

    async def start(self) -> None:
        assert self.table is not None
        self.evidence.apply(self.table, Oversight(None, 1e9, Samples(), (), (), 1.0, 10))
        self.evidence.start()
        await until(lambda: self.evidence.archive.engine is not None)

    async def put(self, *ids: str, failed: bool = False, **fields: Any) -> None:
        written = self.evidence.archive.written
        before = written.row(("requests",))[0]
        checks = (Check.SCHEMA,) if failed else ()
        self.evidence.archive.take_scored([scored(name, *checks, **fields) for name in ids])
        await until(lambda: written.row(("requests",))[0] == before + len(ids))


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    made = World(tmp_path)
    await made.start()
    yield made
    await made.evidence.stop()


@pytest.fixture
async def client(world: World) -> AsyncIterator[Client]:
    application = web.Application()
    application.router.add_routes(world.api.routes())
    async with TestClient(TestServer(application)) as made:
        yield made


async def get(client: Client, path: str, status: int = 200, **headers: str) -> Any:
    answer = await client.get(path, headers={name.replace("_", "-"): value for name, value in headers.items()})
    assert answer.status == status, await answer.text()
    return await answer.json()


async def test_pages_go_back_in_time_and_do_not_move(world: World, client: Client) -> None:
    """Newest first; records that come while somebody pages change nothing of what follows; the last page ends it."""
    await world.put(*"abcde")
    first = await get(client, "/api/v1/records?limit=2")
    await world.put("f")
    second = await get(client, f"/api/v1/records?limit=2&cursor={first['next_cursor']}")
    third = await get(client, f"/api/v1/records?limit=2&cursor={second['next_cursor']}")
    pages = [[record["request_id"] for record in page["records"]] for page in (first, second, third)]
    assert pages == [["e", "d"], ["c", "b"], ["a"]]
    assert third["next_cursor"] is None


async def test_a_record_is_json_without_magic_numbers(world: World, client: Client) -> None:
    """Lists are lists, unknown is null, verdicts have names; the database's own key is not shown."""
    await world.put("a", failed=True, ttft_s=-1.0, cached_tokens=-1)
    (record,) = (await get(client, "/api/v1/records"))["records"]
    assert (record["ttft_s"], record["cached_tokens"], record["total_s"]) == (None, None, 0.5)
    assert record["attempts"] == [
        {"pool": "bf16", "endpoint": "bf16/0", "status": 200, "failure": "", "started_s": 0.0005, "took_s": 0.5}
    ]
    assert {"check": "schema", "verdict": "fail"} in record["findings"]
    assert record["failures"] == ["format_error"]
    assert "id" not in record and "capture" not in record


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("pool=int4", ["c"]),
        ("bucket=none", []),
        ("failed=true", ["b"]),
        ("tenant=globex", ["d"]),
        ("since=60s", ["d", "c"]),
        ("until=60s", ["b", "a"]),
        ("since=2023-11-14T22:14:00Z", ["d", "c"]),
    ],
)
async def test_filters(world: World, client: Client, query: str, found: list[str]) -> None:
    """By bucket, pool, tenant, failure and time."""
    await world.put("a", at=NOW - 90)
    await world.put("b", at=NOW - 90, failed=True)
    await world.put("c", at=NOW - 30, pool="int4")
    await world.put("d", at=NOW - 30, tenant="globex")
    records = (await get(client, f"/api/v1/records?{query}"))["records"]
    assert [record["request_id"] for record in records] == found


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=x", "limit=99999", "cursor=abc", "since=yesterday", "pol=int4", "until=nan"]
)
async def test_a_query_that_cannot_be_meant_is_refused(client: Client, query: str) -> None:
    """Also a parameter that does not exist: ignoring it would answer another question."""
    error = (await get(client, f"/api/v1/records?{query}", 400))["error"]
    assert error["code"] == "invalid_value"


@pytest.mark.parametrize(
    "asked",
    [
        *("records?baseline=bf16", "records?failed=yes", "report?limit=5", "report?cursor=x"),
        *(
            "records/r1?pool=int4",
            "deployments?pool=int4",
            "samples/r1?key=x",
            "schemas/report?since=1h",
            "latency?since=2h",
        ),
        *("latency?tenant=acme", "latency?until=1h", "latency?sketches=maybe", "samples?since=1h", "samples?failed=1"),
    ],
)
async def test_what_a_path_does_not_go_by_is_refused(client: Client, asked: str) -> None:
    """A tenant's latency would be everybody's, the last hour's samples all that there are."""
    assert (await get(client, f"/api/v1/{asked}", 400))["error"]["code"] == "invalid_value"


async def test_one_record_comes_with_what_became_of_it(world: World, client: Client) -> None:
    """Feedback and consequences, the deployment record by its hash, and whether a sample is kept."""
    await world.put("a")
    world.evidence.joining.take_batch(batch(outcome(request_id="a")))
    world.evidence.take_feedback(Feedback(0, NOW, "acme", "a", "bad", 0.0))
    await until(lambda: bool(world.evidence.archive.written.rows.get(("aftermath",))))
    found = await get(client, "/api/v1/records/a")
    assert [(later["kind"], later["label"], later["score"]) for later in found["aftermath"]] == [
        ("feedback", "bad", 0.0)
    ]
    assert found["deployment_record"]["pool"] == "bf16"
    assert found["sample"] is None
    assert (await get(client, "/api/v1/records/none", 404))["error"]["code"] == "record_not_found"


async def test_a_report_is_made_apart(world: World, client: Client) -> None:
    """In a process of its own; its JSON is the one that the command reads; faults are the caller's in words."""
    await world.put(*"abc")
    await world.put("d", "e", pool="int4", precision="int4")
    made = msgspec.json.decode(await (await client.get("/api/v1/report?since=1h&baseline=bf16")).read(), type=Report)
    assert [column.pool for column in made.sections[0].columns] == ["bf16", "int4"]
    error = (await get(client, "/api/v1/report?baseline=nope", 400))["error"]
    assert "nope served nothing" in error["message"]
    schema = await get(client, "/api/v1/schemas/report")
    assert schema["$ref"] == "#/$defs/Report"


async def test_latency_of_this_process(world: World, client: Client) -> None:
    """By bucket and pool, of a span, and as sketches to merge."""
    world.evidence.take_batch(batch(outcome(), outcome(pool="int4")))
    every = (await get(client, "/api/v1/latency"))["latency"]
    assert [found["pool"] for found in every] == ["bf16", "int4"]
    (one,) = (await get(client, "/api/v1/latency?pool=int4&since=15m&sketches=1"))["latency"]
    assert one["total"]["count"] == 1 and one["total"]["sketch"]


async def test_deployments_say_what_is_missing(world: World, client: Client) -> None:
    """Declared, attested, evaluated; without a policy there is nothing to say."""
    await world.put("a")
    found = {one["pool"]: one for one in (await get(client, "/api/v1/deployments"))["deployments"]}
    assert found["bf16"]["hash"] == world.evidence.archive.running["bf16"]
    entries = {f"{entry['group']}: {entry['name']}": entry for entry in found["bf16"]["entries"]}
    assert entries["runtime: version"]["attested"] == "0.25.1"
    assert "model: hash" in found["bf16"]["missing"] and "runtime: version" not in found["bf16"]["missing"]
    assert "runtime: version" in found["int4"]["missing"]
    world.table = None
    assert (await get(client, "/api/v1/deployments", 503))["error"]["code"] == "no_policy"


async def test_a_sample_shows_its_text_only_to_who_brings_its_key(world: World, client: Client) -> None:
    """The list and the row have no text; a wrong key opens nothing; an answer with text is never stored on its way."""
    sealed = Sealer(KEY).seal("a", Sample("chat", SECRET.encode(), b"\xff"))
    for name in ("a", "b", "c"):
        world.evidence.archive.put(SampleRow(name, NOW, NOW + 9, "acme", "x", "bf16", "incident", sealed))
    await until(lambda: world.evidence.archive.written.row(("samples",))[0] == 3)
    page = await get(client, "/api/v1/samples?limit=2")
    rest = await get(client, f"/api/v1/samples?limit=2&cursor={page['next_cursor']}")
    assert [row["request_id"] for row in page["samples"] + rest["samples"]] == ["c", "b", "a"]
    assert SECRET not in str(page) + str(await get(client, "/api/v1/samples/a"))
    wrong = await client.get("/api/v1/samples/a", headers={KEY_HEADER: "another-key-another-key"})
    assert (wrong.status, SECRET in await wrong.text()) == (403, False)
    right = await client.get("/api/v1/samples/a", headers={KEY_HEADER: KEY})
    shown = await right.json()
    assert (shown["request"], shown["answer"]) == ({"text": SECRET}, {"base64": "/w=="})
    assert right.headers["Cache-Control"] == "no-store" and "ETag" not in right.headers
    assert (await get(client, "/api/v1/samples/none", 404))["error"]["code"] == "sample_not_found"


async def test_equal_answers_are_not_sent_twice(world: World, client: Client) -> None:
    """ETag and If-None-Match on pages too."""
    await world.put("a")
    first = await client.get("/api/v1/records")
    again = await client.get("/api/v1/records", headers={"If-None-Match": first.headers["ETag"]})
    assert again.status == 304


async def test_without_a_database_the_api_says_so(tmp_path: Path) -> None:
    """503 with words; nothing else of the gateway depends on it."""
    world = World(tmp_path)
    application = web.Application()
    application.router.add_routes(world.api.routes())
    async with TestClient(TestServer(application)) as client:
        for path in ("records", "records/a", "report", "samples", "samples/a"):
            assert (await get(client, f"/api/v1/{path}", 503))["error"]["code"] == "no_database"
        assert len((await get(client, "/api/v1/deployments"))["deployments"]) == 2
