"""A GPU's name gives its capability, and a declared card is recognised in a vendor's spelling."""

import pytest

from gateway.runtimes.hardware import compute_capability, native_activations, same_gpu


@pytest.mark.parametrize(
    ("name", "capability"),
    [
        ("NVIDIA H200", (9, 0)),
        ("NVIDIA H100 80GB HBM3", (9, 0)),
        ("NVIDIA GH200 480GB", (9, 0)),
        ("NVIDIA A100-SXM4-80GB", (8, 0)),
        ("NVIDIA A10G", (8, 6)),
        ("NVIDIA L40S", (8, 9)),
        ("NVIDIA L4", (8, 9)),
        ("NVIDIA B200", (10, 0)),
        ("NVIDIA GB200", (10, 0)),
        ("NVIDIA B300 SXM6 AC", (10, 3)),
        ("NVIDIA GeForce RTX 4090", (8, 9)),
        ("NVIDIA GeForce RTX 5090", (12, 0)),
        ("NVIDIA GeForce RTX 3090", (8, 6)),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", (12, 0)),
        ("Tesla T4", (7, 5)),
        ("Tesla V100-SXM2-32GB", (7, 0)),
        ("AMD Instinct MI300X", None),
        ("", None),
    ],
)
def test_compute_capability(name: str, capability: tuple[int, int] | None) -> None:
    """Known cards have their capability, an unknown one has none."""
    assert capability == compute_capability(name)


@pytest.mark.parametrize(
    ("weights", "gpus", "native"),
    [
        ("fp8", ("NVIDIA H200",), True),
        ("fp8", ("NVIDIA A100-SXM4-80GB",), False),
        ("nvfp4", ("NVIDIA H200",), False),
        ("nvfp4", ("NVIDIA B200",), True),
        ("fp8", ("NVIDIA H200", "NVIDIA A100"), False),
        ("fp8", (), None),
        ("fp8", ("AMD Instinct MI300X",), None),
        ("int4", ("NVIDIA H200",), None),
    ],
)
def test_native_activations(weights: str, gpus: tuple[str, ...], native: bool | None) -> None:
    """Low-precision activations are native only where every card has them; without knowledge there is no answer."""
    assert native_activations(weights, gpus) is native


@pytest.mark.parametrize(
    ("declared", "reported", "same"),
    [
        ("H100", "NVIDIA H100 80GB HBM3", True),
        ("H100 SXM", "NVIDIA H100 80GB HBM3", True),
        ("L4", "NVIDIA L40S", False),
        ("A100", "NVIDIA A100-SXM4-80GB", True),
        ("RTX 4090", "NVIDIA GeForce RTX 4090", True),
        ("H100", "NVIDIA H200", False),
        ("cpu", "AMD EPYC", True),
    ],
)
def test_same_gpu(declared: str, reported: str, same: bool) -> None:
    """The model word decides; a declared name without one claims nothing."""
    assert same_gpu(declared, reported) is same
