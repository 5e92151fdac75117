"""``quantgate record``: declared, attested, missing."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

from gateway.cli import app
from gateway.cli import record as module
from gateway.core.deployment import Entry, State

POLICY = """
version: 1
models: {m: {baseline: bf16}}
pools:
  bf16:
    model: m
    runtime: vllm
    precision: {weights: bf16, activations: bf16, kv_cache: bf16}
    hardware: {gpu: H100, compute_capability: "9.0"}
    endpoints: ["http://127.0.0.1:1"]
    record: {model_hash: "sha256:abc", runtime_version: "0.25.1"}
  int4:
    model: m
    runtime: vllm
    precision: {weights: int4, activations: bf16, kv_cache: bf16, method: awq, group_size: 128}
    hardware: {gpu: H100, compute_capability: "9.0"}
    endpoints: ["http://127.0.0.1:2"]
tenants: {anonymous: {allow: true}}
routes: [{name: all, pools: [int4, bf16]}]
"""


@pytest.fixture
def policy(tmp_path: Path) -> str:
    """The path of a policy."""
    file = tmp_path / "policy.yaml"
    file.write_text(POLICY)
    return str(file)


def run(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["record", *arguments])
    assert result.exit_code == code, result.output
    return result.output


def test_a_policy_alone_shows_what_is_declared_and_what_is_missing(policy: str) -> None:
    """A table for each pool, the gaps in a line, and the keys that would fill them."""
    said = run("--config", policy)
    assert "sha256:abc" in said and "128" in said
    assert "Write what you know into pools: int4: record: {model_hash" in said
    assert "--admin" in said


def test_json_says_the_same(policy: str) -> None:
    """With the hash that stands in every record."""
    one, two = json.loads(run("--config", policy, "--json"))
    assert (one["pool"], two["pool"]) == ("bf16", "int4")
    assert "model: hash" in two["missing"] and "model: hash" not in one["missing"]
    assert len(one["hash"]) == 64


def test_strict_fails_while_anything_is_missing(policy: str) -> None:
    """For a pipeline that insists on complete records."""
    run("--config", policy, "--pool", "int4", "--strict", code=1)


def test_a_running_gateway_adds_what_runtimes_attest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its answer is shown with a column more, and a complete record passes strictly."""
    entries = [Entry("runtime", "version", State.KNOWN, "", "0.25.1"), Entry("system", "NCCL", State.NOT_APPLICABLE)]
    answer: dict[str, Any] = {"deployments": [{"pool": "bf16", "hash": "h" * 64, "entries": entries, "missing": []}]}
    monkeypatch.setattr(module, "ask_admin", lambda *_: msgspec.json.encode(answer))
    said = run("--admin", "127.0.0.1:9090", "--strict")
    assert "attested" in said and "0.25.1" in said and "bf16: nothing is missing." in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--config", "/nowhere.yaml"], "nowhere"),
        (["--admin", "127.0.0.1:1"], "Nothing answers"),
    ],
)
def test_nothing_to_show_is_said(arguments: list[str], words: str) -> None:
    """Exit 2."""
    assert words in run(*arguments, code=2)


def test_an_unknown_pool_is_refused(policy: str) -> None:
    """It names those that there are."""
    assert "known: bf16, int4" in run("--config", policy, "--pool", "fp8", code=2)


def test_an_answer_of_another_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not shown half."""
    monkeypatch.setattr(module, "ask_admin", lambda *_: b'{"deployments": [{"pool": 1}]}')
    assert "no deployments that this version reads" in run("--admin", "127.0.0.1:9090", code=2)
