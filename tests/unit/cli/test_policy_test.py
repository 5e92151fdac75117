"""``quantgate test``."""

import io
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from gateway.cli import app
from gateway.cli.policy_test import run

BODY = "body: {model: gpt-4o, messages: [{role: user, content: Hello}]}"

SMALL = """\
version: 1
standalone: true
models: {tiny: {}}
pools:
  only:
    model: tiny
    runtime: llama.cpp
    precision: {weights: bf16, activations: bf16, kv_cache: bf16}
    endpoints: ["http://127.0.0.1:1"]
tenants: {anonymous: {allow: true}}
routes:
  - {name: all, pools: only}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for file in Path("routing_policies").glob("[0-9]*.yaml"):
        shutil.copy(file, tmp_path / file.name)
    return tmp_path


def out(path: Path, as_json: bool = False) -> tuple[int, str]:
    stream = io.StringIO()
    return run(path, as_json, stream), stream.getvalue()


def write(folder: Path, *cases: str, name: str = "x.test.yaml", head: str = "version: 1") -> Path:
    file = folder / name
    file.write_text("\n".join([head, "tests:", *(f"  - {case}" for case in cases), ""]))
    return file


def case(expect: str, more: str = "") -> str:
    return f"{{name: it, {more}{BODY}, expect: {{{expect}}}}}"


def test_the_shipped_tests_hold() -> None:
    """The examples keep their promises, the demo on its own policy."""
    status, text = out(Path("routing_policies"))
    assert status == 0, text
    assert "demo.test.yaml" in text
    assert "policy.test.yaml" in text


@pytest.mark.parametrize(
    "expect",
    [
        *("pool: int4", "pools: [int4, fp8, bf16]", "refused: false", "rule: interactive-chat", "rollout: int4-chat"),
        *("bucket: qwen2.5-32b/short/chat/none/-/gold", "model: qwen2.5-32b", "adapter: null", "task: chat"),
        *("length: short", "privilege: none", "constraints: []"),
    ],
)
def test_each_expectation_can_hold(folder: Path, expect: str) -> None:
    """Every key of ``expect`` compares what it names."""
    assert out(write(folder, case(expect)))[0] == 0


@pytest.mark.parametrize(
    ("expect", "said"),
    [
        ("pool: bf16", "expected pool bf16, but it is int4"),
        ("pools: [bf16]", "expected pools ['bf16'], but it is ['int4', 'fp8', 'bf16']"),
        ("never: [fp8]", "fp8 must never serve it, but is choice 2"),
        ("refused: true", "expected refused True, but it is False"),
        ("rule: default", "expected rule default, but it is interactive-chat"),
        ("rollout: null", "expected rollout None, but it is int4-chat"),
        ("bucket: x", "expected bucket x, but it is qwen2.5-32b/short/chat/none/-/gold"),
        ("constraints: [long-context-no-kv-quant]", "expected the constraints ['long-context-no-kv-quant'], but [] ap"),
        ("constraints: [long-kv]", "the policy has no constraint 'long-kv'; "),
        ("never: [int8, fp8-new]", "the policy has no pool 'fp8-new'; did you mean 'fp8'?"),
        ("pools: [int4, fp8, bf-16]", "the policy has no pool 'bf-16'; did you mean 'bf16'?"),
        ("task: code", "expected task code"),
        ("error: model_not_found", "expected the error model_not_found, but the request is accepted"),
    ],
)
def test_each_expectation_can_fail(folder: Path, expect: str, said: str) -> None:
    """A failure is said with what is the case, and the run exits 1."""
    status, text = out(write(folder, case(expect)))
    assert status == 1
    assert said in text
    assert "0 of 1 hold" in text


def test_a_failure_shows_where_the_test_stands_and_who_was_ruled_out(folder: Path) -> None:
    """The line of the test, and the reasons of the policy."""
    file = write(folder, case("pool: int4"), case("pool: fp8", "tokens: 40k, "))
    _, text = out(file)
    assert f"ok     {file}:3: it" in text
    assert f"FAILED {file}:4: it" in text
    assert "ruled out: fp8 by long-context-no-kv-quant (kv cache fp8" in text


def test_errors_and_unusable_cases(folder: Path) -> None:
    """An expected error holds, an unexpected one and an unknown tenant fail."""
    unknown = "{name: it, body: {model: gone, messages: [{role: user, content: x}]}, expect: {error: model_not_found}}"
    wrong = unknown.replace("error: model_not_found", "pool: bf16")
    status, text = out(write(folder, unknown, wrong, case("pool: int4", "tenant: nobody, ")))
    assert status == 1
    assert "1 of 3 hold" in text
    assert "404 model_not_found" in text
    assert "no tenant 'nobody'" in text


def test_long_requests_are_what_the_gateway_makes_of_them(folder: Path) -> None:
    """Reserved output alone refuses nothing; too long a prompt has its code, and is refused by the same route."""
    reserved = BODY.replace("gpt-4o,", "gpt-4o, max_tokens: 300000,")
    status, text = out(
        write(
            folder,
            f"{{name: a, {reserved}, expect: {{refused: false}}}}",
            case("error: context_length_exceeded", "tokens: 200k, "),
            case("refused: true, rule: default", "tokens: 200k, "),
            case("error: model_not_found", "tokens: 200k, "),
        )
    )
    assert status == 1
    assert "3 of 4 hold" in text
    assert "expected the error model_not_found, but it is context_length_exceeded" in text


def test_json_says_the_same(folder: Path) -> None:
    """For scripts."""
    status, text = out(write(folder, case("pool: bf16")), as_json=True)
    found: dict[str, Any] = json.loads(text)
    assert (status, found["ok"]) == (1, False)
    assert found["tests"][0]["line"] == 3
    assert found["tests"][0]["failures"]


def test_which_files_belong_to_a_path(folder: Path) -> None:
    """A folder's, a policy's own, or the one named; none at all is an error."""
    assert "no tests here" in out(folder)[1]
    write(folder, case("pool: int4"))
    assert out(folder)[0] == 0
    demo = folder / "demo.yaml"
    demo.write_text(SMALL)
    assert "no tests here" in out(demo)[1]
    one = "{name: it, body: {prompt: Hello, model: tiny}, expect: {refused: false}}"
    write(folder, one, name="demo.test.yaml", head="version: 1\npolicy: demo.yaml")
    for path in (demo, folder / "demo.test.yaml", folder):
        status, text = out(path)
        assert status == 0, text
    assert "no tests here" in out(folder / "gone.test.yaml")[1]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("version: 1\ntests: []\n", "tests: must not be empty"),
        ("version: 1\ntests:\n  - {name: a, body: {}, expect: {}}\n", "nothing is expected here"),
        ("version: 1\ntests:\n  - {name: a, body: {}, expect: {pol: x}}\n", "did you mean 'pool'?"),
        ("version: 1\ntests:\n  - {name: a, body: {}, expect: {never: }}\n", "never expects nothing"),
        (
            "version: 1\ntests:\n  - {name: a, body: {}, expect: {rule: r, constraints: }}\n",
            "constraints expects nothing",
        ),
        ("version: 1\npolicy: ../x.yaml\ntests: []\n", "lies beside the test"),
        ("", "the file is empty"),
        ("a: [", "not valid YAML"),
    ],
)
def test_a_broken_test_file_is_rejected_with_its_place(folder: Path, text: str, said: str) -> None:
    """The same care as for policies, in words and JSON."""
    file = folder / "x.test.yaml"
    file.write_text(text)
    status, found = out(file)
    assert status == 1
    assert said in found
    assert f"{file}:" in found
    assert json.loads(out(file, as_json=True)[1])["ok"] is False


def test_the_command() -> None:
    """As people type it."""
    assert CliRunner().invoke(app, ["test", "routing_policies"]).exit_code == 0
    assert CliRunner().invoke(app, ["test"]).exit_code == 2
