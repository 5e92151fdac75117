"""``quantgate rehearse``: exit statuses, warnings, and numbers for people and machines."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gateway.cli import app
from gateway.cli.rehearse import DONE, MISSED
from gateway.cli.telling import UNUSABLE

POLICY = """
version: 1
models: {m: {context_window: 8192, baseline: bf16}}
pools:
  bf16: {model: m, runtime: vllm, precision: {weights: bf16, activations: bf16, kv_cache: bf16},
    hardware: {gpu: H100}, endpoints: ["http://127.0.0.1:1"]}
  int4: {model: m, runtime: vllm, precision: {weights: int4, activations: bf16, kv_cache: bf16, method: awq,
    group_size: 128}, hardware: {gpu: H100}, endpoints: ["http://127.0.0.1:2"]}
tenants: {anonymous: {allow: true}}
classify: {buckets: {by: [model, length, task], most: 50}}
routes: [{name: r, pools: [int4, bf16]}]
rollouts:
  - {name: int4-all, candidate: int4, stages: [{weight: 50%}, {weight: 100%}], guards: [json]}
guards:
  json: {metric: format_error_rate, limit: 2%, feed: product, block: 1s}
"""


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    """A policy with one rollout."""
    path = tmp_path / "policy.yaml"
    path.write_text(POLICY)
    return path


def run(*arguments: str | Path) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["rehearse", *map(str, arguments)], env={"COLUMNS": "200"})
    return done.exit_code, done.output


def test_a_fault_that_is_answered_is_told_with_its_cost(policy: Path) -> None:
    """In words, and as JSON."""
    options = ("--fault", "json=100%", "--runs", "1", "--rate", "4", "--months", "0")
    code, said = run(policy, *options)
    assert code == DONE
    assert "rolled_back" in said
    assert "json=100%" in said
    code, said = run(policy, *options, "--json")
    (rollout,) = json.loads(said)["rollouts"]
    assert (code, rollout["rollout"], rollout["months"]) == (DONE, "int4-all", None)
    assert rollout["scenarios"][0]["state"] == "rolled_back"


def test_a_fault_that_is_not_noticed_in_time_is_a_failure(policy: Path) -> None:
    """Exit status 1; a limit at the healthy level is warned about."""
    code, said = run(
        policy, "--fault", "json=2.1%", "--healthy", "json=1.5%", "--runs", "1", "--months", "0", "--most-s", "60"
    )
    assert code == MISSED
    assert "warning" in said
    assert "not noticed" in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--fault", "jsn=3%"), "no rollout has a guard jsn"),
        (("--rollout", "other"), "no such rollout"),
        (("--stage", "9"), "2 stages"),
    ],
)
def test_options_that_cannot_be_used_are_refused(policy: Path, arguments: tuple[str, ...], words: str) -> None:
    """Exit status 2 with the mend."""
    code, said = run(policy, *arguments)
    assert (code, words in said) == (UNUSABLE, True)


def test_a_broken_policy_or_one_without_rollouts_is_told(tmp_path: Path, policy: Path) -> None:
    """The findings, as ``check`` gives them."""
    broken = tmp_path / "broken.yaml"
    broken.write_text(POLICY.replace("candidate: int4", "candidate: int5"))
    code, said = run(broken)
    assert (code, "int5" in said) == (UNUSABLE, True)
    none = tmp_path / "none.yaml"
    none.write_text(POLICY[: POLICY.index("rollouts:")])
    assert "no rollouts" in run(none)[1]
    assert run(policy, "--state-dir", tmp_path / "missing")[0] == UNUSABLE
