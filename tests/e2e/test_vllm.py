"""A real vLLM behind a real gateway: what it tells of itself, what the official client gets, what is recorded of it.

On the CPU, with the demo's model of 135 million parameters: what it says is of no interest, that all of it arrives is.
"""

import json
import os
import signal
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from benchmarks.processes import free_ports
from tests.cases.gateway import Gateway, policy, wait_for, write_policy
from tests.e2e import vllm_server
from tests.e2e.vllm_server import ADAPTER, WINDOW, NoVllmError, Vllm

BF16 = {"weights": "bf16", "activations": "bf16", "kv_cache": "bf16"}
INT4 = {"weights": "int4", "activations": "bf16", "kv_cache": "bf16", "method": "awq", "group_size": 128}
PAYMENT: Any = {"type": "function", "function": {"name": "payment_send", "parameters": {"type": "object"}}}
ANSWER_S = 240.0

pytestmark = [pytest.mark.slow, pytest.mark.runtime]


@pytest.fixture(scope="module")
def vllm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Vllm]:
    """The server, warm."""
    try:
        vllm_server.obtain()
    except NoVllmError as error:
        pytest.skip(f"vLLM cannot be installed here: {error}")
    (port,) = free_ports(1)
    server = Vllm(port, tmp_path_factory.mktemp("vllm") / "vllm.log")
    try:
        server.wait()
        warm = openai.OpenAI(base_url=server.url + "/v1", api_key="none", timeout=120)
        warm.chat.completions.create(model=server.name, messages=ask("Hello"), max_tokens=2)
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="module")
def gateway(vllm: Vllm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """The gateway, which has asked vLLM what it runs."""
    folder = tmp_path_factory.mktemp("gateway")
    running = Gateway(folder, write_policy(folder / "policy.yaml", make_policy(vllm)))
    try:
        running.start()
        wait_for(
            lambda: state(running, "wrong") == "quarantined" and verdict(running, "full", "attested"), "attested", 120
        )
        yield running
    finally:
        running.stop()


def make_policy(vllm: Vllm) -> dict[str, Any]:
    """Pools of one endpoint: two say what it is, and one does not."""
    served = {"model": "m", "runtime": "vllm", "endpoints": [vllm.url], "upstream_model": vllm.name}
    return policy(
        {"m": {"context_window": WINDOW, "baseline": "full", "adapters": {ADAPTER: {"validated_on": ["bf16"]}}}},
        {
            "full": {**served, "precision": BF16},
            "twin": {**served, "precision": BF16, "adapters": []},
            "wrong": {**served, "precision": INT4, "adapters": []},
        },
        [
            {"name": "structured", "when": {"structured": "present"}, "pools": ["full"]},
            {"name": "all", "pools": ["wrong", "full"]},
        ],
        shadow=[
            {"name": "rule", "when": {"structured": "json_schema"}, "sample": "100%", "candidate": "twin"}
            | {"noise_leg": "0%", "likelihood": "100%"}
        ],
        classify={"tools": {"privileged": ["payment_*"]}},
        constraints=[{"name": "stay", "when": {"tools": {"privilege": "high"}}, "require": {"weights": "bf16"}}],
    )


def state(gateway: Gateway, pool: str) -> str:
    """The state of a pool's only endpoint."""
    return str(gateway.ready()["endpoints"][f"{pool}/0"]["state"])


def verdict(gateway: Gateway, pool: str, wanted: str) -> bool:
    """Whether this is what came of asking a pool's runtime."""
    return gateway.total("quantgate_endpoint_attestation", pool=pool, verdict=wanted) == 1


@pytest.fixture
def client(gateway: Gateway) -> openai.OpenAI:
    """The official client, without retries of its own."""
    return openai.OpenAI(base_url=f"http://127.0.0.1:{gateway.port}/v1", api_key="any", max_retries=0, timeout=ANSWER_S)


def ask(text: str) -> Any:
    return [{"role": "user", "content": text}]


def test_what_it_runs_is_attested_and_a_false_declaration_is_out(gateway: Gateway) -> None:
    """BF16 is what the server says too; the pool that declares INT4 of the same server gets nothing."""
    assert state(gateway, "full") == "ready"
    told = gateway.admin("/readyz")["endpoints"]
    assert "int4" in json.dumps(told["wrong/0"])
    assert verdict(gateway, "wrong", "mismatch")


def test_a_whole_answer_is_recorded_as_the_runtime_counted_it(gateway: Gateway, client: openai.OpenAI) -> None:
    """Tokens, finish reason, precision."""
    raw = client.chat.completions.with_raw_response.create(model="m", messages=ask("Count to five."), max_tokens=12)
    answer = raw.parse()
    assert raw.headers["x-quantgate-pool"] == "full"
    assert answer.model == Vllm.name  # what the pool calls itself, untouched
    assert answer.usage is not None
    line = gateway.outcome(request_id=raw.headers["x-quantgate-request-id"])
    assert (line["prompt_tokens"], line["completion_tokens"]) == (
        answer.usage.prompt_tokens,
        answer.usage.completion_tokens,
    )
    assert line["finish_reason"] == answer.choices[0].finish_reason
    assert (line["result"], line["precision"]) == ("ok", "bf16")


def test_a_stream_is_the_same_answer_and_its_usage_is_known_unasked(gateway: Gateway, client: openai.OpenAI) -> None:
    """The client did not ask for usage and gets none; the record has it all the same."""
    wanted: Any = {"model": "m", "messages": ask("Name three colours."), "max_tokens": 16, "temperature": 0, "seed": 1}
    whole = client.chat.completions.create(**wanted)
    raw = client.chat.completions.with_raw_response.create(**wanted, stream=True)
    chunks = list(raw.parse())
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == whole.choices[0].message.content
    assert all(chunk.usage is None for chunk in chunks)
    line = gateway.outcome(request_id=raw.headers["x-quantgate-request-id"])
    assert whole.usage is not None
    assert line["completion_tokens"] == whole.usage.completion_tokens
    assert line["ttft_ms"] > 0
    assert line["tpot_ms"] > 0


def test_a_prompt_that_is_cached_is_known_as_such(gateway: Gateway, client: openai.OpenAI) -> None:
    """The second request of a long prompt."""
    prompt = "The quick brown fox jumps over the lazy dog. " * 30
    for _ in range(2):
        raw = client.chat.completions.with_raw_response.create(model="m", messages=ask(prompt), max_tokens=2)
    line = gateway.outcome(request_id=raw.headers["x-quantgate-request-id"])
    assert 0 < line["cached_tokens"] < line["prompt_tokens"]


def test_structured_output_is_obeyed(client: openai.OpenAI) -> None:
    """The schema reaches the runtime whole."""
    schema: Any = {"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}
    answer = client.chat.completions.create(
        model="m",
        messages=ask("How old is Ann? She is 31."),
        max_tokens=40,
        response_format={"type": "json_schema", "json_schema": {"name": "person", "schema": schema}},
    )
    assert isinstance(json.loads(answer.choices[0].message.content or "")["age"], int)


def test_evidence_asks_nothing_that_could_end_the_engine(vllm: Vllm, gateway: Gateway) -> None:
    """The structured request of before was mirrored; this vLLM dies of being asked for a prompt's scores."""
    wait_for(lambda: gateway.total("quantgate_likelihood_total", outcome="adapters") == 1, "the pair is left unscored")
    assert vllm.running() == 0


def test_an_adapter_is_served_under_its_own_name(gateway: Gateway, client: openai.OpenAI) -> None:
    """Listed, chosen by name, recorded, and another answer than the base model's."""
    assert ADAPTER in [model.id for model in client.models.list()]
    wanted: Any = {"messages": ask("Say hello."), "max_tokens": 12, "temperature": 0}
    raw = client.chat.completions.with_raw_response.create(model=ADAPTER, **wanted)
    base = client.chat.completions.create(model="m", **wanted)
    assert raw.parse().choices[0].message.content != base.choices[0].message.content
    assert gateway.outcome(request_id=raw.headers["x-quantgate-request-id"])["adapter"] == ADAPTER


def test_a_privileged_tool_goes_where_it_may(gateway: Gateway, client: openai.OpenAI) -> None:
    """And the runtime accepts the tool as it came."""
    raw = client.chat.completions.with_raw_response.create(
        model="m", messages=ask("Pay Ann 5 euros."), tools=[PAYMENT], max_tokens=8
    )
    assert raw.headers["x-quantgate-pool"] == "full"
    assert gateway.outcome(request_id=raw.headers["x-quantgate-request-id"])["privilege"] == "high"


def test_the_other_apis_answer(client: openai.OpenAI) -> None:
    """Completions with log-probabilities, responses, tokenizer."""
    text = client.completions.create(model="m", prompt="Once upon a time", max_tokens=5, logprobs=1)
    assert text.choices[0].logprobs is not None
    assert client.responses.create(model="m", input="Hello", max_output_tokens=8).output_text
    counted = client.post("/../tokenize", cast_to=dict[str, Any], body={"model": "m", "prompt": "Hello there"})
    assert counted["count"] == len(counted["tokens"]) > 0


def test_a_runtime_error_is_the_clients_class_of_error(client: openai.OpenAI) -> None:
    """What vLLM refuses is refused with its words, and with OpenAI's shape."""
    with pytest.raises(openai.BadRequestError) as refused:
        client.chat.completions.create(model="m", messages=ask("Hello"), temperature=-3)
    assert "temperature" in str(refused.value)


def test_a_client_that_leaves_frees_the_engine(vllm: Vllm, gateway: Gateway, client: openai.OpenAI) -> None:
    """The request is gone from the engine, and recorded as left by its client."""
    wanted: Any = {"model": "m", "messages": ask("Tell a long story."), "max_tokens": 900}
    raw = client.chat.completions.with_raw_response.create(**wanted, stream=True, extra_body={"ignore_eos": True})
    stream = raw.parse()
    next(iter(stream))
    assert vllm.running() == 1
    stream.close()
    wait_for(lambda: vllm.running() == 0, "the engine is free")
    assert gateway.outcome(request_id=raw.headers["x-quantgate-request-id"])["result"] == "client_cancelled"


def test_its_load_is_read(gateway: Gateway, client: openai.OpenAI) -> None:
    """What its metrics say of running requests is what the gateway chooses by."""
    wanted: Any = {"model": "m", "messages": ask("Tell a long story."), "max_tokens": 900}
    stream = client.chat.completions.create(**wanted, stream=True, extra_body={"ignore_eos": True})
    next(iter(stream))
    wait_for(lambda: gateway.total("quantgate_endpoint_running", pool="full") == 1, "the load is seen")
    stream.close()
    wait_for(lambda: gateway.total("quantgate_endpoint_running", pool="full") == 0, "the load is gone")


def test_an_engine_that_dies_is_an_error_and_the_endpoint_is_out(
    vllm: Vllm, gateway: Gateway, client: openai.OpenAI
) -> None:
    """vLLM ends the stream politely, with an error and ``[DONE]``: no good answer. Last: it ends the server."""
    wanted: Any = {"model": "m", "messages": ask("Tell a long story."), "max_tokens": 900}
    raw = client.chat.completions.with_raw_response.create(**wanted, stream=True, extra_body={"ignore_eos": True})
    stream = iter(raw.parse())
    next(stream)
    for pid in vllm.engine_pids():
        os.kill(pid, signal.SIGKILL)
    with pytest.raises(openai.APIError):
        list(stream)
    line = gateway.outcome(request_id=raw.headers["x-quantgate-request-id"])
    assert line["result"] not in ("ok", "client_cancelled")
    wait_for(lambda: state(gateway, "full") == "unhealthy", "the endpoint is out", 30)
