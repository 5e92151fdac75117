"""What is valid and hardly meant is told, at the value; what is merely unusual is not."""

from typing import Any

import pytest


def pool(data: dict[str, Any], name: str, **changes: Any) -> None:
    data["pools"][name].update(changes)


def forbid(data: dict[str, Any], **traits: Any) -> None:
    data["pools"]["int4"]["precision"]["method"] = "awq"
    data["constraints"].append({"name": "ban", "forbid": traits})


def require(data: dict[str, Any], **traits: Any) -> None:
    data["constraints"].append({"name": "only", "require": traits})


def copied(data: dict[str, Any]) -> None:
    """A pool that was made from the baseline, with one endpoint left."""
    pool(data, "fp8", endpoints=["http://bf16-1:8000", "http://new:1"])
    data["shadow"] = [{"name": "s", "candidate": "fp8", "sample": "5%"}]


def two_in_one(data: dict[str, Any]) -> None:
    """One server that has a model in two precisions, under names of its own."""
    data["routes"][1]["pools"] = ["bf16", "fp8"]
    pool(data, "fp8", endpoints=["http://bf16-1:8000"], upstream_model="qwen:q8_0")
    data["shadow"] = [{"name": "s", "candidate": "fp8", "sample": "5%"}]


def window(data: dict[str, Any], size: object, **classify: Any) -> None:
    data["models"]["qwen"]["context_window"] = size
    data["classify"].update(classify)


def encoder(data: dict[str, Any]) -> None:
    """A model of embeddings, with the window that most of them have, and one that its route tells."""
    for name, size in (("bge", 512), ("nomic", "2k")):
        data["models"][name] = {"context_window": size}
        data["pools"][name] = {**data["pools"]["bf16"], "model": name, "endpoints": [f"http://{name}:80"]}
    data["classify"]["output_tokens"] = "2k"
    data["routes"] += [
        {"name": "bge", "pools": ["bge"]},
        {"name": "nomic", "when": {"api": ["embeddings", "tokenize"]}, "pools": ["nomic"]},
    ]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: d["models"]["qwen"].update(context_window=32), "no more tokens than a request without a limit"),
        (lambda d: window(d, "4k", output_tokens="4k"), "no more tokens than a request without a limit"),
        (lambda d: pool(d, "fp8", context_window="1m"), "the model's own window is smaller (131072 tokens)"),
        (lambda d: pool(d, "fp8", timeouts={"total": "5s", "idle": "20s"}), "over before idle could end it"),
        (lambda d: pool(d, "fp8", timeouts={"total": "1s", "connect": "2s"}), "over before connect could end it"),
        (lambda d: pool(d, "int4", hardware={"device": "cpu", "gpu": "A100"}), "a CPU, and A100 beside it"),
        (
            lambda d: pool(d, "int4", adapters=["legal"]),
            "never served: 'legal' is not validated on q4_k_m",
        ),
        (lambda d: d["classify"]["tools"]["grants"].update(refunds=["x"]), "no tenant has the grant 'refunds'"),
        (lambda d: d["guards"]["errors"].update(block="24h"), "a bad pool is seen 24h later at the soonest"),
        (lambda d: d["guards"]["errors"].update(deadline="2h"), "a bad pool is seen 2h later at the soonest"),
        (copied, "http://bf16-1:8000 is an endpoint of the baseline 'bf16' too, and is compared with itself"),
        (
            lambda d: forbid(d, method="awk"),
            "no pool has the method 'awk'; the whole word counts",
        ),
        (lambda d: forbid(d, gpu="A-100"), "no pool has the gpu 'A-100'; the whole word counts"),
        (lambda d: forbid(d, gpu="A100-PCIe"), "no pool has the gpu 'A100-PCIe'; the whole word counts"),
    ],
)
def test_what_is_hardly_meant_is_warned_of(change: Any, said: str, policies: Any) -> None:
    """The policy loads: it is not known to be wrong."""
    assert [warning for warning in policies.warnings(change) if said in warning]


@pytest.mark.parametrize(
    "change",
    [
        lambda d: pool(d, "fp8", timeouts={"total": "30s"}),
        lambda d: pool(d, "fp8", timeouts={"total": "30s", "idle": "30s"}),
        lambda d: pool(d, "fp8", adapters=["legal"]),
        lambda d: pool(d, "fp8", context_window="128k"),
        lambda d: forbid(d, method="rtn", gpu="T4"),
        lambda d: forbid(d, method="AWQ".lower(), gpu="a100"),
        lambda d: forbid(d, method=["awq", "autoawq"], gpu=["V100", "A10", "H200", "MI300X"]),
        lambda d: require(d, gpu=["A100", "H100", "H200", "h100-pcie"]),
        lambda d: d["guards"].update(votes={"metric": "feedback_rate", "limit": "20%", "deadline": "24h"}),
        two_in_one,
        encoder,
    ],
)
def test_what_is_right_is_not(change: Any, policies: Any) -> None:
    """A default that a limit outlasts, and a ban of what may come one day, are nobody's mistake."""
    assert [warning for warning in policies.warnings(change) if "no route matches" not in warning] == []
