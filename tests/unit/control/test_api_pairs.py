"""The admin API over pairs, against a real database and a real server."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from gateway.control.api_pairs import PairsApi, account
from gateway.store import pairs, samples
from gateway.store.engine import open_engine, url_of
from gateway.store.migrate import upgrade
from gateway.store.pairs import LossRow
from gateway.store.samples import PAIR, Sample, SampleRow, Sealer
from tests.unit.store.test_pairs import BASE

KEY = "correct horse battery staple"
NOW = 1_000_000.0
Get = Callable[..., Awaitable[tuple[int, Any]]]


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[tuple[Get, Any]]:
    """GET with a query and headers; and the archive, whose database may be taken away."""
    engine = open_engine(url_of(None, tmp_path))
    upgrade(engine)
    rows = [BASE._replace(request_id=f"r{n}", at=NOW - n, loss=n / 10, likelihood_gap=0.1 * n) for n in range(5)]
    rows.append(BASE._replace(request_id="old", at=NOW - 30 * 86_400, loss=-1.0))
    rows.append(BASE._replace(request_id="bad", at=NOW, bucket="c", verdict="unscored", agreement=None, loss=None))
    pairs.inserter(engine).add(rows)
    sealed = Sealer(KEY).seal("r1", Sample("chat", b'{"q": 1}', b"\xff", b"candidate's"))
    samples.inserter(engine).add([SampleRow("r1", 1.0, 9e9, "t", "b", "bf16", PAIR, sealed)])
    archive: Any = SimpleNamespace(engine=engine, error="")
    application = web.Application()
    application.router.add_routes(PairsApi(archive, lambda: NOW).routes())
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    base = f"http://127.0.0.1:{runner.addresses[0][1]}/api/v1"
    async with aiohttp.ClientSession() as session:

        async def get(path: str, **headers: str) -> tuple[int, Any]:
            async with session.get(base + path, headers={k.replace("_", "-"): v for k, v in headers.items()}) as answer:
                return answer.status, await answer.json()

        yield get, archive
    await runner.cleanup()
    engine.dispose()


async def test_pages_of_pairs(api: tuple[Get, Any]) -> None:
    """Newest first by arrival, with a cursor; parts as objects, unknown times as null; no row ids."""
    get, _ = api
    status, first = await get("/pairs?limit=2&bucket=b")
    assert status == 200
    assert [pair["request_id"] for pair in first["pairs"]] == ["old", "r4"]
    assert first["pairs"][1]["parts"] == {"text": 0.75}
    assert first["pairs"][1]["ttft_candidate_s"] is None
    assert "id" not in first["pairs"][0]
    _, second = await get(f"/pairs?limit=2&bucket=b&cursor={first['next_cursor']}")
    assert [pair["request_id"] for pair in second["pairs"]] == ["r3", "r2"]
    assert [pair["request_id"] for pair in (await get("/pairs?failed=1"))[1]["pairs"]] == ["bad"]


@pytest.mark.parametrize("query", ["limit=0", "limit=x", "cursor=!", "buckt=b", "since=soon"])
async def test_wrong_parameters_are_refused(api: tuple[Get, Any], query: str) -> None:
    """With the parameter's name or what is expected; nothing is ignored."""
    status, body = await api[0](f"/pairs?{query}")
    assert (status, body["error"]["code"]) == (400, "invalid_value")


async def test_texts_only_for_who_has_the_key(api: tuple[Get, Any]) -> None:
    """Without it the pair says that texts are kept; a wrong key is refused; a text that is none comes as base64."""
    get, _ = api
    _, plain = await get("/pairs/r1")
    assert plain["texts_kept"] is True
    assert "answers" not in plain
    assert (await get("/pairs/r2", x_quantgate_samples_key=KEY))[1]["texts_kept"] is False
    assert (await get("/pairs/r1", x_quantgate_samples_key="x" * 20))[0] == 403
    _, opened = await get("/pairs/r1", x_quantgate_samples_key=KEY)
    assert opened["answers"] == {"baseline": {"base64": "/w=="}, "candidate": {"text": "candidate's"}, "noise": None}
    assert opened["request"] == {"text": '{"q": 1}'}
    assert (await get("/pairs/nobody"))[0] == 404


async def test_excess_by_bucket_and_candidate(api: tuple[Get, Any]) -> None:
    """Mean, interval and number of the last seven days, unless asked otherwise; no data is null and not zero."""
    get, _ = api
    _, body = await get("/excess")
    both = {row["bucket"]: row for row in body["excess"]}
    assert both["b"]["mean"] == pytest.approx(0.2)
    assert (both["b"]["number"], both["b"]["pairs"], both["b"]["verdicts"]) == (5, 5, {"compared": 5})
    assert -1.0 <= both["b"]["low"] <= 0.2 <= both["b"]["high"] <= 1.0
    assert both["b"]["likelihood_gap_mean"] == pytest.approx(0.2)
    assert (both["c"]["mean"], both["c"]["low"], both["c"]["number"], both["c"]["pairs"]) == (None, None, 0, 1)
    _, older = await get("/excess?since=60d&bucket=b")
    assert older["excess"][0]["number"] == 6
    assert (await get("/excess?failed=1"))[0] == 400


async def test_without_a_database(api: tuple[Get, Any]) -> None:
    """It says so, in the API's shape."""
    get, archive = api
    archive.engine, archive.error = None, "the disk is full"
    for path in ("/pairs", "/pairs/r1", "/excess"):
        status, body = await get(path)
        assert (status, body["error"]["code"]) == (503, "no_database")
        assert "the disk is full" in body["error"]["message"]


@given(st.lists(st.tuples(st.sampled_from("ab"), st.none() | st.floats(-1, 1)), max_size=60))
def test_accounts_add_up(rows: list[tuple[str, float | None]]) -> None:
    """Every pair is in exactly one group; losses of none count as pairs and not in the mean."""
    found = account(LossRow(bucket, "x", "y", "compared", 0.5, 0.5, loss, None) for bucket, loss in rows)
    assert sum(row["pairs"] for row in found) == len(rows)
    for row in found:
        losses = [loss for bucket, loss in rows if bucket == row["bucket"] and loss is not None]
        assert row["number"] == len(losses)
        if losses:
            assert row["mean"] == pytest.approx(sum(losses) / len(losses))
            assert -1.0 <= row["low"] <= row["high"] <= 1.0
