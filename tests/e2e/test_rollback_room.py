"""A rollback onto a baseline that has no room for all of it: the bucket leaves at once, and lower tiers pay first.

One worker, two simulated pools that take a quarter of a second an answer, twelve clients, and room for four on the
baseline. Three of the clients are more important than the others.
"""

import asyncio
import hashlib
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.cases.gateway import Gateway, policy, pool, wait_for, write_policy
from tests.e2e.test_rollouts import INT4, TOKENS, Simulator, rollout_cli

BUCKET = "m/chat"
KEYS = {"gold": "sk-gold", "bronze": "sk-bronze"}
ROOM, GOLD, BRONZE = 4, 3, 9


def digest(text: str) -> str:
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def make_policy(baseline: str, candidate: str) -> dict[str, Any]:
    """Most traffic on the candidate; evidence never advances it here."""
    return policy(
        {"m": {"baseline": "bf16"}},
        {
            "bf16": pool("m", baseline, limits={"inflight": ROOM}),
            "int4": pool("m", candidate, limits={"inflight": 64}) | {"precision": INT4},
        },
        [{"name": "r", "pools": ["int4", "bf16"]}],
        tenants={name: {"keys": [digest(key)], "tier": name} for name, key in KEYS.items()},
        classify={"buckets": {"by": ["model", "task"]}},
        rollouts=[{"name": "int4-all", "candidate": "int4", "stages": [{"weight": "95%"}], "guards": ["errors"]}],
        guards={"errors": {"metric": "error_rate", "limit": "5%"}},
        operators=[{"name": "eve", "token": digest(TOKENS["eve"]), "role": "operator"}],
        gateway={"queue": {"wait": "15s", "most": ROOM, "tiers": ["gold", "bronze"]}},
    )


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    """In front of both pools."""
    pools = [Simulator("--ttft", "1.0", "--tpot", "0.0001") for _ in range(2)]
    write_policy(tmp_path / "policy.yaml", make_policy(pools[0].url, pools[1].url))
    running = Gateway(tmp_path, tmp_path / "policy.yaml")
    running.token = TOKENS["eve"]
    yield running.start()
    running.stop()
    for one in pools:
        one.stop()


class Answer(NamedTuple):
    """What a client got for a request that it sent at a moment."""

    sent: float
    tier: str
    status: int
    fields: dict[str, str]
    body: dict[str, Any]


class Clients:
    """Twelve callers, each with one request at a time; ``answers`` as they come."""

    def __init__(self, port: int) -> None:
        self.answers: list[Answer] = []
        self._port = port
        self._stop = asyncio.Event()

    async def __aenter__(self) -> "Clients":
        tiers = ["gold"] * GOLD + ["bronze"] * BRONZE
        self._tasks = [asyncio.create_task(self._client(tier, number)) for number, tier in enumerate(tiers)]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._stop.set()
        await asyncio.gather(*self._tasks)

    async def reach(self, tier: str, count: int, status: int = 200) -> None:
        """Wait until so many answers of a tier have come since now."""

        def seen() -> int:
            return sum((found.tier, found.status) == (tier, status) for found in self.answers)

        goal = seen() + count
        async with asyncio.timeout(60):
            while seen() < goal:
                await asyncio.sleep(0.01)

    async def _client(self, tier: str, number: int) -> None:
        turn = 0
        while not self._stop.is_set():
            turn += 1
            messages = [{"role": "user", "content": f"Tell {number} of {turn}"}]
            body = json.dumps({"model": "m", "max_tokens": 4, "user": f"{number}-{turn}", "messages": messages})
            sent = time.monotonic()
            reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
            writer.write(
                f"POST /v1/chat/completions HTTP/1.1\r\nHost: g\r\nContent-Type: application/json\r\n"
                f"Authorization: Bearer {KEYS[tier]}\r\nConnection: close\r\n"
                f"Content-Length: {len(body)}\r\n\r\n{body}".encode()
            )
            async with asyncio.timeout(30):
                head, _, answer = (await reader.read()).decode().partition("\r\n\r\n")
            writer.close()
            lines = head.split("\r\n")
            status = int(lines[0].split()[1])
            fields = dict(line.lower().split(": ", 1) for line in lines[1:])
            self.answers.append(Answer(sent, tier, status, fields, json.loads(answer)))
            if status != 200:
                await asyncio.sleep(0.1)


def standing(gateway: Gateway) -> dict[str, Any]:
    """The bucket's row; empty before it is met."""
    return next((dict(row) for row in gateway.admin("/api/v1/rollouts")["buckets"] if row["bucket"] == BUCKET), {})


async def test_what_the_baseline_cannot_take_is_refused_by_tier_and_told(gateway: Gateway) -> None:
    """On the answer, in the error, in a metric, and on record before it happened."""
    async with Clients(gateway.port) as clients:
        await asyncio.to_thread(wait_for, lambda: standing(gateway).get("share_bp") == 9500, "it is live", 30.0)
        # What the gauges say of requests in flight must be of this time.
        await asyncio.to_thread(
            wait_for, lambda: gateway.total("quantgate_inflight", pool="int4") > ROOM, "the candidate is busy", 30.0
        )
        live = time.monotonic()
        await clients.reach("bronze", 20)
        assert {found.status for found in clients.answers if found.sent > live} == {200}
        code, said = await asyncio.to_thread(
            rollout_cli, gateway, "eve", "rollback", "int4-all", BUCKET, "--reason", "customers complain"
        )
        assert code == 0, said
        await clients.reach("bronze", 1, 429)  # the worker obeys
        out = time.monotonic()
        await clients.reach("gold", 9)
        await clients.reach("bronze", 20, 429)
    after = [found for found in clients.answers if found.sent > out]
    assert {found.status for found in after if found.tier == "gold"} == {200}
    refused = [found for found in after if found.status != 200]
    assert {(found.tier, found.status) for found in refused} == {("bronze", 429)}
    for found in refused:
        assert found.fields["retry-after"] == "1"
        assert found.body["error"]["code"] == "capacity_exceeded"
        assert "int4 was rolled back for requests of this kind" in found.body["error"]["message"]
    assert {found.fields["x-quantgate-pool"] for found in after if found.status == 200} == {"bf16"}
    assert {found.fields["x-quantgate-rolled-back"] for found in after} == {"int4"}
    wait_for(lambda: gateway.total("quantgate_rollout_shed_total", tier="bronze", bucket=BUCKET) >= 20, "it is counted")
    assert gateway.total("quantgate_rollout_shed_total", tier="gold") == 0
    event = gateway.admin(f"/api/v1/rollouts/int4-all/history?bucket={BUCKET}")["events"][0]
    assert event["event"] == "rollback"
    assert "will wait or be refused with 429, lower tiers first" in event["evidence"]["headroom"]
