"""The official client sends, and what came back is kept as it came. The other side is the simulated runtime."""

import sys
import time
from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from gateway.demo.client import Answer, ClientError, Clients, follows_schema, require_openai, right
from gateway.demo.workload import MODEL, Item, Kind
from gateway.simulator.config import Config
from gateway.simulator.server import Server

CHAT = {"model": MODEL, "max_tokens": 8, "messages": [{"role": "user", "content": "Hello"}]}


@pytest.fixture
async def clients() -> AsyncIterator[Clients]:
    """A client for one tenant, of a runtime that serves one model."""
    server = Server(Config(model=MODEL), time.time, time.time_ns())
    await server.start("127.0.0.1", 0, None)
    async with Clients(f"http://127.0.0.1:{server.bound}/v1", {"acme": "key"}) as found:
        yield found
    await server.stop()


@pytest.mark.parametrize("stream", [True, False])
async def test_an_answer_is_read_to_its_end(clients: Clients, stream: bool) -> None:
    """Streamed or not, text comes; a stream has a first moment, a whole answer has none."""
    item = Item(1, Kind.CHAT, "acme", {**CHAT, "stream": stream})
    answer = await clients.send(item)
    assert (answer.status, answer.error) == (200, "")
    assert answer.text
    assert (answer.ttft_s >= 0) is stream
    assert answer.took_s >= answer.ttft_s
    assert right(item, answer)


async def test_a_refusal_keeps_its_code(clients: Clients) -> None:
    """The status and the words of the error come back, without a retry."""
    item = Item(1, Kind.UNKNOWN_MODEL, "acme", {**CHAT, "model": "nope"}, frozenset({404}))
    answer = await clients.send(item)
    assert answer.status == 404
    assert "nope" in answer.error
    assert right(item, answer)


@pytest.mark.parametrize("good", [True, False])
async def test_a_word_on_an_answer_is_told(good: bool) -> None:
    """By the id that the gateway gave it, over the same client and with the same key."""
    told = []

    async def feedback(request: web.Request) -> web.Response:
        told.append((request.headers["Authorization"], await request.json()))
        return web.json_response({}, status=202)

    app = web.Application()
    app.router.add_post("/v1/feedback", feedback)
    item, answer = Item(1, Kind.CHAT, "acme", dict(CHAT)), Answer(1, 200, 0.1, request_id="id-1")
    async with TestServer(app) as server, Clients(f"http://127.0.0.1:{server.port}/v1", {"acme": "key"}) as found:
        assert await found.judge(item, answer, good=good)
    assert told == [("Bearer key", {"request_id": "id-1", "label": "good" if good else "bad"})]


async def test_a_word_that_is_not_taken_is_no_error(clients: Clients) -> None:
    """Where nobody takes feedback, or nobody is there, the application goes on."""
    item, answer = Item(1, Kind.CHAT, "acme", dict(CHAT)), Answer(1, 200, 0.1, request_id="id-1")
    assert not await clients.judge(item, answer, good=True)
    async with Clients("http://127.0.0.1:1/v1", {"acme": "key"}) as found:
        assert not await found.judge(item, answer, good=True)


async def test_nobody_there_is_no_status() -> None:
    """A connection that fails is status 0, which is right for no request."""
    item = Item(1, Kind.CHAT, "acme", dict(CHAT))
    async with Clients("http://127.0.0.1:1/v1", {"acme": "key"}) as found:
        answer = await found.send(item)
    assert answer.status == 0
    assert answer.error
    assert not right(item, answer)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"sky": "rain", "day": "Fri", "celsius": 9}', True),
        ('{"sky": "rain", "day": "Fri"}', False),
        ('{"sky": "fog", "day": "Fri", "celsius": 9}', False),
        ('{"sky": "rain", "day": "Fri", "celsi', False),
        ("It rains.", False),
    ],
)
def test_json_is_held_to_its_schema(text: str, expected: bool) -> None:
    """Well-formed is not enough, and a cut answer is none."""
    assert follows_schema(text) is expected


def test_a_missing_sdk_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the package the person reads what to install."""
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(ClientError, match=r"quantgate\[demo\]"):
        require_openai()


def test_only_what_may_come_is_right() -> None:
    """A limited tenant may be served or not; anything else is wrong."""
    item = Item(1, Kind.TRIAL, "trial", {}, frozenset({200, 429}))
    assert [right(item, Answer(1, status, 0.1)) for status in (200, 429, 500, 0)] == [True, True, False, False]
