"""The hardware gate of policy.md."""

from typing import Any

import pytest

from gateway.policy.hardware import compute_capability


def on(weights: str, hardware: dict[str, Any] | None, activations: str = "bf16", **more: Any) -> Any:
    def change(data: dict[str, Any]) -> None:
        pool = data["pools"]["fp8"]
        pool["precision"] = {"weights": weights, "activations": activations, "kv_cache": "bf16", **more}
        pool.pop("hardware")
        data["models"]["qwen"]["adapters"]["legal"]["validated_on"] = ["bf16"]
        if hardware is not None:
            pool["hardware"] = hardware

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (on("fp8", {"gpu": "A100"}), "claims fp8, which needs compute capability 8.9, but A100 has 8.0"),
        (
            on("fp8_e4m3", {"compute_capability": 8.6}),
            "which needs compute capability 8.9, but this GPU has 8.6",
        ),
        (on("bf16", {"gpu": "A100"}, "fp8", dynamic_scales=False), "claims fp8"),
        (on("nvfp4", {"gpu": "NVIDIA H100 80GB HBM3"}), "claims nvfp4, which needs compute capability 10.0"),
        (on("mxfp4", {"gpu": "H200"}, "mxfp8", dynamic_scales=False), "needs compute capability 10.0"),
        (on("fp8", {"device": "cpu"}), "on a CPU, which has no native path"),
        (on("fp8", {"gpu": "MI250X"}), "which MI250X does not compute natively"),
        (on("bf16", {"gpu": "A100", "compute_capability": "9.0"}), "A100 has compute capability 8.0, not 9.0"),
    ],
)
def test_a_claim_that_the_hardware_cannot_meet_is_refused(change: Any, said: str, policies: Any) -> None:
    """A pool never says it computes what its GPU cannot."""
    found = policies.errors(change)
    assert said in found[0].message
    assert {error.file for error in found} == {"policy.yaml"}


@pytest.mark.parametrize(
    "change",
    [
        on("fp8", {"gpu": "H100"}),
        on("fp8", {"gpu": "L40S"}),
        on("fp8", {"compute_capability": "8.9"}),
        on("nvfp4", {"gpu": "B200"}),
        on("fp8", {"gpu": "AMD Instinct MI300X"}),
        on("mxfp4", {"gpu": "H100"}),
        on("int4", {"gpu": "A100"}),
        on("q4_0", {"device": "cpu"}, "q8_0", dynamic_scales=False),
        on("fp8", {"gpu": "A100"}, emulated=True),
        on("nvfp4", {"device": "cpu"}, emulated=True),
    ],
)
def test_a_native_or_honest_pool_is_good(change: Any, policies: Any) -> None:
    """Native formats pass; ``emulated: true`` says what it is; weight-only microscaling claims no matrix unit."""
    assert policies.load(change).warnings == ()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (on("fp8", None), "does not say on what hardware"),
        (on("fp8", {"gpu": "FutureChip 9"}), "which is not known here"),
        (on("int4", {"gpu": "T4"}), "weight-only int4 kernels need compute capability 8.0, here it is 7.5"),
        (on("q8_0", {"gpu": "V100"}), "weight-only q8_0 kernels"),
        (on("int8", {"gpu": "A100"}, "int8"), "does not say whether its activation scales are static"),
    ],
)
def test_what_cannot_be_told_is_warned_of(change: Any, said: str, policies: Any) -> None:
    """Unknown hardware is served, but not silently."""
    assert any(said in warning for warning in policies.warnings(change))


@pytest.mark.parametrize(
    ("gpu", "capability"),
    [
        ("H100", 9.0),
        ("NVIDIA H100 80GB HBM3", 9.0),
        ("NVIDIA A100-SXM4-40GB", 8.0),
        ("NVIDIA RTX 4090", 8.9),
        ("RTX 6000 Ada", 8.9),
        ("Tesla T4", 7.5),
        ("GB200", 10.0),
        ("L4", 8.9),
        ("RTX PRO 6000 Blackwell", 12.0),
        ("Radeon", None),
    ],
)
def test_capability_by_name(gpu: str, capability: float | None) -> None:
    """Names as people and drivers write them."""
    assert compute_capability(gpu) == capability
