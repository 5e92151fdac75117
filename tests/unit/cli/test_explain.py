"""``quantgate explain``."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from gateway.cli import app
from gateway.cli.explain import run

POLICY = Path("routing_policies")
PAY = {"type": "function", "function": {"name": "payment_send", "parameters": {"type": "object"}}}
SECRET = "the quick brown secret"


def explained(tmp_path: Path, body: Any, as_json: bool = False) -> tuple[int, str]:
    file = tmp_path / "request.json"
    file.write_text(json.dumps(body))
    stream = io.StringIO()
    return run(file, POLICY, None, as_json, stream), stream.getvalue()


def body(**more: Any) -> dict[str, Any]:
    return {"model": "gpt-4o", "messages": [{"role": "user", "content": SECRET}], **more}


def test_words_tell_facts_bucket_constraints_routes_and_pools(tmp_path: Path) -> None:
    """A person who knows no code can follow why the request goes where it goes."""
    status, text = explained(tmp_path, body(tools=[PAY], seed=1, stream=True, temperature=0.2, n=2))
    assert status == 0
    tokens = next(line for line in text.splitlines() if line.startswith("Tokens"))
    assert "(bounded by bytes) + 512 reserved for the answer = " in tokens
    assert text.replace(f"{tokens}\n", "") == (
        "Request      POST /v1/chat/completions, streamed, 1 message, tools declared (payment_send), seed given, "
        "temperature 0.2, n 2\n"
        "Caller       acme, tier gold, trusted\n"
        "Model        gpt-4o, which is qwen2.5-32b\n"
        "Bucket       qwen2.5-32b/short/chat/high/-/gold  (task chat, length short, privilege high)\n"
        "\n"
        "Constraints\n"
        "  ✓  privileged-tools-stay-16-bit applies (tool privilege is high): requires weights bf16 or fp16\n"
        "       rules out fp8: weights fp8, but it must be weights bf16 or fp16\n"
        "       rules out int4: weights int4, but it must be weights bf16 or fp16\n"
        "  -  long-context-no-kv-quant does not apply; it would if: context tokens ≥ 32,768\n"
        "  ✓  deterministic-needs-static-scales applies (seed is present): requires static scales\n"
        "       rules out fp8: dynamic scales, but it must be static scales\n"
        "\n"
        "Routes\n"
        "  ✓  interactive-chat is the first that matches (task is chat and length is short or medium): "
        "int4, fp8, bf16\n"
        "\n"
        "Pools        bf16\n"
        "  1  bf16 (bf16)\n"
        "  -  fp8 (fp8+kv-fp8): privileged-tools-stay-16-bit: weights fp8, but it must be weights bf16 or fp16; "
        "deterministic-needs-static-scales: dynamic scales, but it must be static scales\n"
        "  -  int4 (int4): privileged-tools-stay-16-bit: weights int4, but it must be weights bf16 or fp16\n"
    )


def test_a_rollout_is_named(tmp_path: Path) -> None:
    """The arm is decided while serving; that there is one is told."""
    assert "Rollout      int4-chat" in explained(tmp_path, body())[1]


def test_what_may_fit_after_all_is_explained(tmp_path: Path) -> None:
    """Reserved output over every window is no refusal: the gateway lets the pools with the largest window try."""
    status, text = explained(tmp_path, body(max_tokens=300_000, response_format={"type": "json_object"}))
    assert status == 0
    assert "Pools        bf16\n  1  bf16 (bf16), although the request exceeds its context window" in text
    assert "the prompt may fit, so the runtime has the last word" in text
    assert "output json_object" in text


def test_a_refusal_is_explained_too(tmp_path: Path) -> None:
    """With the gateway's own answer, the pools, and why none of them may serve it."""
    long = body(messages=[{"role": "user", "content": "a word " * 200_000}])
    status, text = explained(tmp_path, long)
    assert status == 0
    assert "Pools        none: the request is refused with 400 context_length_exceeded: This model's maximum" in text
    assert text.count("exceed its context window of 131,072 tokens") == 3
    found = json.loads(explained(tmp_path, long, as_json=True)[1])
    assert (found["accepted"], found["status"], found["code"]) == (False, 400, "context_length_exceeded")
    assert found["decision"]["pools"] == []


def test_a_count_has_no_window(tmp_path: Path) -> None:
    """As in the gateway."""
    wrapped = {"path": "/tokenize", "body": {"model": "gpt-4o", "prompt": "a word " * 200_000}}
    assert "the request only asks how long a text is" in explained(tmp_path, wrapped)[1]


def test_json_holds_everything_and_no_text_of_the_request(tmp_path: Path) -> None:
    """Neither output repeats what the user wrote."""
    status, text = explained(tmp_path, body(), as_json=True)
    found = json.loads(text)
    assert (status, found["accepted"], found["decision"]["pools"]) == (0, True, ["int4", "fp8", "bf16"])
    assert found["tokens"]["by"] == "bytes"
    assert {"facts", "profile", "constraints", "routes", "pools"} <= found.keys()
    assert SECRET not in text + explained(tmp_path, body())[1]


def test_a_route_of_another_model_says_so(tmp_path: Path) -> None:
    """Its condition, which may be none, is not what keeps it from matching."""
    pool = "runtime: vllm, precision: {weights: bf16, activations: bf16, kv_cache: bf16}, attestation: 'off'"
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        "version: 1\nmodels: {slow: {}, quick: {}}\ntenants: {anonymous: {allow: true}}\npools:\n"
        f"  one: {{model: slow, {pool}, endpoints: ['http://127.0.0.1:1']}}\n"
        f"  two: {{model: quick, {pool}, endpoints: ['http://127.0.0.1:2']}}\n"
        "routes:\n"
        "  - {name: slow, pools: one}\n"
        "  - {name: streams, when: {stream: true}, pools: two}\n"
        "  - {name: rest, pools: two}\n"
    )
    request = tmp_path / "request.json"
    request.write_text(json.dumps(body(model="quick")))
    stream = io.StringIO()
    assert run(request, policy, None, False, stream) == 0
    said = stream.getvalue()
    assert "  -  slow is for model slow\n" in said
    assert "  -  streams does not match; it would if: stream" in said


def test_what_the_gateway_does_not_accept_is_answered_as_it_would(tmp_path: Path) -> None:
    """Its own status and code."""
    _, text = explained(tmp_path, body(model="gpt-4"))
    assert text.startswith("The gateway answers 404 model_not_found")
    assert json.loads(explained(tmp_path, body(model="x"), as_json=True)[1])["code"] == "model_not_found"


def test_what_cannot_be_explained_exits_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No request, no file, no policy: a sentence on stderr."""
    assert explained(tmp_path, [1])[0] == 1
    assert run(tmp_path / "gone.json", POLICY) == 1
    (tmp_path / "ok.json").write_text(json.dumps(body()))
    assert run(tmp_path / "ok.json", tmp_path / "nowhere") == 1
    said = capsys.readouterr().err
    assert said.count("quantgate: ") == 3


def test_what_cannot_be_explained_is_json_where_json_is_asked_for(tmp_path: Path) -> None:
    """As `check` and `test` say it: a pipeline reads what is wrong where it reads what is right."""
    status, text = explained(tmp_path, [], as_json=True)
    assert (status, json.loads(text)["ok"]) == (1, False)
    (tmp_path / "p.yaml").write_text("version: 2\n")
    stream = io.StringIO()
    assert run(tmp_path / "request.json", tmp_path / "p.yaml", None, True, stream) == 1
    assert json.loads(stream.getvalue())["errors"][0] | {"message": ""} == {
        "file": str(tmp_path / "p.yaml"), "line": 1, "column": 1, "message": "", "mend": "", "severity": "error"
    }  # fmt: skip


def test_the_command_reads_stdin_and_takes_a_tenant() -> None:
    """As people type it."""
    arguments = ["explain", "-", "--config", str(POLICY), "--tenant"]
    found = CliRunner().invoke(app, [*arguments, "acme"], input=json.dumps(body()))
    assert found.exit_code == 0
    assert "Caller       acme" in found.output
    assert CliRunner().invoke(app, [*arguments, "nobody"], input=json.dumps(body())).exit_code == 1
    assert CliRunner().invoke(app, ["explain"]).exit_code == 2
