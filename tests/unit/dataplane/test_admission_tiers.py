"""Where the policy ranks tiers, the more important wait in front, and a full queue refuses the others first."""

import asyncio
from hashlib import sha256
from typing import Any

from tests.unit.dataplane.conftest import Make
from tests.unit.dataplane.plane import CHAT, OK, Plane, Upstream, answer

KEYS = {"gold": "sk-gold", "silver": "sk-silver", "basic": "sk-basic"}


def ranked(most: int) -> dict[str, Any]:
    tenants = {
        tier: {"keys": ["sha256:" + sha256(key.encode()).hexdigest()], "tier": tier} for tier, key in KEYS.items()
    }
    return {
        "tenants": tenants,
        "pool": {"a": {"limits": {"inflight": 1}, "timeouts": {"first_byte": "9s"}}},
        "gateway": {"queue": {"wait": "9s", "most": most, "tiers": ["gold", "silver"]}},
    }


class Held:
    """A pool with one place that is taken, and what waits for it."""

    def __init__(self, plane: Plane, upstream: Upstream) -> None:
        self.plane = plane
        self.writers: list[asyncio.StreamWriter] = []
        self.upstream = upstream
        upstream.script = lambda _body, writer: self.writers.append(writer)

    async def wait(self, tier: str) -> "asyncio.Task[Any]":
        """One more request, in the queue when this returns; or refused, or in somebody's place."""
        before = self.plane.worker.admission.queued
        task = asyncio.create_task(self.plane.ask({**CHAT, "user": tier}, authorization=f"Bearer {KEYS[tier]}"))
        async with asyncio.timeout(5):
            while not task.done() and self.plane.worker.admission.queued == before and len(self.writers) == 0:
                await asyncio.sleep(0.005)
            await asyncio.sleep(0.05)
        return task

    async def serve(self) -> None:
        """Answer whoever has the place, once there is somebody."""
        async with asyncio.timeout(5):
            while not self.writers:
                await asyncio.sleep(0.005)
        self.writers.pop(0).write(answer(OK))


async def test_a_more_important_tier_starts_before_those_who_came_earlier(make: Make, first: Upstream) -> None:
    """Within a tier in the order of arrival."""
    held = Held(await make({"a": [first.url]}, **ranked(10)), first)
    tasks = [await held.wait(tier) for tier in ("basic", "basic", "silver", "gold")]
    order: list[str] = []
    for task, tier in zip(tasks, ("holder", "basic", "silver", "gold"), strict=True):
        task.add_done_callback(lambda _, tier=tier: order.append(tier))
    for count in range(1, 5):
        await held.serve()
        async with asyncio.timeout(5):
            while len(order) < count:
                await asyncio.sleep(0.005)
    assert order == ["holder", "gold", "silver", "basic"]


async def test_a_full_queue_refuses_the_last_of_a_less_important_tier(make: Make, first: Upstream) -> None:
    """Gold displaces basic; nobody displaces its own tier."""
    held = Held(await make({"a": [first.url]}, **ranked(1)), first)
    holder = await held.wait("gold")
    basic = await held.wait("basic")
    gold = await held.wait("gold")
    refused = await basic
    assert (refused.status, refused.code) == (429, "capacity_exceeded")
    late = await (await held.wait("gold"))
    assert late.status == 429
    for task in (holder, gold):
        await held.serve()
        assert (await task).status == 200


async def test_who_can_start_displaces_nobody(make: Make, first: Upstream, second: Upstream) -> None:
    """Gold finds its own pool idle beside a full queue: it starts, and basic keeps its place at the other pool."""
    policy = ranked(1)
    policy["models"] = {"m": {}, "n": {}}
    policy["pool"]["b"] = {**policy["pool"]["a"], "model": "n"}
    held = Held(await make({"a": [first.url], "b": [second.url]}, **policy), first)
    holder = await held.wait("basic")
    basic = await held.wait("basic")
    gold = await held.plane.ask({**CHAT, "model": "n"}, authorization=f"Bearer {KEYS['gold']}")
    assert (gold.status, gold.header["x-quantgate-pool"]) == (200, "b")
    for task in (holder, basic):
        await held.serve()
        assert (await task).status == 200
