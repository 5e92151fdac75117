"""Teacher-forced scoring of pairs against a stand-in of vLLM over real sockets: what is asked, what comes of it, and
how each way to fail is named."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import msgspec
import pytest
from aiohttp import web

from gateway.control.likelihood import RUNNING_MOST, Likelihood, PairGap, ScoredGap
from gateway.control.likelihood_caution import Caution
from gateway.control.scoring import ScorerDiedError
from gateway.core.comparison import Scoring
from gateway.model.precision import Precision
from gateway.model.proving import Shadow
from gateway.model.table import Endpoint, Pool, Table
from tests.unit.core.test_decide import CLASSIFIER, Settings, always
from tests.unit.dataplane.pair_values import chat_answer, make_leg, make_pair


class Runtime:
    """Answers ``prompt_logprobs`` like vLLM: the prompt's words, each with ``logprob``."""

    def __init__(self) -> None:
        self.logprob = -1.0
        self.status = 200
        self.asked: list[web.Request] = []
        self.bodies: list[dict[str, Any]] = []

    async def start(self) -> "Runtime":
        application = web.Application()
        application.router.add_post("/base/v1/chat/completions", self._answer)
        self._runner = web.AppRunner(application)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.port = self._runner.addresses[0][1]
        return self

    async def stop(self) -> None:
        await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.Response:
        self.asked.append(request)
        body = await request.json()
        self.bodies.append(body)
        words = ["<s>", "q", *(f" {word}" for word in body["messages"][-1]["content"].split())]
        words[2] = words[2].strip()
        entries: list[Any] = [None]
        entries += [
            {str(n): {"logprob": self.logprob, "rank": 1, "decoded_token": word}} for n, word in enumerate(words) if n
        ]
        found = {"choices": [], "prompt_logprobs": entries, "prompt_token_ids": list(range(len(words)))}
        return web.json_response(found, status=self.status)


@pytest.fixture
async def runtimes() -> AsyncIterator[dict[str, Runtime]]:
    found = {name: await Runtime().start() for name in ("bf16", "int4")}
    yield found
    for runtime in found.values():
        await runtime.stop()


def table(runtimes: dict[str, Runtime], runtime: str = "vllm", adapters: tuple[str, ...] = (), **rule: Any) -> Table:
    pools: dict[str, Pool] = {}
    for name, made in runtimes.items():
        endpoint = Endpoint(f"{name}/0", name, "http", "127.0.0.1", made.port, "/base/")
        pools[name] = Pool(
            name,
            "m",
            runtime,
            Precision(name),
            (endpoint,),
            upstream_model=f"up-{name}",
            authorization=b"Bearer key-" + name.encode(),
            adapters={adapter: f"{adapter}-{name}" for adapter in adapters},
        )
    shadow = Shadow("rule", always, "always", 1.0, "m", "int4", "bf16", likelihood=1.0)
    names = {"m": ("m", None), "lora": ("m", "lora")}
    shadows = (msgspec.structs.replace(shadow, **rule),)
    return Table(1, "d", {}, pools, {}, {}, None, names, CLASSIFIER, (), (), Settings(), shadows=shadows)


async def _here(work: Callable[[bytes], bytes], data: bytes) -> bytes:
    return work(data)


async def scored(likelihood: Likelihood, pair: Any, eventually: Callable[..., Awaitable[None]]) -> PairGap | None:
    found: list[PairGap | None] = []
    assert likelihood.wants(pair)
    likelihood.take(pair, found.append)
    await eventually(lambda: bool(found))
    assert len(found) == 1
    return found[0]


def outcomes(likelihood: Likelihood) -> dict[str, int]:
    return {key[2]: int(row[0]) for key, row in likelihood.counted.rows.items()}


async def test_each_answer_is_scored_under_both_pools(runtimes: dict[str, Runtime], eventually: Any) -> None:
    """Four calls with the mark, the pool's own key and name; the gap is how much less likely the other pool finds each
    answer, and its mean is the pair's."""
    likelihood = Likelihood(_here, Caution(lambda: 0.0))
    likelihood.configure(table(runtimes))
    heard: list[ScoredGap] = []
    likelihood.subscribe(heard.append)
    runtimes["int4"].logprob = -1.5
    pair = make_pair(candidate=make_leg(pool="int4", endpoint="int4/0", answer=chat_answer("two words")))
    gap = await scored(likelihood, pair, eventually)
    assert gap is not None
    assert gap.baseline_answer is not None
    assert gap.candidate_answer is not None
    assert gap.baseline_answer.mean_nats == pytest.approx(0.5)
    assert gap.candidate_answer.mean_nats == pytest.approx(-0.5)
    assert gap.mean_nats == pytest.approx(0.0)
    assert [found.gap for found in heard] == [gap]
    for name, runtime in runtimes.items():
        assert [body["messages"][-1]["content"] for body in runtime.bodies] == ["the answer", "two words"]
        assert {body["model"] for body in runtime.bodies} == {f"up-{name}"}
        assert {request.headers["Authorization"] for request in runtime.asked} == {f"Bearer key-{name}"}
        assert {request.headers["x-quantgate-shadow"] for request in runtime.asked} == {"rule"}
    assert outcomes(likelihood) == {"scored": 1}
    await likelihood.stop()


async def test_an_adapter_is_asked_for_by_the_pools_name(runtimes: dict[str, Runtime], eventually: Any) -> None:
    """A request to an adapter is scored under the adapter, as each pool calls it."""

    class Bold(Caution):
        def objection(self, pool: Pool, scoring: Scoring) -> str:
            return ""

    likelihood = Likelihood(_here, Bold(lambda: 0.0))
    likelihood.configure(table(runtimes, adapters=("lora",)))
    request = json.dumps({"model": "lora", "messages": [{"role": "user", "content": "q"}]}).encode()
    assert await scored(likelihood, make_pair(request=request), eventually) is not None
    assert runtimes["int4"].bodies[0]["model"] == "lora-int4"
    await likelihood.stop()


@pytest.mark.parametrize(
    ("change", "outcome"),
    [
        (lambda made, likelihood: setattr(made["int4"], "status", 400), "refused"),
        (lambda made, likelihood: setattr(likelihood, "overloaded", lambda _: True), "busy"),
        (lambda made, likelihood: None, None),
    ],
)
async def test_what_cannot_be_scored_is_named(
    runtimes: dict[str, Runtime], eventually: Any, change: Any, outcome: str | None
) -> None:
    """A pool that refuses, an endpoint at which clients wait: the pair has no gap, and the count says why."""
    likelihood = Likelihood(_here, Caution(lambda: 0.0), busy_pause_s=0.001)
    likelihood.configure(table(runtimes))
    change(runtimes, likelihood)
    gap = await scored(likelihood, make_pair(), eventually)
    assert (gap is None) is (outcome is not None)
    assert outcomes(likelihood) == {outcome or "scored": 1}
    await likelihood.stop()


async def test_a_pool_that_is_gone_and_a_scorer_that_died(runtimes: dict[str, Runtime], eventually: Any) -> None:
    """Neither ends the stage."""
    likelihood = Likelihood(_here, Caution(lambda: 0.0))
    likelihood.configure(table(runtimes))
    await runtimes["int4"].stop()
    assert await scored(likelihood, make_pair(), eventually) is None

    async def dead(_work: object, _data: bytes) -> bytes:
        raise ScorerDiedError

    likelihood._run = dead
    assert await scored(likelihood, make_pair(), eventually) is None
    assert outcomes(likelihood) == {"unreachable": 1, "scorer_died": 1}
    await likelihood.stop()


async def test_what_waits_is_not_asked_of_a_pool_that_broke_meanwhile(
    runtimes: dict[str, Runtime], eventually: Any
) -> None:
    """Pairs were chosen while the pool was well: of its failure they hear as those that come later do."""
    likelihood = Likelihood(_here, Caution(lambda: 0.0))
    likelihood.configure(table(runtimes))
    runtimes["int4"].status = 500
    found: list[PairGap | None] = []
    for _ in range(5):
        assert likelihood.wants(make_pair())
        likelihood.take(make_pair(), found.append)
    await eventually(lambda: len(found) == 5)
    assert len(runtimes["int4"].asked) <= RUNNING_MOST
    assert outcomes(likelihood)["suspended"] >= 5 - RUNNING_MOST
    await likelihood.stop()


async def test_only_what_can_be_scored_is_chosen(runtimes: dict[str, Runtime]) -> None:
    """The rule's share, chat and completions, two answers, two runtimes that can, a prompt of bounded size."""
    likelihood = Likelihood(_here, Caution(lambda: 0.0))
    likelihood.configure(table(runtimes))
    assert likelihood.wants(make_pair())
    assert likelihood.wants(make_pair(api="completions", conversation=""))
    assert not likelihood.wants(make_pair(api="messages"))
    assert not likelihood.wants(make_pair(rule="other"))
    assert not likelihood.wants(make_pair(candidate=make_leg(pool="int4", failure="timeout")))
    assert not likelihood.wants(make_pair(candidate=make_leg(pool="gone")))
    assert not likelihood.wants(make_pair(request=b"x" * 300_000))
    likelihood.configure(table(runtimes, runtime="tensorrt-llm"))
    assert not likelihood.wants(make_pair())
    assert not likelihood.wants(make_pair(candidate=make_leg(pool="int4")))
    likelihood.configure(table(runtimes, likelihood=0.0))
    assert not likelihood.wants(make_pair())
    assert {key[1:]: row[0] for key, row in likelihood.counted.rows.items()} == {
        ("gone", "unsupported_runtime"): 1.0,
        ("int4", "unsupported_runtime"): 2.0,
        ("int4", "too_long"): 1.0,
    }


async def test_no_pool_is_asked_what_its_engine_could_die_of(runtimes: dict[str, Runtime], eventually: Any) -> None:
    """Adapters on vLLM, a long text, a pool whose server broke under a call: counted by why, and nothing is sent."""
    likelihood = Likelihood(_here, Caution(lambda: 0.0))
    likelihood.configure(table(runtimes, adapters=("lora",)))
    assert not likelihood.wants(make_pair())
    likelihood.configure(table(runtimes))
    assert not likelihood.wants(make_pair(baseline=make_leg(prompt_tokens=1_000, completion_tokens=25)))
    assert likelihood.wants(make_pair(baseline=make_leg(prompt_tokens=1_000, completion_tokens=24)))
    likelihood.configure(table(runtimes, likelihood_tokens=10))
    assert not likelihood.wants(make_pair(baseline=make_leg(prompt_tokens=10, completion_tokens=1)))
    likelihood.configure(table(runtimes))
    runtimes["int4"].status = 500
    assert await scored(likelihood, make_pair(), eventually) is None
    asked = len(runtimes["int4"].asked)
    assert not likelihood.wants(make_pair())
    assert len(runtimes["int4"].asked) == asked
    assert outcomes(likelihood) == {"adapters": 1, "too_long": 2, "refused": 1, "suspended": 1}
    await likelihood.stop()


async def test_the_queue_is_bounded_and_given_up_at_the_end(runtimes: dict[str, Runtime], eventually: Any) -> None:
    """Each pair that was taken comes back exactly once, scored or not."""

    async def never(_work: object, _data: bytes) -> bytes:
        await asyncio.Event().wait()
        return b""

    likelihood = Likelihood(never, Caution(lambda: 0.0))
    likelihood.configure(table(runtimes))
    found: list[PairGap | None] = []
    for _ in range(40):
        likelihood.take(make_pair(), found.append)
    assert len(found) == 40 - 32 - 2
    await likelihood.stop()
    assert found == [None] * 40
    assert outcomes(likelihood) == {"queue_full": 6, "stopping": 34}
