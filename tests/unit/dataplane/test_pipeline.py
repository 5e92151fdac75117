"""A request's way to its decision: refusals name their reason, every request leaves exactly one outcome."""

import asyncio
import gzip
import threading
from hashlib import sha256

import orjson
import pytest

from gateway.dataplane import pipeline
from gateway.dataplane.decoding import plain
from gateway.dataplane.exchange import NO_FACTS, Exchange
from gateway.model.enums import Api
from tests.unit.dataplane.conftest import Make
from tests.unit.dataplane.parts import Client
from tests.unit.dataplane.plane import CHAT, OK, Upstream, answer, policy_of


async def test_a_plain_request_is_decided_served_and_recorded(make: Make, first: Upstream) -> None:
    """The answer carries the decision; the outcome has the bucket, the rule, tokens and one attempt."""
    plane = await make({"a": [first.url]})
    reply = await plane.ask(CHAT)
    assert reply.status == 200
    assert reply.json["choices"][0]["message"]["content"] == "hello"
    assert reply.header["x-quantgate-pool"] == "a"
    assert reply.header["x-quantgate-rule"] == "all"
    outcome = await plane.outcome()
    assert (outcome.kind.result, outcome.kind.pool, outcome.kind.rule, outcome.kind.model) == ("ok", "a", "all", "m")
    assert (outcome.prompt_tokens, outcome.completion_tokens, len(outcome.attempts)) == (7, 2, 1)
    assert outcome.request_id == reply.header["x-quantgate-request-id"]
    assert outcome.overhead_s >= 0.0


async def test_the_pool_gets_its_own_name_and_credential(make: Make, first: Upstream) -> None:
    """Alias and canonical name become the pool's model name; the client's key stays here, the pool's goes out."""
    plane = await make({"a": [first.url]}, pool={"a": {"api_key": "env:POOL_KEY"}})
    body = b'{ "model":"gpt-4o",  "big":18446744073709551617, "messages":[{"role":"user","content":"hi"}]}'
    reply = await plane.ask(body, authorization="Bearer sk-client")
    assert reply.status == 200
    assert first.bodies[0] == body.replace(b'"gpt-4o"', b'"up"')
    assert b"secret-of-env:POOL_KEY" in first.heads[0]
    assert b"sk-client" not in first.heads[0]


@pytest.mark.parametrize(
    ("body", "status", "code", "result"),
    [
        (b"{", 400, "invalid_json", "client_error"),
        ({"model": "nope", "messages": [{"role": "user", "content": "x"}]}, 404, "model_not_found", "not_found"),
        ({"model": "m"}, 400, None, "client_error"),
    ],
)
async def test_refusals_are_answered_and_recorded(
    make: Make, first: Upstream, body: object, status: int, code: str | None, result: str
) -> None:
    """OpenAI's error shape, no attempt at any pool, and an outcome all the same."""
    plane = await make({"a": [first.url]})
    reply = await plane.ask(body)  # type: ignore[arg-type]
    assert reply.status == status
    assert code is None or reply.code == code
    outcome = await plane.outcome()
    assert (outcome.kind.result, outcome.kind.status, outcome.attempts) == (result, status, ())
    assert first.bodies == []


async def test_long_bodies_are_understood_in_a_thread(make: Make, first: Upstream) -> None:
    """A body over the inline bound is served as any other, with the right length class."""
    plane = await make({"a": [first.url]})
    long = {"model": "m", "messages": [{"role": "user", "content": "word " * 60_000}]}
    reply = await plane.ask(long)
    assert reply.status == 200
    outcome = await plane.outcome()
    assert outcome.prompt_tokens_estimated > 30_000
    assert outcome.kind.length != "short"


async def test_a_client_that_leaves_while_its_body_is_understood_is_cancelled(make: Make, first: Upstream) -> None:
    """Gone before the decision: no attempt is made, and the outcome says who ended it."""
    plane = await make({"a": [first.url]})
    _, writer = await plane.send({"model": "m", "messages": [{"role": "user", "content": "word " * 200_000}]})
    await writer.drain()
    writer.close()
    outcome = await plane.outcome()
    assert outcome.kind.result == "client_cancelled"


async def test_compressed_bodies_are_read(make: Make, first: Upstream) -> None:
    """gzip is decoded before it is read and forwarded plain; other codings are refused by name."""
    plane = await make({"a": [first.url]})
    reply = await plane.ask(gzip.compress(orjson.dumps(CHAT)), content_encoding="gzip")
    assert reply.status == 200
    assert orjson.loads(first.bodies[0])["messages"] == CHAT["messages"]
    assert (await plane.ask(b"x", content_encoding="br")).status == 415


async def test_key_errors(make: Make, first: Upstream) -> None:
    """Without anonymous callers a missing key is 401 and recorded as such."""
    digest = "sha256:" + "0" * 64
    plane = await make({"a": [first.url]}, tenants={"t": {"keys": [digest]}, "anonymous": {"allow": False}})
    reply = await plane.ask(CHAT)
    assert (reply.status, reply.code) == (401, "missing_api_key")
    assert (await plane.outcome()).kind.result == "unauthorized"


async def test_long_bodies_are_not_taken_from_strangers(make: Make, first: Upstream) -> None:
    """401 at the head, before a worker keeps megabytes for somebody without a key."""
    digest = "sha256:" + sha256(b"sk-known").hexdigest()
    plane = await make({"a": [first.url]}, tenants={"t": {"keys": [digest]}, "anonymous": {"allow": False}})
    head = (
        "POST /v1/chat/completions HTTP/1.1\r\nHost: g\r\nContent-Length: 9999999\r\nAuthorization: Bearer {}\r\n\r\n"
    )
    reader, writer = await asyncio.open_connection("127.0.0.1", plane.port)
    writer.write(head.format("sk-unknown").encode())
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 401")
    assert (await reader.read()).count(b"invalid_api_key") == 1
    writer.close()
    body = {**CHAT, "messages": [{"role": "user", "content": "word " * 100_000}]}
    assert (await plane.ask(body, authorization="Bearer sk-known")).status == 200


async def test_models_are_listed_and_fetched(make: Make, first: Upstream) -> None:
    """The list has models and aliases, and each entry can be fetched by its id."""
    plane = await make({"a": [first.url]})
    reader, writer = await plane.send(b"", "/v1/models", method="GET")
    listed = orjson.loads((await reader.read()).partition(b"\r\n\r\n")[2])
    writer.close()
    assert [entry["id"] for entry in listed["data"]] == ["gpt-4o", "m"]
    reader, writer = await plane.send(b"", "/v1/models/gpt-4o", method="GET")
    assert b'"root":"m"' in await reader.read()
    writer.close()


async def test_feedback_is_taken_and_sent_on(make: Make, first: Upstream) -> None:
    """202 for an application's word; 400 with the field for a bad one."""
    plane = await make({"a": [first.url]})
    assert (await plane.ask({"request_id": "x-1", "label": "bad"}, "/v1/feedback")).status == 202
    assert [word.label for word in plane.worker.link._words] == ["bad"]
    bad = await plane.ask({"label": "bad"}, "/v1/feedback")
    assert (bad.status, bad.json["error"]["param"]) == (400, "request_id")


async def test_a_fault_of_ours_costs_one_answer(make: Make, first: Upstream) -> None:
    """An exception in a step is a 500 with the request's id; the next request is served."""
    plane = await make({"a": [first.url]})
    rand = plane.worker.pipeline._rand
    plane.worker.pipeline._rand = lambda: 1 / 0  # drawn to choose the answers whose texts are kept
    reply = await plane.ask(CHAT)
    assert (reply.status, reply.code) == (500, "internal_error")
    assert len(plane.errors) == 1
    plane.errors.clear()
    plane.worker.pipeline._rand = rand
    assert (await plane.ask(CHAT)).status == 200
    assert (await plane.outcome()).kind.result == "internal"


@pytest.mark.parametrize("clock", ["_wall", "_clock"])
async def test_a_clock_that_fails_costs_one_answer(make: Make, first: Upstream, clock: str) -> None:
    """The first thing that is done for a request may fail as any other: one answer, one outcome, and on it goes."""
    plane = await make({"a": [first.url]})
    working = getattr(plane.worker.pipeline, clock)

    def fails_once() -> float:
        setattr(plane.worker.pipeline, clock, working)
        raise OSError("no clock")

    setattr(plane.worker.pipeline, clock, fails_once)
    reply = await plane.ask(CHAT)
    assert (reply.status, reply.code, len(plane.errors)) == (500, "internal_error", 1)
    plane.errors.clear()
    assert (await plane.ask(CHAT)).status == 200
    assert [(await plane.outcome(number)).kind.result for number in (1, 2)] == ["internal", "ok"]


async def test_what_fails_after_the_end_costs_no_outcome(make: Make, first: Upstream) -> None:
    """A turn that cannot be remembered was served all the same, and is told of once."""
    plane = await make({"a": [first.url]})

    def forget(_body: bytes, writer: asyncio.StreamWriter) -> None:
        plane.worker.pipeline._conversations.close()
        writer.write(answer(OK))

    first.script = forget
    reply = await plane.ask({**CHAT, "prompt_cache_key": "talk"})
    assert (reply.status, len(plane.errors)) == (200, 1)
    plane.errors.clear()
    assert (await plane.outcome()).kind.result == "ok"
    assert len(plane.outcomes) == 1
    assert plane.worker.admission.inflight == 0


async def test_no_request_before_there_is_a_policy(make: Make, first: Upstream) -> None:
    """Without a generation the answer is 503 with Retry-After, in OpenAI's shape."""
    plane = await make({"a": [first.url]})
    plane.worker.pipeline.current = None
    reply = await plane.ask(CHAT)
    assert (reply.status, reply.code, reply.header["retry-after"]) == (503, "starting", "1")


async def test_requests_keep_their_generation(make: Make, first: Upstream, second: Upstream) -> None:
    """A request under way ends by the table it began with, whatever is applied meanwhile."""
    gate = asyncio.Event()

    async def slow(_body: bytes, writer: asyncio.StreamWriter) -> None:
        await gate.wait()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

    first.script = slow
    plane = await make({"a": [first.url]})
    reader, writer = await plane.send(CHAT)
    async with asyncio.timeout(5):
        while not first.bodies:
            await asyncio.sleep(0.005)
    policy = dict(plane.policy)
    policy["pools"] = {"b": {**policy["pools"]["a"], "endpoints": [second.url]}}
    policy["routes"] = [{"name": "new", "pools": ["b"]}]
    plane.apply(policy)
    assert (await plane.ask(CHAT)).header["x-quantgate-rule"] == "new"
    gate.set()
    old = await reader.read()
    writer.close()
    assert b"x-quantgate-rule: all" in old
    generations = {(await plane.outcome(index)).kind.generation for index in (1, 2)}
    assert generations == {1, 2}


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "0af7651916cd43dd8448eb211c80319c"),
        ("00-<script>alert(1)</script>0000000-b7ad6b7169203331-01", ""),
        ("00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01", ""),
        ("short", ""),
    ],
)
async def test_only_trace_ids_get_into_records(make: Make, first: Upstream, sent: str, kept: str) -> None:
    """A record takes no words of a client's choice."""
    plane = await make({"a": [first.url]})
    assert (await plane.ask(CHAT, traceparent=sent)).status == 200
    assert (await plane.outcome()).trace_id == kept


async def test_a_conversation_outlives_the_length_classes_it_was_remembered_by(make: Make, first: Upstream) -> None:
    """A policy with fewer classes comes into force between two turns: the second is served like the first."""
    plane = await make({"a": [first.url]}, classify={"lengths": {f"c{index}": 10 * 4**index for index in range(6)}})
    history = [{"role": "user", "content": "word " * 3000}, {"role": "assistant", "content": "yes"}]
    turn = {**CHAT, "messages": [*history, {"role": "user", "content": "go on"}], "prompt_cache_key": "talk"}
    assert (await plane.ask(turn)).status == 200
    plane.apply(policy_of({"a": [first.url]}, classify={"lengths": {"one": 100}}))
    assert (await plane.ask({**turn, "messages": [*CHAT["messages"], *turn["messages"]]})).status == 200
    assert plane.errors == []


async def test_the_body_of_a_client_that_left_is_not_read(make: Make, first: Upstream) -> None:
    """It waited for its turn in the thread; nobody needs its facts."""
    plane = await make({"a": [first.url]})
    current = plane.worker.pipeline.current
    assert current is not None
    client = Client()
    exchange = Exchange(
        client.connection,
        client.ask(body=orjson.dumps(CHAT)),
        api=Api.CHAT,
        request_id="r-1",
        generation=current.generation,
        wall_at=0.0,
        on_finish=lambda *_: None,
    )
    exchange.known = plane.worker.pipeline._know(exchange, current)
    exchange.gone()
    plane.worker.pipeline._understand(exchange, current.sizes)
    assert exchange.facts is NO_FACTS


async def test_nothing_is_decompressed_on_the_loop(
    make: Make, first: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Thirty kilobytes may be thirty megabytes: however short a compressed body is, a thread unpacks it."""
    threads: list[str] = []

    def plain_there(body: bytes, coding: bytes, most: int) -> bytes:
        threads.append(threading.current_thread().name)
        return plain(body, coding, most)

    monkeypatch.setattr(pipeline, "plain", plain_there)
    plane = await make({"a": [first.url]}, gateway={"max_body": "100kB"})
    assert (await plane.ask(gzip.compress(orjson.dumps(CHAT)), content_encoding=" GZip ")).status == 200
    bomb = await plane.ask(gzip.compress(b"x" * 5_000_000), content_encoding="gzip")
    assert (bomb.status, bomb.code) == (413, "request_too_large")
    assert [name.startswith("bodies") for name in threads] == [True, True]
