"""Where a replay goes: only where it was told to."""

from pathlib import Path

import pytest

from gateway.cli.replay.targets import TargetError, named, of_policy

POLICY = """
version: 1
models: {m: {aliases: [gpt-x], adapters: {legal: {validated_on: [bf16]}}, baseline: a}}
pools:
  a:
    model: m
    runtime: openai
    upstream_model: up-a
    precision: {weights: bf16, activations: bf16, kv_cache: bf16}
    endpoints: ["http://h:1/base", "http://[::1]:2"]
    adapters: {legal: legal-a}
    api_key: "env:POOL_KEY"
  b:
    model: m
    runtime: openai
    precision: {weights: bf16, activations: bf16, kv_cache: bf16}
    endpoints: ["http://h:3"]
tenants: {anonymous: {allow: true}, team: {keys: ["env:NOT_SET_ANYWHERE"]}}
routes: [{name: all, pools: [a, b]}]
"""


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    file = tmp_path / "policy.yaml"
    file.write_text(POLICY)
    return file


def test_named_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Name and URL; a token by reference."""
    monkeypatch.setenv("TOKEN", "secret")
    one, two = named(["a=http://h:1", "b=https://h:2/base"], "up", "env:TOKEN")
    assert (one.name, one.urls, one.model, one.authorization) == ("a", ("http://h:1",), "up", "Bearer secret")
    assert two.urls == ("https://h:2/base",)


@pytest.mark.parametrize(
    "written",
    [
        "http://h:1",
        "=http://h",
        "a=h:1",
        "a=ftp://h",
        "a=",
        "a=http://[::1",
        "a=http://h:99999",
        "a=http://h:x",
        "a=http://h h:1",
    ],
)
def test_anything_else_is_refused(written: str) -> None:
    """With the way to write it."""
    with pytest.raises(TargetError, match="NAME=http"):
        named([written], None, None)


def test_a_token_that_is_not_set_is_said() -> None:
    """By its reference."""
    with pytest.raises(TargetError, match="NOT_SET_ANYWHERE"):
        named(["a=http://h"], None, "env:NOT_SET_ANYWHERE")


def test_pools_of_a_policy(policy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With their endpoints, their own names for models and adapters, their key; tenants' keys are not needed."""
    monkeypatch.setenv("POOL_KEY", "k")
    a, b = of_policy(policy, ["a", "b"], None)
    assert a.urls == ("http://h:1/base", "http://[::1]:2")
    assert (a.models["m"], a.models["gpt-x"], a.models["legal"]) == ("up-a", "up-a", "legal-a")
    assert a.authorization is not None and a.authorization.endswith("k")
    assert (b.models["m"], b.authorization) == ("m", None)
    (forced,) = of_policy(policy, ["b"], "other")
    assert (forced.model, forced.models) == ("other", {})


def test_what_a_policy_does_not_have_is_refused(policy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unknown pool, and a pool whose key is not here."""
    with pytest.raises(TargetError, match="it has: a, b"):
        of_policy(policy, ["c"], None)
    monkeypatch.delenv("POOL_KEY", raising=False)
    with pytest.raises(TargetError, match="env:POOL_KEY"):
        of_policy(policy, ["a"], None)
