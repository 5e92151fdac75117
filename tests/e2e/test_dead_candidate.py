"""A candidate that dies while it is rolled out: out by evidence, although failover hides its failures from clients."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.cases.gateway import Gateway, write_policy
from tests.e2e.test_rollouts import ALPHA, BETA, Load, Simulator, is_live, make_policy, standings, state_of, until


@pytest.fixture
def candidate() -> Iterator[Simulator]:
    """A pool of its own, to be killed."""
    made = Simulator()
    yield made
    made.stop()


@pytest.fixture
def gateway(tmp_path: Path, candidate: Simulator) -> Iterator[Gateway]:
    """Two workers in front of the candidate and a baseline."""
    baseline = Simulator()
    policy = make_policy(baseline.url, candidate.url)
    del policy["operators"], policy["records"]
    policy["pools"]["int4"]["runtime"] = "vllm"  # which has a health check of its own
    write_policy(tmp_path / "policy.yaml", policy)
    running = Gateway(tmp_path, tmp_path / "policy.yaml", workers=2)
    yield running.start()
    running.stop()
    baseline.stop()


@pytest.fixture
async def load(gateway: Gateway) -> AsyncIterator[Load]:
    """Traffic of both kinds."""
    async with Load(gateway.port) as running:
        await running.reach(20)
        yield running


async def test_a_candidate_that_is_gone_is_rolled_back_and_no_client_notices(
    gateway: Gateway, candidate: Simulator, load: Load
) -> None:
    """Ejected after a few failures it gets nothing of clients, and is rolled back all the same."""
    await until(lambda: is_live(gateway, ALPHA, BETA), "both buckets are live")
    candidate.process.kill()
    await until(lambda: state_of(gateway, ALPHA) == state_of(gateway, BETA) == "rolled_back", "it is taken back")
    assert all("tripped" in row["reason"] for row in standings(gateway).values())
    await load.reach(50)
    assert load.broken == []
    assert {line["status"] for line in gateway.outcomes()} == {200}


async def test_a_candidate_that_withdraws_is_told_and_not_condemned(
    gateway: Gateway, candidate: Simulator, load: Load
) -> None:
    """Its health check fails first, as in a drain: the baseline serves, ``status`` says why, and back it goes on."""
    await until(lambda: is_live(gateway, ALPHA, BETA), "both buckets are live")
    candidate.configure(healthy=False)
    await until(lambda: standings(gateway)[ALPHA]["not_serving"], "it is seen to be away")
    assert "int4/0 is unhealthy" in standings(gateway)[ALPHA]["not_serving"]
    await load.settled({ALPHA: {"bf16"}, BETA: {"bf16"}})
    assert gateway.total("quantgate_rollout_candidate_absent", pool="int4") == 1.0
    assert is_live(gateway, ALPHA, BETA)
    candidate.configure(healthy=True)
    await until(lambda: not standings(gateway)[ALPHA]["not_serving"], "it is back")
    await load.settled({ALPHA: {"bf16", "int4"}, BETA: {"bf16", "int4"}})
    assert is_live(gateway, ALPHA, BETA)
