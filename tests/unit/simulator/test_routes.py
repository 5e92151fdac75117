"""The paths of the simulated runtime, over real sockets."""

import json
from typing import Any

import aiohttp
import pytest

from gateway.simulator.config import Config
from tests.unit.simulator.rig import chat, running

GENERATING: list[tuple[str, dict[str, Any], str]] = [
    ("/v1/chat/completions", chat(), "chat.completion"),
    ("/v1/completions", {"model": "sim", "prompt": "hi"}, "text_completion"),
    ("/v1/responses", {"model": "sim", "input": "hi"}, "response"),
]


@pytest.mark.parametrize(("path", "body", "kind"), GENERATING, ids=["chat", "completions", "responses"])
async def test_generating_paths(path: str, body: dict[str, Any], kind: str) -> None:
    """Each generating path answers in its own shape, whole and streamed."""
    async with running() as client:
        status, answer = await client.post(path, body)
        assert (status, answer["object"], answer["model"]) == (200, kind, "sim")
        assert len(await client.stream({**body, "stream": True}, path)) > 10


async def test_messages_and_their_count() -> None:
    """The messages path and its counter agree on the prompt's tokens."""
    body = {"model": "sim", "max_tokens": 20, "messages": [{"role": "user", "content": "hello there"}]}
    async with running() as client:
        status, answer = await client.post("/v1/messages", body)
        assert (status, answer["type"], answer["role"]) == (200, "message", "assistant")
        _, counted = await client.post("/v1/messages/count_tokens", body)
        assert counted["input_tokens"] == answer["usage"]["input_tokens"]


async def test_other_inference_paths() -> None:
    """Embeddings, rerank, score, tokenize and back, transcription."""
    async with running() as client:
        status, found = await client.post("/v1/embeddings", {"model": "sim", "input": ["a", "b"]})
        assert (status, len(found["data"])) == (200, 2)
        for path in ("/v1/rerank", "/rerank", "/v2/rerank"):
            assert (await client.post(path, {"query": "a", "documents": ["a", "b"]}))[0] == 200
        assert (await client.post("/v1/score", {"text_1": "a", "text_2": "b"}))[0] == 200
        _, tokens = await client.post("/tokenize", {"prompt": "hello wörld"})
        assert tokens["count"] == len(tokens["tokens"]) == 3
        assert (await client.post("/detokenize", {"tokens": tokens["tokens"]}))[1] == {"prompt": "hello wörld"}
        _, talk = await client.post("/tokenize", {"messages": [{"role": "user", "content": "hello"}]})
        assert talk["count"] == 6
        form = aiohttp.FormData({"model": "sim"})
        form.add_field("file", b"0" * 64_000, filename="a.wav")
        async with client.session.post(client.url("/v1/audio/transcriptions"), data=form) as answer:
            assert (answer.status, bool((await answer.json())["text"])) == (200, True)


async def test_looking_paths() -> None:
    """Models, one model, version, health, load, metrics, server_info."""
    async with running(Config(model="org/m:q4", adapters=("a",))) as client:
        assert [entry["id"] for entry in json.loads((await client.get("/v1/models"))[1])["data"]] == ["org/m:q4", "a"]
        assert (await client.get("/v1/models/org%2Fm%3Aq4"))[0] == 200
        assert (await client.get("/v1/models/none"))[0] == 404
        assert json.loads((await client.get("/version"))[1]) == {"version": "0.32.0"}
        assert await client.get("/health") == (200, b"")
        assert json.loads((await client.get("/load"))[1]) == {"server_load": 0}
        assert b"vllm:num_requests_running" in (await client.get("/metrics"))[1]
        assert json.loads((await client.get("/server_info"))[1])["system_env"]["simulated"] is True


async def test_errors_as_vllm_says_them() -> None:
    """Unknown model 404, too long 400 on input_tokens, bad JSON 400, unknown path and method as FastAPI says."""
    async with running(Config(context_length=100)) as client:
        status, unknown = await client.post("/v1/chat/completions", chat(model="nope"))
        assert (status, unknown["error"]["type"], unknown["error"]["code"]) == (404, "NotFoundError", 404)
        status, long = await client.post("/v1/chat/completions", chat("x" * 1000))
        assert (status, long["error"]["param"]) == (400, "input_tokens")
        assert "maximum context length is 100 tokens" in long["error"]["message"]
        assert (await client.post("/v1/chat/completions", chat(max_tokens=99)))[0] == 400
        assert (await client.post("/v1/chat/completions", chat(max_tokens=0)))[0] == 400
        async with client.session.post(client.url("/v1/chat/completions"), data=b"{") as answer:
            assert answer.status == 400
        assert (await client.post("/v1/nothing", {}))[0] == 404
        assert (await client.get("/v1/chat/completions"))[0] == 405
        for path in ("/v1/embeddings", "/v1/rerank", "/v1/score", "/detokenize"):
            assert (await client.post(path, {}))[0] == 400
        assert (await client.post("/v1/embeddings", {"model": "nope", "input": "x"}))[0] == 404


async def test_api_key_guards_what_vllm_guards() -> None:
    """Paths under /v1 need the key and say so as vLLM does; metrics and health do not."""
    async with running(Config(api_key="k")) as client:
        assert await client.post("/v1/chat/completions", chat()) == (401, {"error": "Unauthorized"})
        assert (await client.post("/v1/chat/completions", chat(), headers={"Authorization": "Bearer k"}))[0] == 200
        assert (await client.get("/metrics"))[0] == 200


async def test_body_limit_and_hidden_server_info() -> None:
    """A body above the limit is 413; server_info can be switched off, as it is without vLLM's dev mode."""
    async with running(Config(max_body_bytes=100, server_info=False)) as client:
        assert (await client.post("/v1/chat/completions", chat("x" * 200)))[0] == 413
        assert (await client.get("/server_info"))[0] == 404


async def test_load_report_where_it_is_asked_for() -> None:
    """The ORCA header is answered with a header, on whole answers and on streams."""
    async with running() as client:
        for body in (chat(), chat(stream=True)):
            headers = {"endpoint-load-metrics-format": "JSON"}
            async with client.session.post(client.url("/v1/chat/completions"), json=body, headers=headers) as answer:
                assert "named_metrics" in answer.headers["endpoint-load-metrics"]
