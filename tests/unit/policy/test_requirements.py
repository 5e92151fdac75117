"""What constraints ask of pools."""

from typing import Any

import pytest

from gateway.model.precision import Precision
from gateway.model.table import Pool
from gateway.policy.requirements import requirement_of
from gateway.policy.schema.rules import Constraint


def pool(**given: Any) -> Pool:
    precision = given.pop("precision", {})
    return Pool("p", "m", given.pop("runtime", "vllm"), Precision(**precision), (), **given)


def objection(pool: Pool, **given: Any) -> str:
    return requirement_of(Constraint.model_validate({"name": "c", **given})).objection(pool)


INT4 = {"weights": "q4_k_m", "kv_cache": "fp8_e5m2", "method": "awq"}


@pytest.mark.parametrize(
    ("traits", "yes", "no"),
    [
        ({"weights": ["bf16", "fp16"]}, pool(), pool(precision=INT4)),
        ({"weights": "int4"}, pool(precision=INT4), pool()),
        ({"kv_cache": "fp8"}, pool(precision=INT4), pool()),
        ({"activations": "bf16"}, pool(), pool(precision={"activations": "int8"})),
        ({"weights": "q4_k_m"}, pool(precision=INT4), pool(precision={"weights": "int4"})),
        ({"method": "awq"}, pool(precision=INT4), pool()),
        ({"runtime": ["sglang", "vllm"]}, pool(), pool(runtime="llama.cpp")),
        ({"pool": "p"}, pool(), Pool("q", "m", "vllm", Precision(), ())),
        ({"dynamic_scales": False}, pool(), pool(precision={"dynamic_scales": True})),
        ({"emulated": False}, pool(), pool(precision={"emulated": True})),
        ({"gpu": "h100"}, pool(gpu="H100"), pool()),
        ({"device": "gpu"}, pool(device="gpu"), pool()),
        ({"compute_capability": {"gte": "8.9"}}, pool(compute_capability=9.0), pool(compute_capability=8.0)),
        ({"compute_capability": {"lt": "10.0"}}, pool(compute_capability=9.0), pool(compute_capability=12.0)),
        ({"compute_capability": {"gte": "8.0"}}, pool(compute_capability=8.0), pool()),
        ({"labels": {"zone": ["a", "b"]}}, pool(labels={"zone": "b"}), pool(labels={"zone": "c"})),
        ({"labels": {"zone": "a"}}, pool(labels={"zone": "a"}), pool()),
    ],
)
def test_require_is_strict(traits: Any, yes: Pool, no: Pool) -> None:
    """A pool must have the trait; what it does not declare it does not have. A general format means every exact one."""
    assert objection(yes, require=traits) == ""
    assert "must be" in objection(no, require=traits)


@pytest.mark.parametrize(
    ("traits", "out", "stays"),
    [
        ({"weights": "int4"}, pool(precision=INT4), pool()),
        ({"weights": "q4_k_m"}, pool(precision={"weights": "int4"}), pool(precision={"weights": "q8_0"})),
        ({"kv_cache": "fp8"}, pool(precision=INT4), pool()),
        ({"labels": {"zone": "a"}}, pool(labels={"zone": "a"}), pool()),
        ({"gpu": "A100"}, pool(gpu="a100"), pool()),
    ],
)
def test_forbid_errs_on_the_side_of_keeping_out(traits: Any, out: Pool, stays: Pool) -> None:
    """A pool that may be the forbidden exact format is out; what is not declared is not hit."""
    assert "is forbidden" in objection(out, forbid=traits)
    assert objection(stays, forbid=traits) == ""


def test_every_fault_is_said_with_what_the_pool_has() -> None:
    """The sentence needs no look into the policy."""
    said = objection(
        pool(precision=INT4), require={"weights": ["bf16", "fp16"], "dynamic_scales": True}, forbid={"runtime": "vllm"}
    )
    assert said == (
        "weights q4_k_m, but it must be weights bf16 or fp16; static scales, but it must be dynamic scales; "
        "runtime vllm, but runtime vllm is forbidden"
    )


def test_all_of_require_and_none_of_forbid() -> None:
    """Several traits are joined by and under ``require``, by or under ``forbid``."""
    both = {"weights": "int4", "runtime": "vllm"}
    assert objection(pool(precision=INT4), require=both) == ""
    assert objection(pool(), require=both)
    assert objection(pool(), forbid=both)
    constraint = Constraint.model_validate({"name": "c", "require": both, "forbid": {"emulated": True}})
    assert requirement_of(constraint).words == "weights int4 and runtime vllm and not emulated"
