"""TensorRT-LLM: configuration in the labels of its metrics. Pages are written after its collector."""

from collections.abc import Callable

import pytest

from gateway.model.precision import Precision
from gateway.runtimes.adapter import Answers
from gateway.runtimes.attestation import Attestation, Confidence
from gateway.runtimes.compare import compare
from gateway.runtimes.methods import MODEL_DTYPE
from gateway.runtimes.tensorrt_llm import ADAPTER, scheme_of_algorithm

LABELS = 'engine_type="trtllm",model_name="m"'
LOAD = f"""trtllm_num_requests_running{{{LABELS}}} 3.0
trtllm_num_requests_waiting{{{LABELS}}} 2.0
trtllm_kv_cache_utilization{{{LABELS}}} 0.25
trtllm_kv_cache_hit_rate{{{LABELS}}} 0.5
trtllm_kv_cache_reused_blocks_total{{{LABELS}}} 10.0
trtllm_kv_cache_missed_blocks_total{{{LABELS}}} 30.0
trtllm_max_num_active_requests{{{LABELS}}} 64.0
"""


def config_page(
    quantization: str, dtype: str = "bfloat16", cache: str = "auto", gpu: str = "NVIDIA H100 80GB HBM3"
) -> str:
    """The three configuration metrics."""
    return (
        f'trtllm_model_config_info{{{LABELS},dtype="{dtype}",quantization="{quantization}",max_model_len="8192",'
        f'gpu_type="{gpu}"}} 1.0\n'
        f'trtllm_kv_cache_config_info{{{LABELS},page_size="32",cache_dtype="{cache}"}} 1.0\n'
        f'trtllm_parallel_config_info{{{LABELS},tensor_parallel_size="2",pipeline_parallel_size="1"}} 1.0\n'
    )


@pytest.fixture
def attest(answers: Callable[..., Answers]) -> Callable[..., Attestation]:
    """Attest a server with this configuration."""

    def make(*args: str, **kwargs: str) -> Attestation:
        return ADAPTER.attest(
            answers(
                {
                    "/prometheus/metrics": config_page(*args, **kwargs).encode(),
                    "/version": {"version": "1.2.0"},
                    "/v1/models": {"data": [{"id": "llama"}]},
                }
            )
        )

    return make


def test_the_draining_path_is_never_read() -> None:
    """/metrics is a queue that a read empties for whoever else reads it."""
    assert "/metrics" not in {probe.path for probe in ADAPTER.probes}


def test_load(answers: Callable[..., Answers]) -> None:
    """Requests, KV share, block hits and the size of a batch."""
    load = ADAPTER.load(answers({"/prometheus/metrics": LOAD.encode()}), 2.0)
    assert load is not None
    assert (load.running, load.waiting, load.kv_usage, load.slots) == (3, 2, 0.25, 64)
    assert (load.prefix_queries, load.prefix_hits, load.prefix_hit_rate) == (40.0, 10.0, 0.5)
    assert ADAPTER.load(answers({"/prometheus/metrics": 404}), 2.0) is None


def test_a_plain_engine_is_attested(attest: Callable[..., Attestation]) -> None:
    """No algorithm: everything follows from the dtype."""
    found = attest("None")
    assert [found.weights.value, found.activations.value, found.kv_cache.value] == ["bf16"] * 3
    assert found.unattested == ()
    assert (found.context_length, found.tensor_parallel, found.version) == (8192, 2, "1.2.0")
    assert found.gpus == ("NVIDIA H100 80GB HBM3",)
    assert found.device["page_size"] == "32"
    assert compare(Precision(), found) == ()


@pytest.mark.parametrize(
    ("algorithm", "weights", "activations"),
    [
        ("FP8", "fp8", "fp8"),
        ("FP8_BLOCK_SCALES", "fp8", "fp8"),
        ("QuantAlgo.FP8", "fp8", "fp8"),
        ("NVFP4", "nvfp4", "nvfp4"),
        ("W4A8_NVFP4_FP8", "nvfp4", "fp8"),
        ("W4A8_MXFP4_MXFP8", "mxfp4", "mxfp8"),
        ("W4A16_MXFP4", "mxfp4", MODEL_DTYPE),
        ("W4A16_AWQ", "int4", MODEL_DTYPE),
        ("W4A16_GPTQ", "int4", MODEL_DTYPE),
        ("W4A8_AWQ", "int4", "fp8"),
        ("W4A8_QSERVE_PER_GROUP", "int4", "int8"),
        ("W8A8_SQ_PER_CHANNEL", "int8", "int8"),
        ("W8A16", "int8", MODEL_DTYPE),
        ("INT8", "int8", None),
        ("MIXED_PRECISION", None, None),
        ("NEW_ONE", None, None),
    ],
)
def test_algorithms(algorithm: str, weights: str | None, activations: str | None) -> None:
    """Each algorithm's name gives its formats; mixed and unknown ones give none."""
    scheme = scheme_of_algorithm(algorithm)
    assert (weights, activations) == (scheme.weights, scheme.activations)


def test_a_quantised_engine_leaves_auto_kv_open(attest: Callable[..., Attestation]) -> None:
    """A quantised checkpoint may bring an FP8 KV cache of its own."""
    found = attest("FP8")
    assert found.weights.confidence is Confidence.REPORTED
    assert not found.kv_cache.known
    assert attest("FP8", cache="fp8").kv_cache.value == "fp8"


def test_fp4_on_hopper_is_weight_only(attest: Callable[..., Attestation]) -> None:
    """Without FP4 units the activations stay in the model's dtype."""
    assert attest("NVFP4").activations.value == "bf16"
    assert attest("NVFP4", gpu="NVIDIA B200").activations.value == "nvfp4"


def test_auto_tells_nothing(attest: Callable[..., Attestation]) -> None:
    """A dtype of auto is no dtype; a mixed algorithm no format."""
    assert attest("None", dtype="auto").unattested == ("weights", "activations", "kv_cache")
    assert not attest("MIXED_PRECISION").weights.known


def test_without_metrics_only_the_name(answers: Callable[..., Answers]) -> None:
    """Metrics need return_perf_metrics; without them the endpoint is unattested."""
    found = ADAPTER.attest(answers({"/v1/models": {"data": [{"id": "llama"}]}, "/prometheus/metrics": 404}))
    assert found.unattested == ("weights", "activations", "kv_cache")


def test_health(answers: Callable[..., Answers]) -> None:
    """By the status alone."""
    assert ADAPTER.health(answers({"/health": b""})).ready
    assert not ADAPTER.health(answers({"/health": 500})).ready
