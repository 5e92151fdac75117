"""What can never happen is found when the policy is read, not when it is needed."""

# ruff: noqa: E501 - one case a line reads best

from typing import Any

import pytest

ROLLOUT = {
    "name": "roll",
    "buckets": {"task": "chat", "length": ["short"]},
    "candidate": "int4",
    "stages": [{"shadow": "5%"}, {"weight": "100%"}],
    "guards": ["errors"],
}


def routes(*given: dict[str, Any]) -> Any:
    def change(data: dict[str, Any]) -> None:
        data["routes"] = [{"pools": ["int4", "fp8", "bf16"], "name": f"r{i}", **route} for i, route in enumerate(given)]

    return change


def constraint(**given: Any) -> Any:
    return lambda data: data["constraints"].append({"name": "extra", **given})


def streamed_only(data: dict[str, Any]) -> None:
    routes({"when": {"stream": True}})(data)
    constraint(when={"stream": False}, require={"weights": "bf16"})(data)


def second_model(data: dict[str, Any]) -> None:
    data["models"]["small"] = {}
    data["pools"]["small-int4"] = {**data["pools"]["int4"], "model": "small", "endpoints": ["http://s"]}
    data["routes"].append({"name": "small", "pools": ["small-int4"]})


def nobody_anonymous(data: dict[str, Any]) -> None:
    """Who switches anonymous callers off hears which rule was for them alone, and not that it excludes itself."""
    data["tenants"]["anonymous"]["allow"] = False
    constraint(when={"tier": "free"}, require={"weights": "bf16"})(data)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (routes({}, {"when": {"task": "code"}}), "route 'r1' is never reached: r0 before it take every request"),
        (routes({"when": {"stream": True}}, {"when": {"stream": False}}, {}), "route 'r2' is never reached: r0, r1 before"),
        (routes({"when": {"length": ["short", "medium"]}}, {"when": {"context_tokens": {"lte": 8192}, "length": "short"}}, {}), "'r1' is never reached"),
        (routes({"when": {"tier": "gold", "tenant": "beta"}}, {}), "route 'r0' can never match: no tenant that may call is meant"),
        (nobody_anonymous, "constraint 'extra' can never match: no tenant that may call is meant by it"),
        (routes({"when": {"length": "short", "context_tokens": {"gte": "32k"}}}, {}), "route 'r0' can never match"),
        (routes({"when": {"tools": {"use": "none", "privilege": "high"}}}, {}), "route 'r0' can never match"),
        (routes({"when": {"task": "code", "not": {"task": ["code", "rag"]}}}, {}), "route 'r0' can never match"),
        (constraint(when={"tenant": "beta", "tier": "gold"}, require={"weights": "bf16"}), "constraint 'extra' can never match"),
        (constraint(require={"weights": "fp32"}), "'extra' cannot be met: no pool of qwen satisfies weights fp32, so it would refuse every request"),
        (constraint(when={"adapter": "legal"}, require={"weights": "int4"}), "no pool of qwen with adapter legal satisfies"),
        (second_model, "'tools-16-bit' cannot be met: no pool of small satisfies weights bf16 or fp16, so it would refuse tool privilege high"),
        (lambda d: d.update(rollouts=[ROLLOUT | {"candidate": "fp8", "buckets": {"length": "short", "task": "chat", "tools": "high"}}]), "ruled out by adapter, tools-16-bit"),
        (lambda d: d.update(rollouts=[ROLLOUT | {"buckets": {"task": "code"}}]), "candidate 'int4' never serves the buckets of rollout 'roll': no route that they reach names it (default)"),
        (lambda d: d.update(rollouts=[ROLLOUT | {"buckets": {"tier": "gold", "task": "chat", "adapter": "legal"}}]), "never serves"),
        (lambda d: d.update(rollouts=[ROLLOUT, ROLLOUT | {"name": "two", "candidate": "fp8"}]), "rollouts 'roll' and 'two' share buckets"),
        (lambda d: d.update(shadow=[{"name": "s", "when": {"tenant": "beta", "tier": "gold"}, "sample": "1%", "candidate": "fp8"}]), "shadow rule 's' can never match"),
    ],
)  # fmt: skip
def test_the_impossible_is_refused(change: Any, said: str, policies: Any) -> None:
    """Unreachable routes, unsatisfiable constraints and rollouts of nothing reject the set."""
    assert said in policies.errors(change)[0].message


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (routes({"when": {"task": "code"}}), "no route matches task rag or chat; such requests are refused"),
        (constraint(when={"task": "code", "not": {"length": "short"}}, require={"weights": "fp32"}, unless_measured={"guard": "quality"}), "cannot be met"),
        (constraint(when={"task": "code", "adapter": "absent"}, require={"labels": {"zone": "b"}}), "route 'default' has no pool left for qwen, task code, context tokens < 131,073 (ruled out by"),
        (streamed_only, "constraint 'extra' never fires"),
        (lambda d: d.update(rollouts=[ROLLOUT]) or d["classify"].update(buckets={"by": ["task", "length"], "most": 11}), "12 buckets are possible and 11 are kept apart"),
    ],
)  # fmt: skip
def test_the_doubtful_is_warned_of(change: Any, said: str, policies: Any) -> None:
    """Requests that would be refused are named when the policy is read."""
    warnings = policies.warnings(change)
    assert any(said in warning for warning in warnings), warnings


def test_a_refusal_that_is_meant_is_let_through(policies: Any) -> None:
    """``refuse: true`` says that nobody shall serve these requests."""

    def change(data: dict[str, Any]) -> None:
        second_model(data)
        data["constraints"][0]["refuse"] = True

    assert policies.load(change).warnings == ()


def test_a_route_is_about_the_models_of_its_pools_only(policies: Any) -> None:
    """A catch-all of one model does not shadow another model's route."""

    def change(data: dict[str, Any]) -> None:
        second_model(data)
        data["constraints"] = []

    assert policies.load(change).warnings == ()


def test_a_policy_too_fine_to_check_is_let_through_with_a_warning(
    policies: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cannot be decided in bounded work is left to the data plane, which refuses request by request."""
    monkeypatch.setattr("gateway.policy.space.BOXES_MOST", 2)
    assert any("too many kinds" in warning for warning in policies.warnings())
