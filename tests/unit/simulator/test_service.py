"""Requests from their body to the engine: drawing, caching, counting."""

from collections import Counter
from typing import Any

from gateway.simulator.config import Capacity, Config
from gateway.simulator.fault import Fault, When
from tests.unit.simulator.rig import PAY, chat, running


async def _statuses(config: Config, bodies: list[dict[str, Any]]) -> Counter[int]:
    async with running(config) as client:
        return Counter([(await client.post("/v1/chat/completions", body))[0] for body in bodies])


async def test_rates_are_met_and_repeatable() -> None:
    """A fault of 30 % strikes about 30 % of equal requests, and the same ones in another run."""
    config = Config(faults=(Fault("status", probability=0.3, status=503),))
    first = await _statuses(config, [chat()] * 200)
    assert 35 <= first[503] <= 85
    assert await _statuses(config, [chat()] * 200) == first


async def test_quality_goes_by_request() -> None:
    """Equal prompts share a quality fault, different ones are drawn apart."""
    config = Config(faults=(Fault("empty", probability=0.5),))
    async with running(config) as client:

        async def content(text: str) -> bool:
            _, answer = await client.post("/v1/chat/completions", chat(text))
            return bool(answer["choices"][0]["message"]["content"])

        same = {await content("about whales") for _ in range(10)}
        apart = [await content(f"about {number}") for number in range(60)]
    assert len(same) == 1
    assert 15 <= sum(apart) <= 45


async def test_conditions_hold_end_to_end() -> None:
    """A fault with a condition strikes only the requests it describes."""
    config = Config(faults=(Fault("status", when=When(tools=True)),))
    assert await _statuses(config, [chat(), chat(tools=[PAY])]) == Counter({200: 1, 500: 1})


async def test_prefixes_are_cached() -> None:
    """The second turn of a conversation reports the first one's tokens as cached, and the counters move."""
    system = {"role": "system", "content": "long instructions " * 40}
    first = {"model": "sim", "messages": [system, {"role": "user", "content": "one"}]}
    second = {"model": "sim", "messages": [system, {"role": "user", "content": "two"}]}
    async with running() as client:
        cached = []
        for body in (first, second):
            _, answer = await client.post("/v1/chat/completions", body)
            cached.append(answer["usage"]["prompt_tokens_details"]["cached_tokens"])
        assert cached[0] == 0
        assert cached[1] >= 160
        assert (await client.state())["tokens"]["cached"] == cached[1]
    async with running(Config(prefix_cache=False)) as client:
        for body in (first, second):
            _, answer = await client.post("/v1/chat/completions", body)
            assert answer["usage"]["prompt_tokens_details"]["cached_tokens"] == 0


async def test_full_engine_refuses_as_vllm_does() -> None:
    """With slots and queue full the answer is 503, counted as a rejection."""
    config = Config(capacity=Capacity(running=1, queue=0), faults=(Fault("hang", times=1),))
    async with running(config) as client:
        request = client.session.post(client.url("/v1/chat/completions"), json=chat())
        import asyncio

        hanging = asyncio.ensure_future(request.__aenter__())
        while (await client.state())["running"] == 0:
            await asyncio.sleep(0.002)
        status, answer = await client.post("/v1/chat/completions", chat())
        assert (status, answer["error"]["type"]) == (503, "Service Unavailable")
        assert (await client.state())["rejections"] == 1
        hanging.cancel()


async def test_ids_are_never_the_same() -> None:
    """Every answer has an id of its own, embeddings included."""
    async with running() as client:
        ids = [(await client.post("/v1/chat/completions", chat()))[1]["id"] for _ in range(5)]
        ids += [(await client.post("/v1/embeddings", {"input": "x"}))[1]["id"] for _ in range(5)]
    assert len(set(ids)) == 10


async def test_requests_are_remembered_without_their_text() -> None:
    """What reached the simulator can be asked for: shape and outcome, never the prompt."""
    async with running(Config(record=2)) as client:
        for number in range(3):
            await client.post("/v1/chat/completions", chat(f"secret {number}", tools=[PAY]))
        _, text = await client.get("/sim/requests")
        assert b"secret" not in text
        assert text.count(b'"tools":["pay"]') == 2
        assert text.count(b'"outcome":"ok"') == 2
