"""Limits: a tenant's own first, then room in a pool; waiting in order, refusals that say when to come back."""

import asyncio
from hashlib import sha256
from typing import Any

from tests.unit.dataplane.conftest import Make
from tests.unit.dataplane.plane import CHAT, OK, Plane, Upstream, answer

KEY = "sk-limited"
TENANT = {"keys": ["sha256:" + sha256(KEY.encode()).hexdigest()]}


class Gate:
    """An upstream script that answers when told to."""

    def __init__(self, upstream: Upstream) -> None:
        self.waiting: list[asyncio.StreamWriter] = []
        upstream.script = lambda _body, writer: self.waiting.append(writer)

    async def reached(self, count: int) -> None:
        async with asyncio.timeout(5):
            while len(self.waiting) < count:
                await asyncio.sleep(0.005)

    def open(self) -> None:
        while self.waiting:
            self.waiting.pop(0).write(answer(OK))


async def queued(plane: Plane, count: int) -> None:
    async with asyncio.timeout(5):
        while plane.worker.admission.queued < count:
            await asyncio.sleep(0.005)


def limited(**limits: Any) -> dict[str, Any]:
    return {"t": {**TENANT, "limits": limits}}


async def test_requests_per_minute(make: Make, first: Upstream) -> None:
    """Within the limit the fields count down; over it 429 with the seconds to wait."""
    plane = await make({"a": [first.url]}, tenants=limited(requests_per_minute=2))
    replies = [await plane.ask(CHAT, authorization=f"Bearer {KEY}") for _ in range(3)]
    assert [reply.status for reply in replies] == [200, 200, 429]
    assert [reply.header["x-ratelimit-remaining-requests"] for reply in replies[:2]] == ["1", "0"]
    assert replies[2].code == "rate_limit_exceeded"
    assert 1 <= int(replies[2].header["retry-after"]) <= 61
    assert (await plane.outcome(3)).result == "rate_limited"
    assert (await plane.ask(CHAT)).status == 200  # somebody else's limit is somebody else's


async def test_tokens_per_minute_count_what_was_really_used(make: Make, first: Upstream) -> None:
    """The estimate is charged at once and corrected by the runtime's usage."""
    plane = await make({"a": [first.url]}, tenants=limited(tokens_per_minute=30))
    statuses = [(await plane.ask(CHAT, authorization=f"Bearer {KEY}")).status for _ in range(5)]
    # Each request really uses 9 tokens: three fit, and the fourth finds 27 used.
    assert statuses == [200, 200, 200, 429, 429]


async def test_requests_in_flight(make: Make, first: Upstream) -> None:
    """A tenant's in-flight limit frees up when a request ends, however it ends."""
    gate = Gate(first)
    plane = await make({"a": [first.url]}, tenants=limited(inflight=1), pool={"a": {"timeouts": {"first_byte": "9s"}}})
    _, writer = await plane.send(CHAT, authorization=f"Bearer {KEY}")
    await gate.reached(1)
    assert (await plane.ask(CHAT, authorization=f"Bearer {KEY}")).status == 429
    writer.close()  # the client leaves
    async with asyncio.timeout(5):
        while plane.worker.board.inflight(plane.worker.pipeline.current.keyring._by_prefix and _slot(plane)):  # type: ignore[union-attr]
            await asyncio.sleep(0.005)
    first.script = lambda _body, other: other.write(answer(OK))
    assert (await plane.ask(CHAT, authorization=f"Bearer {KEY}")).status == 200


def _slot(plane: Plane) -> int:
    current = plane.worker.pipeline.current
    assert current is not None
    return current.generation.table.tenants["t"].slot


async def test_a_full_pool_overflows_to_the_next(make: Make, first: Upstream, second: Upstream) -> None:
    """The decision's order is the overflow's order."""
    gate = Gate(first)
    plane = await make({"a": [first.url], "b": [second.url]}, pool={"a": {"limits": {"inflight": 1}}})
    reader, writer = await plane.send(CHAT)
    await gate.reached(1)
    assert (await plane.ask(CHAT)).header["x-quantgate-pool"] == "b"
    gate.open()
    assert b"200" in await reader.read()
    writer.close()


async def test_waiting_for_room_in_order(make: Make, first: Upstream) -> None:
    """A request that finds every pool full waits, starts when room comes free, and says how long it waited."""
    gate = Gate(first)
    plane = await make({"a": [first.url]}, pool={"a": {"limits": {"inflight": 1}, "timeouts": {"first_byte": "9s"}}})
    held = [await plane.send(CHAT) for _ in range(1)]
    await gate.reached(1)
    waiting = asyncio.create_task(plane.ask(CHAT))
    await queued(plane, 1)
    gate.open()
    await gate.reached(1)
    gate.open()
    assert (await waiting).status == 200
    assert (await plane.outcome(2)).queue_s > 0.0
    held[0][1].close()


async def test_waiting_ends_at_the_deadline(make: Make, first: Upstream) -> None:
    """Nobody waits for ever: 429 with Retry-After when the queue's time is over, and the outcome says shed."""
    gate = Gate(first)
    plane = await make(
        {"a": [first.url]},
        pool={"a": {"limits": {"inflight": 1}, "timeouts": {"first_byte": "9s"}}},
        gateway={"queue": {"wait": "100ms", "most": 5}},
    )
    _, writer = await plane.send(CHAT)
    await gate.reached(1)
    reply = await plane.ask(CHAT)
    assert (reply.status, reply.code, reply.header["retry-after"]) == (429, "capacity_exceeded", "1")
    assert (await plane.outcome()).result == "shed"
    writer.close()


async def test_a_client_that_leaves_the_queue_is_forgotten(make: Make, first: Upstream) -> None:
    """It neither starts later nor holds a place."""
    gate = Gate(first)
    plane = await make({"a": [first.url]}, pool={"a": {"limits": {"inflight": 1}, "timeouts": {"first_byte": "9s"}}})
    _, holder = await plane.send(CHAT)
    await gate.reached(1)
    _, leaver = await plane.send(CHAT)
    await queued(plane, 1)
    leaver.close()
    assert (await plane.outcome()).result == "client_cancelled"
    gate.open()
    async with asyncio.timeout(5):
        while plane.worker.admission.queued:
            await asyncio.sleep(0.005)
    assert len(first.bodies) == 1
    holder.close()
