"""Limits: a tenant's own first, then room in a pool; waiting in order, refusals that say when to come back."""

import asyncio
from hashlib import sha256
from typing import Any

from tests.unit.dataplane.conftest import Make
from tests.unit.dataplane.plane import CHAT, OK, Plane, Upstream, answer, policy_of

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
    assert 1 <= int(replies[2].header["retry-after"]) <= 120
    assert replies[2].header["x-ratelimit-reset-requests"] == replies[2].header["retry-after"] + "s"
    assert (await plane.outcome(3)).kind.result == "rate_limited"
    assert (await plane.ask(CHAT)).status == 200  # somebody else's limit is somebody else's


async def test_feedback_counts_as_a_request_of_its_tenant(make: Make, first: Upstream) -> None:
    """Or it would be a way around the limit, and a way to fill control's memory."""
    plane = await make({"a": [first.url]}, tenants=limited(requests_per_minute=2))
    word = {"request_id": "x-1", "label": "bad"}
    replies = [await plane.ask(word, "/v1/feedback", authorization=f"Bearer {KEY}") for _ in range(3)]
    assert [reply.status for reply in replies] == [202, 202, 429]
    assert (replies[2].code, len(plane.worker.link._words)) == ("rate_limit_exceeded", 2)
    assert 1 <= int(replies[2].header["retry-after"]) <= 120
    assert (await plane.ask(CHAT, authorization=f"Bearer {KEY}")).status == 429
    assert (await plane.ask(word, "/v1/feedback")).status == 202  # callers without a key have no limit here


async def test_tokens_per_minute_count_what_was_really_used(make: Make, first: Upstream) -> None:
    """The estimate is charged at once and corrected by the runtime's usage."""
    plane = await make({"a": [first.url]}, tenants=limited(tokens_per_minute=30))
    statuses = [(await plane.ask(CHAT, authorization=f"Bearer {KEY}")).status for _ in range(5)]
    # Each request really uses 9 tokens: three fit, and the fourth finds 27 used.
    assert statuses == [200, 200, 200, 429, 429]


async def test_a_refusal_names_one_time(make: Make, first: Upstream) -> None:
    """Of SDKs some wait for Retry-After and some for the reset: both say when the sliding minute has room again."""
    plane = await make({"a": [first.url]}, tenants=limited(tokens_per_minute=30, requests_per_minute=100))
    plane.worker.pipeline._wall = lambda: 6_050.0
    replies = [await plane.ask(CHAT, authorization=f"Bearer {KEY}") for _ in range(4)]
    assert [reply.header["x-ratelimit-reset-tokens"] for reply in replies[:3]] == ["11s"] * 3
    header = replies[3].header
    assert (replies[3].status, int(header["retry-after"]) > 11) == (429, True)
    assert {header[f"x-ratelimit-reset-{what}"] for what in ("requests", "tokens")} == {header["retry-after"] + "s"}


async def test_a_prompt_above_the_limit_is_not_told_to_wait(make: Make, first: Upstream) -> None:
    """Nor is its client's SDK to try again: it would be refused for ever."""
    plane = await make({"a": [first.url]}, tenants=limited(tokens_per_minute=30))
    long = {**CHAT, "messages": [{"role": "user", "content": "word " * 100}]}
    reply = await plane.ask(long, authorization=f"Bearer {KEY}")
    assert (reply.status, reply.code, "retry-after" in reply.header) == (429, "rate_limit_exceeded", False)
    assert reply.header["x-should-retry"] == "false"


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


def two_models(**queue: Any) -> dict[str, Any]:
    """Model ``m`` on pool a, ``n`` on pool b, with one place each; what waits for one does not need the other."""
    one = {"limits": {"inflight": 1}, "timeouts": {"first_byte": "9s"}}
    return {
        "models": {"m": {}, "n": {}},
        "pool": {"a": one, "b": {**one, "model": "n"}},
        "gateway": {"queue": {"wait": "9s", **queue}},
    }


async def test_a_full_queue_does_not_keep_out_who_waits_for_nothing(
    make: Make, first: Upstream, second: Upstream
) -> None:
    """Its own pool is idle: it starts beside a queue of others, and only who finds his pool full is refused."""
    gate = Gate(first)
    plane = await make({"a": [first.url], "b": [second.url]}, **two_models(most=1))
    _, holder = await plane.send(CHAT)
    await gate.reached(1)
    waiting = asyncio.create_task(plane.ask(CHAT))
    await queued(plane, 1)
    reply = await plane.ask({**CHAT, "model": "n"})
    assert (reply.status, reply.header["x-quantgate-pool"]) == (200, "b")
    assert (await plane.outcome(1)).queue_s == 0.0
    assert (await plane.ask(CHAT)).status == 429
    assert plane.worker.admission.queued == 1
    gate.open()
    await gate.reached(1)
    gate.open()
    assert (await waiting).status == 200
    holder.close()


async def test_nobody_is_overtaken_at_the_pool_that_he_waits_for(make: Make, first: Upstream) -> None:
    """Room that came free unheard, as in another worker, goes to the first in line and not to whoever asks next."""
    gate = Gate(first)
    plane = await make({"a": [first.url]}, pool={"a": {"limits": {"inflight": 1}, "timeouts": {"first_byte": "9s"}}})
    _, holder = await plane.send({**CHAT, "user": "holder"})
    await gate.reached(1)
    earlier = asyncio.create_task(plane.ask({**CHAT, "user": "earlier"}))
    await queued(plane, 1)
    plane.worker._tick_within = lambda _seconds: None  # type: ignore[method-assign]
    plane.worker.forwarder.on_release = lambda: None
    gate.open()
    later = asyncio.create_task(plane.ask({**CHAT, "user": "later"}))
    await gate.reached(1)
    assert b"earlier" in first.bodies[1]
    plane.worker.forwarder.on_release = plane.worker.admission.drain
    gate.open()
    await gate.reached(1)
    gate.open()
    assert [(await task).status for task in (earlier, later)] == [200, 200]
    holder.close()


async def test_shadow_legs_give_way_beside_a_queue_of_others(make: Make, first: Upstream, second: Upstream) -> None:
    """A request waits in line where legs run: they end for it, as they would if nobody else waited."""
    gate, legs = Gate(first), Gate(second)
    plane = await make({"a": [first.url], "b": [second.url]}, **two_models())
    _, holder = await plane.send(CHAT)
    await gate.reached(1)
    _, waiter = await plane.send(CHAT)
    await queued(plane, 1)
    _, leg = await plane.send({**CHAT, "model": "n"})  # stands for a leg: what ends it is the same
    await legs.reached(1)
    (last,) = [one for one in plane.worker.context.connections if one.answering and b'"n"' in one.answering.body]
    asked: list[tuple[str, ...]] = []

    def make_room(pools: Any) -> bool:
        asked.append(tuple(pools))
        last.cut()
        return True

    plane.worker.admission.make_room = make_room
    reader, writer = await plane.send({**CHAT, "model": "n"})
    await legs.reached(2)
    legs.open()
    assert b"200" in await reader.read()
    assert (asked, plane.worker.admission.queued) == ([("b",)], 1)
    for one in (holder, waiter, leg, writer):
        one.close()


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
    outcome = await plane.outcome()
    assert outcome.kind.result == "shed"
    assert 0.1 <= outcome.queue_s <= outcome.total_s  # those who waited in vain waited longest
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
    outcome = await plane.outcome()
    assert outcome.kind.result == "client_cancelled"
    assert 0.0 < outcome.queue_s <= outcome.total_s
    gate.open()
    async with asyncio.timeout(5):
        while plane.worker.admission.queued:
            await asyncio.sleep(0.005)
    assert len(first.bodies) == 1
    holder.close()


async def test_the_workers_own_limit(make: Make, first: Upstream) -> None:
    """Over ``max_inflight`` requests are shed at once; what ends makes room."""
    gate = Gate(first)
    plane = await make({"a": [first.url]}, gateway={"max_inflight": 2}, pool={"a": {"timeouts": {"first_byte": "9s"}}})
    held = [await plane.send(CHAT) for _ in range(2)]
    await gate.reached(2)
    reply = await plane.ask(CHAT)
    assert (reply.status, reply.code, reply.header["retry-after"]) == (429, "capacity_exceeded", "1")
    held[0][1].close()  # a client that leaves makes room like one that was answered
    assert [(await plane.outcome(count)).kind.result for count in (1, 2)] == ["shed", "client_cancelled"]
    gate.waiting.pop(0)
    gate.open()
    await held[1][0].read()
    held[1][1].close()
    first.script = lambda _body, writer: writer.write(answer(OK))
    assert [(await plane.ask(CHAT)).status for _ in range(4)] == [200] * 4
    assert plane.worker.admission.inflight == 0


async def test_a_request_over_the_border_of_a_minute_frees_nobody(make: Make, first: Upstream) -> None:
    """The end of a request that began a minute ago leaves what was charged since."""
    gate = Gate(first)
    plane = await make(
        {"a": [first.url]},
        tenants=limited(requests_per_minute=3),
        pool={"a": {"timeouts": {"first_byte": "9s"}}},
    )
    wall = 6_059.0
    plane.worker.pipeline._wall = lambda: wall
    key = {"authorization": f"Bearer {KEY}"}
    reader, writer = await plane.send(CHAT, **key)
    await gate.reached(1)
    held = list(gate.waiting)
    first.script = lambda _body, other: other.write(answer(OK))
    wall = 6_061.0
    assert [(await plane.ask(CHAT, **key)).status for _ in range(2)] == [200, 200]
    held[0].write(answer(OK.replace(b'"completion_tokens":2', b'"completion_tokens":200')))
    assert b"200" in await reader.read()
    writer.close()
    assert (await plane.ask(CHAT, **key)).status == 429


async def test_what_was_shed_costs_no_tokens(make: Make, first: Upstream) -> None:
    """No pool saw the prompt, so the tenant gets its tokens back."""
    gate = Gate(first)
    plane = await make(
        {"a": [first.url]},
        tenants=limited(tokens_per_minute=100_000),
        pool={"a": {"limits": {"inflight": 1}, "timeouts": {"first_byte": "9s"}}},
        gateway={"queue": {"wait": "0s"}},
    )
    key = {"authorization": f"Bearer {KEY}"}
    _, writer = await plane.send(CHAT, **key)
    await gate.reached(1)
    before = plane.worker.board.used(_slot(plane), plane.worker.pipeline._wall())[1]
    reply = await plane.ask({**CHAT, "messages": [{"role": "user", "content": "word " * 500}]}, **key)
    assert (reply.status, (await plane.outcome()).kind.result) == (429, "shed")
    assert plane.worker.board.used(_slot(plane), plane.worker.pipeline._wall())[1] <= before
    writer.close()


async def test_a_fault_of_one_that_waits_is_its_own(make: Make, first: Upstream) -> None:
    """The request whose end made room gets its answer; the one that could not be started gets a 500."""
    gate = Gate(first)
    plane = await make({"a": [first.url]}, pool={"a": {"limits": {"inflight": 1}, "timeouts": {"first_byte": "9s"}}})
    reader, writer = await plane.send(CHAT)
    await gate.reached(1)
    waiting = [asyncio.create_task(plane.ask(CHAT)) for _ in range(2)]
    await queued(plane, 2)
    forwarder = plane.worker.forwarder
    clock, drain = forwarder.clock, forwarder.on_release

    def stopped() -> float:
        forwarder.clock = clock
        raise ZeroDivisionError("broken")

    def released() -> None:
        forwarder.on_release = drain
        forwarder.clock = stopped  # the next to look at it is the start of the first that waits
        drain()

    forwarder.on_release = released
    gate.open()
    assert b"200" in await reader.read()
    await gate.reached(1)
    gate.open()
    assert sorted([(await task).status for task in waiting]) == [200, 500]
    assert [type(error) for error in plane.errors] == [ZeroDivisionError]
    plane.errors.clear()
    writer.close()


async def test_a_table_that_comes_while_requests_wait_does_not_lose_them(
    make: Make, first: Upstream, second: Upstream
) -> None:
    """They were decided by the old one and are served by it, although its endpoint is gone from the new."""
    gate = Gate(first)
    limits = {"a": {"limits": {"inflight": 1}, "timeouts": {"first_byte": "9s"}}}
    plane = await make({"a": [first.url]}, pool=limits)
    reader, writer = await plane.send(CHAT)
    await gate.reached(1)
    waiting = asyncio.create_task(plane.ask(CHAT))
    await queued(plane, 1)
    gone = next(iter(plane.worker.fleet.views.values()))
    plane.apply(policy_of({"a": [second.url]}, pool=limits))
    gate.open()
    assert b"200" in await reader.read()
    await gate.reached(1)
    gate.open()
    assert (await waiting).status == 200
    assert (await plane.outcome(2)).kind.generation == 1
    assert (gone.inflight, gone.connections.idle, plane.worker.board.inflight(gone.row)) == (0, 0, 0)
    assert (await plane.ask(CHAT)).status == 200
    assert len(second.bodies) == 1
    writer.close()
