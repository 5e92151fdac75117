"""Sending: bounded, unchanged but for the model's name, and a pool that fails is data."""

import asyncio
import json
from typing import Any

import pytest

from gateway.cli.replay.given import Item
from gateway.cli.replay.sending import Pace, Reply, Sender, Target, body_for, bounded, send_all
from tests.unit.cli.replay.pools import PoolServer, chat, serving

CHAT = "/v1/chat/completions"


def good(_: dict[str, Any]) -> tuple[int, str]:
    return 200, "hello"


def item(name: str = "a", **fields: Any) -> Item:
    return Item(name, CHAT, chat(name, **fields))


def send(target: Target, *items: Item, timeout_s: float = 20.0) -> list[Reply]:
    async def run() -> list[Reply]:
        async with Sender(timeout_s, 4) as sender:
            return [await sender.send(one, target) for one in items]

    return asyncio.run(run())


def test_an_answer_with_its_times() -> None:
    """Streamed or not; marked as a replay, with the target's token."""
    pool = PoolServer(good)
    with serving(pool):
        whole, streamed = send(Target("p", (pool.url,), authorization="Bearer t"), item(), item(stream=True))
    assert whole.good and b"hello" in whole.raw
    assert streamed.good and streamed.raw.endswith(b"data: [DONE]\n\n")
    assert 0.0 <= whole.first_s <= whole.total_s
    assert (pool.headers[0]["x-quantgate-replay"], pool.headers[0]["authorization"]) == ("1", "Bearer t")
    assert pool.asked[0] == chat("a")


def event(text: str, **more: Any) -> bytes:
    return b"data: " + json.dumps({"choices": [{"index": 0, "delta": {"content": text}}], **more}).encode() + b"\n\n"


@pytest.mark.parametrize(
    ("fields", "pieces", "per_token_s"),
    [
        ({"stream": True}, 9, 0.25),
        ({"stream": True, "n": 3}, 9, -1.0),  # side by side
        ({"stream": True}, 1, -1.0),  # held back until the end
    ],
)
def test_the_pace_of_a_stream(fields: dict[str, Any], pieces: int, per_token_s: float) -> None:
    """From its first content on, over the tokens that the pool tells, where they came one after another."""
    pace = Pace(chat("a", **fields), 100.0)
    pace.see(event(""), 100.5)
    for number in range(pieces):
        pace.see(event("x"), 101.0 + number / 4)
    end = b'data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":9}}\n\ndata: [DONE]\n\n'
    pace.see(end, 101.0 + (pieces - 1) / 4)
    reply = pace.reply(200, b"", 104.0)
    assert (reply.first_s, reply.ttft_s, reply.total_s, reply.tokens) == (0.5, 1.0, 4.0, 9)
    assert reply.per_token_s == per_token_s


def test_a_whole_answer_tells_its_tokens_and_no_pace() -> None:
    """What is not streamed has no first token that anybody could see."""
    pace = Pace(chat("a"), 100.0)
    pace.see(b"{}", 102.0)
    reply = pace.reply(200, b'{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":7}}', 102.0)
    assert (reply.first_s, reply.ttft_s, reply.per_token_s, reply.tokens) == (2.0, -1.0, -1.0, 7)


def test_streams_are_asked_for_their_usage_as_the_gateway_asks() -> None:
    """Unless the request speaks of it, or the pool does not take the wish."""
    target = Target("p", ("http://a",))
    assert body_for(item(stream=True), target)["stream_options"] == {"include_usage": True}
    assert body_for(item(stream=True, stream_options={"include_usage": False}), target) == chat(
        "a", stream=True, stream_options={"include_usage": False}
    )
    assert body_for(item(stream=True), Target("p", ("http://a",), stream_usage=False)) == chat("a", stream=True)
    assert body_for(Item("a", "/v1/responses", {"stream": True}), target) == {"stream": True}


def test_failures_are_data() -> None:
    """An error status, nobody there, no answer in time, an answer without end."""
    pool = PoolServer(lambda _: (503, "busy"))
    slow = PoolServer(good, delay_s=5.0)
    large = PoolServer(lambda _: (200, "x" * (9 * 1024 * 1024)))
    with serving(pool, slow, large):
        (busy,) = send(Target("p", (pool.url,)), item())
        (late,) = send(Target("p", (slow.url,)), item(), timeout_s=0.1)
        (long,) = send(Target("p", (large.url,)), item())
    (gone,) = send(Target("p", ("http://127.0.0.1:1",)), item())
    assert (busy.status, busy.good) == (503, False)
    assert (late.status, late.good) == (0, False) and "0.1 s" in late.error
    assert not long.good and "8 MiB" in long.error
    assert gone.status == 0 and gone.error


def test_only_the_models_name_is_changed() -> None:
    """By the target's own map, else by the name that was asked for, else not at all."""
    given = item(extra={"model": "untouched"})
    assert body_for(given, Target("p", ())) is given.body
    assert body_for(given, Target("p", (), "up"))["model"] == "up"
    mapped = body_for(given, Target("p", (), None, {"m": "mine"}))
    assert mapped == {**given.body, "model": "mine"}
    assert given.body["model"] == "m"


def test_no_pool_is_always_first() -> None:
    """Each request begins with another one, so that none is always warmed by the others; replies keep their order."""
    order: list[str] = []

    def noting(name: str) -> PoolServer:
        return PoolServer(lambda _: (order.append(name), (200, name))[1])  # type: ignore[func-returns-value]

    pools = [noting("a"), noting("b"), noting("c")]

    async def run() -> list[Reply]:
        async with Sender(20.0, 4) as sender:
            targets = [Target(str(index), (pool.url,)) for index, pool in enumerate(pools)]
            return await send_all(sender, item(), targets, 1)

    with serving(*pools):
        replies = asyncio.run(run())
    assert order == ["b", "c", "a"]
    assert [name in reply.raw.decode() for name, reply in zip("abc", replies, strict=True)] == [True] * 3


def test_the_load_is_bounded_and_nothing_is_left_out() -> None:
    """Never more requests under way than asked for; every item once."""
    pool = PoolServer(good, delay_s=0.02)
    done: list[str] = []

    async def run() -> None:
        async with Sender(20.0, 20) as sender:
            items = [item(str(index)) for index in range(20)]
            await bounded(sender, items, [Target("p", (pool.url,))], 3, lambda one, _: done.append(one.id))

    with serving(pool):
        asyncio.run(run())
    assert pool.most_at_once == 3
    assert sorted(done, key=int) == [str(index) for index in range(20)]


def test_endpoints_take_turns() -> None:
    """A pool of several is asked at all of them."""
    one, two = PoolServer(good), PoolServer(good)
    with serving(one, two):
        send(Target("p", (one.url, two.url)), *(item() for _ in range(4)))
    assert (len(one.asked), len(two.asked)) == (2, 2)
