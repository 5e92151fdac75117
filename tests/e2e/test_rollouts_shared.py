"""Two gateways on one PostgreSQL, each with half of the clients, judge one candidate together.

Real processes throughout: two supervisors with a worker each, two simulated pools, a database server of their own.
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cases.gateway import Gateway, wait_for, write_policy
from tests.e2e.test_rollouts import (
    ALPHA,
    BETA,
    SAMPLES_KEY,
    TOKENS,
    Load,
    Simulator,
    break_json,
    is_live,
    make_policy,
    standings,
    state_of,
)
from tests.unit.store.postgres import Postgres, binaries

pytestmark = pytest.mark.skipif(binaries() is None, reason="no PostgreSQL server is installed")


@pytest.fixture
def pools() -> Iterator[tuple[Simulator, Simulator]]:
    """The baseline and the candidate."""
    both = Simulator(), Simulator()
    yield both
    for one in both:
        one.stop()


@pytest.fixture
def gateways(
    tmp_path: Path, pools: tuple[Simulator, Simulator], monkeypatch: pytest.MonkeyPatch
) -> Iterator[list[Gateway]]:
    """Two of them in front of both pools, on one database."""
    server = Postgres().start()
    monkeypatch.setenv("SAMPLES_KEY_OF_TESTS", SAMPLES_KEY)
    monkeypatch.setenv("DATABASE_OF_TESTS", server.url)
    document = make_policy(pools[0].url, pools[1].url)
    document["records"]["url"] = "env:DATABASE_OF_TESTS"
    running: list[Gateway] = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        gateway = Gateway(tmp_path / name, write_policy(tmp_path / name / "policy.yaml", document))
        gateway.token = TOKENS["eve"]
        running.append(gateway.start())
    yield running
    for gateway in running:
        gateway.stop()
    server.stop()


async def until(probe: Any, what: str) -> None:
    """Wait in a thread: the load goes on."""
    await asyncio.to_thread(wait_for, probe, what, 60.0)


async def test_they_judge_what_both_saw_and_both_obey(
    gateways: list[Gateway], pools: tuple[Simulator, Simulator]
) -> None:
    """One decision, on evidence of both; the same meters on both; each tells its own workers."""
    first, second = gateways
    async with Load(first.port, clients=4) as one, Load(second.port, clients=4) as other:
        await until(lambda: all(is_live(gateway, ALPHA, BETA) for gateway in gateways), "both buckets are live on both")
        await until(lambda: all(gateway.total("quantgate_rollout_gateways") == 2 for gateway in gateways), "two judge")
        assert first.total("quantgate_rollout_alone") == 0
        break_json(pools)
        await until(lambda: all(state_of(g, ALPHA) == "rolled_back" for g in gateways), "alpha is out on both")
        rows = [standings(gateway)[ALPHA] for gateway in gateways]
        assert rows[0]["version"] == rows[1]["version"]
        before = [len(load.served) for load in (one, other)]
        await asyncio.gather(one.reach(60), other.reach(60))
        for load, start in ((one, before[0]), (other, before[1])):
            settled = [name for _, bucket, name in load.served[start + 20 :] if bucket == ALPHA]
            assert set(settled) == {"bf16"}
        assert one.broken == other.broken == []
    events = [gateway.admin(f"/api/v1/rollouts/int4-all/history?bucket={ALPHA}")["events"] for gateway in gateways]
    assert events[0] == events[1]
    assert [event["event"] for event in events[0]].count("fail") == 1


async def test_one_goes_on_when_the_other_is_killed(
    gateways: list[Gateway], pools: tuple[Simulator, Simulator]
) -> None:
    """It is waited for no longer than ten seconds, and its share of the evidence stays."""
    first, second = gateways
    async with Load(first.port, clients=4), Load(second.port, clients=4) as other:
        await until(lambda: all(is_live(gateway, ALPHA, BETA) for gateway in gateways), "both buckets are live on both")
        await until(lambda: first.total("quantgate_rollout_gateways") == 2, "two judge")
        assert second._process is not None
        second._process.kill()
        other._stop.set()
        await until(lambda: first.total("quantgate_rollout_gateways") == 1, "one judges")
        break_json(pools)
        await until(lambda: state_of(first, ALPHA) == "rolled_back", "alpha is out")
