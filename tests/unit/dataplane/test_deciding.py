"""After the table's answer: arms, tool loops that only move up, and the last resort for long contexts."""

import asyncio
from typing import Any

import orjson
import pytest

from gateway.core.openai import read
from gateway.model.enums import Api
from tests.unit.dataplane.conftest import Make
from tests.unit.dataplane.plane import CHAT, Plane, Reply, Upstream, chunk, event, stream_head

INT4 = {
    "precision": {"weights": "int4", "activations": "bf16", "kv_cache": "bf16"},
    "hardware": {"device": "cpu"},
}
TOOLS = [{"type": "function", "function": {"name": "look", "parameters": {}}}]
ASKED = {"role": "user", "content": "look it up"}
CALLED = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}],
}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "42"}


async def turn(plane: Plane, *messages: dict[str, Any]) -> str:
    reply = await plane.ask({"model": "m", "messages": list(messages), "tools": TOOLS})
    assert reply.status == 200
    return reply.header["x-quantgate-pool"]


async def test_a_tool_loop_never_moves_to_a_coarser_precision(make: Make, first: Upstream, second: Upstream) -> None:
    """Begun on bf16, the loop stays there although the route would now prefer int4; a new question may use int4."""
    plane = await make({"bf16": [first.url]})
    assert await turn(plane, ASKED) == "bf16"
    policy = dict(plane.policy)
    policy["pools"] = {**policy["pools"], "int4": {**policy["pools"]["bf16"], **INT4, "endpoints": [second.url]}}
    policy["routes"] = [{"name": "cheap", "pools": ["int4", "bf16"]}]
    plane.apply(policy)
    assert await turn(plane, ASKED, CALLED, RESULT) == "bf16"
    assert "tool-loop-keeps-precision" in (await plane.outcome(2)).kind.constraints
    assert await turn(plane, {"role": "user", "content": "something else"}) == "int4"


async def test_a_tool_loop_may_move_up(make: Make, first: Upstream, second: Upstream) -> None:
    """Begun on int4 and now routed to bf16: nothing holds it back."""
    plane = await make({"int4": [second.url]}, pool={"int4": INT4})
    assert await turn(plane, ASKED) == "int4"
    policy = dict(plane.policy)
    policy["pools"] = {**policy["pools"], "bf16": {**policy["pools"]["int4"], "endpoints": [first.url]}}
    policy["pools"]["bf16"]["precision"] = {"weights": "bf16", "activations": "bf16", "kv_cache": "bf16"}
    policy["routes"] = [{"name": "fine", "pools": ["bf16", "int4"]}]
    plane.apply(policy)
    assert await turn(plane, ASKED, CALLED, RESULT) == "bf16"


async def test_a_tool_loop_keeps_its_own_models_precision(make: Make, first: Upstream, second: Upstream) -> None:
    """A session with two models: what the one was served on strikes no pool of the other, nor lengthens its prompts."""
    plane = await make(
        {"bf16": [first.url], "int4": [second.url]},
        pool={"int4": {**INT4, "model": "n"}},
        models={"m": {"aliases": ["m-alias"]}, "n": {}},
    )

    async def ask(model: str, *messages: dict[str, Any]) -> Reply:
        return await plane.ask({"model": model, "messages": list(messages), "tools": TOOLS, "user": "u"})

    long = {"role": "user", "content": "look it up " * 3_000}
    assert (await ask("n", ASKED)).status == 200
    assert (await ask("m-alias", long)).status == 200
    later = [ASKED, {"role": "assistant", "content": "where?"}, ASKED, CALLED, RESULT]
    loop = await ask("n", *later)
    assert (loop.status, loop.header["x-quantgate-pool"]) == (200, "int4")
    own = await ask("m", *later)
    assert own.status == 200
    buckets = [(await plane.outcome(count)).kind.bucket for count in range(1, 5)]
    assert [bucket.split("/")[1] for bucket in buckets] == ["short", "long", "short", "long"]
    places = {(await plane.outcome(count)).conversation for count in range(1, 5)}
    assert len(places) == 1


def rollout() -> dict[str, Any]:
    return {
        "rollouts": [
            {
                "name": "r",
                "buckets": {"task": "chat"},
                "candidate": "int4",
                "baseline": "bf16",
                "stages": [{"weight": "50%"}],
                "guards": ["errors"],
            }
        ],
        "guards": {"errors": {"metric": "error_rate", "limit": "1%"}},
    }


async def test_an_unproven_candidate_gets_its_latched_share_and_no_more(
    make: Make, first: Upstream, second: Upstream
) -> None:
    """Nothing latched: nothing. Half: some conversations, always the same ones. Rolled back: nothing."""
    plane = await make({"int4": [second.url], "bf16": [first.url]}, pool={"int4": INT4}, **rollout())
    bucket = (await plane.ask(CHAT)).header["x-quantgate-bucket"]

    async def served(count: int) -> list[str]:
        replies = [await plane.ask({**CHAT, "user": f"u{index}"}) for index in range(count)]
        return [reply.header["x-quantgate-pool"] for reply in replies]

    assert set(await served(12)) == {"bf16"}
    current = plane.worker.pipeline.current
    assert current is not None
    identity = current.generation.rollouts["r"].identity
    plane.worker.pipeline.deciding.shares = {identity: {bucket: 5000}}
    half = await served(40)
    assert 8 <= half.count("int4") <= 32
    assert await served(40) == half
    plane.worker.pipeline.deciding.shares = {identity: {bucket: -1}}
    assert set(await served(40)) == {"bf16"}


def latch(plane: Plane, share_bp: int, bucket: str) -> None:
    """What control would say of the bucket."""
    current = plane.worker.pipeline.current
    assert current is not None
    plane.worker.pipeline.deciding.shares = {current.generation.rollouts["r"].identity: {bucket: share_bp}}


async def test_counting_tokens_goes_with_its_bucket_and_is_no_evidence(
    make: Make, first: Upstream, second: Upstream
) -> None:
    """An application that counts before each request would halve every rate of failures that a guard sees."""
    plane = await make({"int4": [second.url], "bf16": [first.url]}, pool={"int4": INT4}, **rollout())
    asked = await plane.ask({"model": "m", "prompt": "Hello"}, "/tokenize")
    latch(plane, 10_000, asked.header["x-quantgate-bucket"])
    assert asked.header["x-quantgate-pool"] == "bf16"
    kind = (await plane.outcome()).kind
    assert (kind.bucket, kind.rollout, kind.arm) == (asked.header["x-quantgate-bucket"], "", "none")
    assert plane.worker.forwarder.starts.take(0) is None
    reply = await plane.ask(CHAT)
    assert (reply.header["x-quantgate-bucket"], reply.header["x-quantgate-pool"]) == (kind.bucket, "int4")
    assert (await plane.outcome(2)).kind.rollout == "r"
    assert plane.worker.forwarder.starts.take(0) is not None


def finer_candidate() -> dict[str, Any]:
    """A rollout from four bits to sixteen."""
    found = rollout()
    found["rollouts"][0] |= {"candidate": "bf16", "baseline": "int4", "buckets": {}, "stages": [{"weight": "100%"}]}
    found["rollouts"][0]["control"] = 0.0
    return found


async def test_a_tool_loop_does_not_move_down_after_a_rollback(make: Make, first: Upstream, second: Upstream) -> None:
    """Its candidate gets nothing and the baseline is coarser: refused, and told why; a new question is served."""
    pools = {"bf16": [first.url], "int4": [second.url]}
    plane = await make(pools, pool={"int4": INT4}, **finer_candidate())
    asked = {"model": "m", "messages": [ASKED], "tools": TOOLS}
    bucket = (await plane.ask(asked)).header["x-quantgate-bucket"]
    latch(plane, 10_000, bucket)
    assert await turn(plane, ASKED) == "bf16"
    looping = {"model": "m", "messages": [ASKED, CALLED, RESULT], "tools": TOOLS}
    bucket_of_loop = (await plane.ask(looping)).header["x-quantgate-bucket"]
    latch(plane, -1, bucket_of_loop)
    reply = await plane.ask(looping)
    assert (reply.status, reply.code) == (503, "no_eligible_pool")
    for words in ("rolled back in this bucket", "tool-loop-keeps-precision", "A new conversation"):
        assert words in reply.json["error"]["message"]
    assert reply.header["x-quantgate-rolled-back"] == "bf16"
    assert await turn(plane, {"role": "user", "content": "something else"}) == "int4"


async def test_a_tool_loop_moves_to_another_pool_of_its_precision_after_a_rollback(
    make: Make, first: Upstream, second: Upstream
) -> None:
    """Sideways and up are open to it, where the route and the constraints have such a pool."""
    pools = {"bf16": [first.url], "int4": [second.url], "spare": [first.url]}
    plane = await make(pools, pool={"int4": INT4}, **finer_candidate())
    bucket = (await plane.ask({"model": "m", "messages": [ASKED], "tools": TOOLS})).header["x-quantgate-bucket"]
    latch(plane, 10_000, bucket)
    assert await turn(plane, ASKED) == "bf16"
    looping = {"model": "m", "messages": [ASKED, CALLED, RESULT], "tools": TOOLS}
    latch(plane, -1, (await plane.ask(looping)).header["x-quantgate-bucket"])
    assert await turn(plane, ASKED, CALLED, RESULT) == "spare"


async def test_answers_say_that_a_pool_was_rolled_back(make: Make, first: Upstream, second: Upstream) -> None:
    """Whoever wonders about speed or quality of this bucket sees it; no other answer has the field."""
    plane = await make({"int4": [second.url], "bf16": [first.url]}, pool={"int4": INT4}, **rollout())
    reply = await plane.ask(CHAT)
    assert "x-quantgate-rolled-back" not in reply.header
    latch(plane, -1, reply.header["x-quantgate-bucket"])
    assert (await plane.ask(CHAT)).header["x-quantgate-rolled-back"] == "int4"


async def test_a_stream_that_runs_finishes_on_the_pool_that_was_rolled_back(
    make: Make, first: Upstream, second: Upstream
) -> None:
    """Only what comes after goes to the baseline."""
    plane = await make({"int4": [second.url], "bf16": [first.url]}, pool={"int4": INT4}, **rollout())
    bucket = (await plane.ask(CHAT)).header["x-quantgate-bucket"]
    latch(plane, 10_000, bucket)
    begun, out = asyncio.Event(), asyncio.Event()

    async def script(_body: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(stream_head() + chunk(event("first ")))
        begun.set()
        await out.wait()
        writer.write(chunk(event("last", "stop")) + chunk(b"data: [DONE]\n\n") + chunk(b""))

    second.script = script
    reader, writer = await plane.send({**CHAT, "stream": True})
    async with asyncio.timeout(5):
        await begun.wait()
    latch(plane, -1, bucket)
    assert (await plane.ask(CHAT)).header["x-quantgate-pool"] == "bf16"
    out.set()
    reply = Reply(await reader.read())
    writer.close()
    assert reply.header["x-quantgate-pool"] == "int4"
    assert b"first " in reply.body
    assert b"last" in reply.body
    assert reply.body.rstrip().endswith(b"[DONE]")


async def test_a_context_too_long_for_every_window(make: Make, first: Upstream) -> None:
    """Far too long is a 400 with OpenAI's code; a little over by estimate is the runtime's to judge."""
    plane = await make({"a": [first.url]}, pool={"a": {"context_window": 1000}})
    far = await plane.ask({"model": "m", "messages": [{"role": "user", "content": "word " * 5000}]})
    assert (far.status, far.code) == (400, "context_length_exceeded")
    near = await plane.ask({"model": "m", "messages": [{"role": "user", "content": "word " * 900}], "max_tokens": 400})
    assert near.status == 200


async def test_the_last_resort_keeps_a_tool_loops_precision(make: Make, first: Upstream, second: Upstream) -> None:
    """A coarser pool with a larger window is no way out of a full context in the middle of a loop."""
    windows = {"bf16": {"context_window": 1000}, "int4": {**INT4, "context_window": 1100}}
    plane = await make({"bf16": [first.url], "int4": [second.url]}, pool=windows)
    assert await turn(plane, ASKED) == "bf16"
    messages = [ASKED, CALLED, {**RESULT, "content": "word " * 900}]
    reply = await plane.ask({"model": "m", "messages": messages, "tools": TOOLS})
    assert (reply.status, reply.code) == (503, "no_eligible_pool")
    assert "tool-loop-keeps-precision" in reply.json["error"]["message"]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/tokenize", {"prompt": "word " * 5000}),
        ("/detokenize", {"tokens": [7] * 5000}),
        ("/v1/responses/input_tokens", {"input": "word " * 5000}),
        ("/v1/messages/count_tokens", {"system": "s", "messages": [{"role": "user", "content": "word " * 5000}]}),
    ],
)
async def test_how_long_a_text_is_may_be_asked_of_any_text(
    make: Make, first: Upstream, path: str, body: dict[str, Any]
) -> None:
    """Whoever wants to know whether a text fits gets the pool's answer, not the refusal it wants to avoid."""
    plane = await make({"a": [first.url]}, pool={"a": {"context_window": 1000}})
    assert (await plane.ask({"model": "m", **body}, path=path)).status == 200


async def test_what_other_texts_have_taught_refuses_no_prompt_that_fits(make: Make, first: Upstream) -> None:
    """Digits and Base64 come to many more tokens than the tokenizer counts. Prose that fills most of the window then
    looks too long, but may fit: its runtime has the last word."""
    plane = await make({"a": [first.url]}, pool={"a": {"context_window": 2000}})
    sizing, sizes = plane.worker.pipeline._sizing, plane.worker.pipeline.current.sizes
    body = {"model": "m", "messages": [{"role": "user", "content": "word " * 1700}], "max_tokens": 5}
    reading = read(Api.CHAT, orjson.dumps(body))
    for _ in range(50):
        estimate = sizing.estimate(sizes, "m", reading)
        sizing.learn(sizes, "m", reading.facts, estimate, reported=3 * 1700, cached=0)
    assert sizing.estimate(sizes, "m", reading).tokens > 4000
    assert (await plane.ask(body)).status == 200


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/embeddings", {"input": "word " * 5000, "truncate_prompt_tokens": 512}),
        ("/v1/responses", {"input": "word " * 5000, "truncation": "auto"}),
    ],
)
async def test_a_runtime_that_is_asked_to_cut_gets_any_length(
    make: Make, first: Upstream, path: str, body: dict[str, Any]
) -> None:
    """A client that says how a long text is to be cut gets no refusal for its length."""
    plane = await make({"a": [first.url]}, pool={"a": {"context_window": 1000}})
    assert (await plane.ask({"model": "m", **body}, path=path)).status == 200


async def test_refusals_name_the_constraint(make: Make, first: Upstream) -> None:
    """503, never a silent downgrade, and the text says what stands against it."""
    rule = {"name": "only-16-bit", "when": {"tools": {"use": "declared"}}, "require": {"weights": ["bf16"]}}
    plane = await make({"int4": [first.url]}, pool={"int4": INT4}, constraints=[{**rule, "refuse": True}])
    reply = await plane.ask({**CHAT, "tools": TOOLS})
    assert (reply.status, reply.code) == (503, "no_eligible_pool")
    assert "only-16-bit" in reply.json["error"]["message"]
    assert (await plane.outcome()).kind.result == "no_pool"
