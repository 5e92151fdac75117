"""vLLM's own account of itself, against what really ran: each case of a server that misleads.

The pages are real where a file is named; the variants change one field of a real ``/server_info`` to what was seen
on an H200.
"""

import copy
from collections.abc import Callable
from typing import Any

import orjson
import pytest

from gateway.model.precision import Precision
from gateway.runtimes.adapter import Answers
from gateway.runtimes.attestation import Attestation, Confidence
from gateway.runtimes.compare import Verdict, compare, judge
from gateway.runtimes.vllm import ADAPTER
from gateway.runtimes.vllm_info import INFO_PATH, METRICS_PATH, VERSION_PATH

MODELS = {"data": [{"id": "m", "root": "/models/m", "parent": None, "max_model_len": 2048}]}
H200 = "GPU 0: NVIDIA H200\nGPU 1: NVIDIA H200"


@pytest.fixture(scope="module")
def info(dump: Callable[[str], bytes]) -> dict[str, Any]:
    """The real /server_info of a BF16 server of 0.32 on CPU."""
    value: dict[str, Any] = orjson.loads(dump("vllm-0.32-cpu.server_info.json"))
    return value


@pytest.fixture
def attest(info: dict[str, Any], answers: Callable[..., Answers]) -> Callable[..., Attestation]:
    """Attest a server like the recorded one, with some fields of its configuration changed."""

    def make(
        quantization: str | None = None,
        quantization_config: object = None,
        quant_config: str | None = None,
        cache_dtype: str = "auto",
        gpus: str | None = H200,
        **more: dict[str, object],
    ) -> Attestation:
        changed = copy.deepcopy(info)
        config = changed["vllm_config"]
        config["model_config"].update(quantization=quantization, quantization_config=quantization_config)
        config["quant_config"] = quant_config
        config["cache_config"]["cache_dtype"] = cache_dtype
        config["device_config"]["device"] = "cuda" if gpus else "cpu"
        changed["system_env"]["nvidia_gpu_models"] = gpus
        for section, fields in more.items():
            config[section].update(fields)
        return ADAPTER.attest(answers({"/v1/models": MODELS, INFO_PATH: changed}))

    return make


def test_a_plain_server_is_fully_attested(
    info: dict[str, Any], answers: Callable[..., Answers], dump: Callable[[str], bytes]
) -> None:
    """BF16 without quantisation: weights, activations and the KV cache behind ``auto`` all follow from the dtype."""
    found = ADAPTER.attest(
        answers(
            {
                "/v1/models": MODELS,
                INFO_PATH: info,
                METRICS_PATH: dump("vllm-0.32-cpu.metrics.txt"),
                VERSION_PATH: {"version": "0.32.0"},
            }
        )
    )
    assert [found.weights.value, found.activations.value, found.kv_cache.value] == ["bf16"] * 3
    assert found.unattested == ()
    assert (found.version, found.context_length, found.tensor_parallel) == ("0.32.0", 2048, 1)
    assert found.kv_tokens == 46592
    assert found.kv_bytes_per_token == pytest.approx(23045.6, abs=0.1)  # 30 layers, 3 heads of 64, K and V, 2 bytes
    assert judge(found, compare(Precision(), found)) is Verdict.ATTESTED


def test_without_the_development_endpoint_auto_is_unknown(
    answers: Callable[..., Answers], dump: Callable[[str], bytes]
) -> None:
    """A production server (404) attests nothing of its weights, and ``auto`` is not taken for BF16."""
    found = ADAPTER.attest(
        answers({"/v1/models": MODELS, INFO_PATH: 404, METRICS_PATH: dump("vllm-0.25-h200-fp8.metrics.txt")})
    )
    assert not found.weights.known
    assert not found.kv_cache.known
    assert found.kv_tokens == 972752
    assert judge(found, compare(Precision(weights="fp8", activations="fp8"), found)) is Verdict.UNATTESTED


def test_the_caches_settings_are_on_record(answers: Callable[..., Answers], dump: Callable[[str], bytes]) -> None:
    """They explain a latency later, and the metrics tell them where the development endpoint is closed."""
    found = ADAPTER.attest(answers({INFO_PATH: 404, METRICS_PATH: dump("vllm-0.25-h200-bf16.metrics.txt")}))
    assert found.device == {"block_size": "16", "enable_prefix_caching": "True", "gpu_memory_utilization": "0.92"}


def test_what_the_development_endpoint_tells_joins_them(
    info: dict[str, Any], answers: Callable[..., Answers], dump: Callable[[str], bytes]
) -> None:
    """Driver and CUDA come from there, the cache's settings from either."""
    changed = copy.deepcopy(info)
    changed["system_env"]["nvidia_driver_version"] = "580.95.05"
    device = ADAPTER.attest(answers({"/v1/models": MODELS, INFO_PATH: changed})).device
    assert (device["driver"], device["cuda"]) == ("580.95.05", "13.0.88")
    assert (device["block_size"], device["enable_prefix_caching"]) == ("128", "True")


def test_an_asked_kv_dtype_is_read_from_the_metrics(
    answers: Callable[..., Answers], dump: Callable[[str], bytes]
) -> None:
    """``cache_dtype="fp8"`` is reported, and the mamba dtype beside it is not mistaken for it."""
    found = ADAPTER.attest(answers({INFO_PATH: 404, METRICS_PATH: dump("vllm-0.25-h200-fp8-kv8.metrics.txt")}))
    assert (found.kv_cache.value, found.kv_cache.confidence) == ("fp8", Confidence.REPORTED)
    assert [m.field for m in compare(Precision(weights="fp8", activations="fp8", kv_cache="bf16"), found)] == [
        "kv_cache"
    ]


def test_a_weight_only_int8_that_quantises_nothing(attest: Callable[..., Attestation]) -> None:
    """int8_per_channel_weight_only on a dense model is reported and does nothing: it is BF16, and contradicts int8."""
    found = attest("int8_per_channel_weight_only", {"linear": None, "moe": {"weight": {"dtype": "torch.int8"}}})
    assert (found.weights.value, found.weights.confidence) == ("bf16", Confidence.INFERRED)
    assert "quantises no layer" in found.notes[0]
    mismatches = compare(Precision(weights="int8"), found)
    assert [m.field for m in mismatches] == ["weights"]
    assert judge(found, mismatches) is Verdict.SUSPECT
    assert compare(Precision(weights="bf16"), found) == ()


def test_the_same_method_on_experts_does_quantise(attest: Callable[..., Attestation]) -> None:
    """On a mixture of experts the same method is INT8, with the other layers as they were."""
    found = attest(
        "int8_per_channel_weight_only",
        {"linear": None, "moe": {"weight": {"dtype": "torch.int8"}}},
        parallel_config={"is_moe_model": True},
    )
    assert (found.weights.value, found.weights.confidence) == ("int8", Confidence.REPORTED)
    assert "experts are int8" in found.notes[0]


def test_the_same_method_without_details_is_unknown(attest: Callable[..., Attestation]) -> None:
    """A version that does not print the layers' specs leaves the question open."""
    assert not attest("int8_per_channel_weight_only").weights.known


def test_online_fp8_is_fp8(attest: Callable[..., Attestation]) -> None:
    """An online method that lists specs is what it says, and brings no KV scheme."""
    spec = {"weight": {"dtype": "torch.float8_e4m3fn"}, "activation": {"dtype": "torch.float8_e4m3fn"}}
    found = attest("fp8_per_channel", {"linear": spec, "moe": spec})
    assert (found.weights.value, found.activations.value, found.kv_cache.value) == ("fp8", "fp8", "bf16")
    assert found.activations.confidence is Confidence.INFERRED


@pytest.mark.parametrize(
    ("config", "weights"),
    [
        ({"linear": "fp8_per_block", "moe": "fp8_per_block"}, "fp8"),
        ({"linear": {"dtype": "torch.float8_e4m3fn"}}, "fp8"),
        ({"linear": {"weight": "fp8_per_tensor"}}, "fp8"),
        ({"global_scheme": "fp8_per_tensor"}, "fp8"),
    ],
)
def test_spellings_of_layer_specs(attest: Callable[..., Attestation], config: object, weights: str) -> None:
    """Specs come as names, as formats or nested; older versions give a global scheme."""
    assert weights == attest("fp8_per_tensor", config).weights.value


def test_compressed_tensors_does_not_tell(attest: Callable[..., Attestation]) -> None:
    """The container's name says no bits, and its ``auto`` KV cache may be FP8: neither is taken for granted."""
    found = attest("compressed-tensors", quant_config="<…CompressedTensorsConfig object at 0x7f>")
    assert found.unattested == ("weights", "activations", "kv_cache")
    assert judge(found, compare(Precision(weights="int4", kv_cache="bf16"), found)) is Verdict.UNATTESTED


def test_a_kv_scheme_behind_auto_shows_in_the_bytes(attest: Callable[..., Attestation]) -> None:
    """FP8 KV of a checkpoint's own scheme, reported as auto: half the bytes per token of a BF16 endpoint."""
    cache = {"kv_cache_memory_bytes": 3 * 2**30, "block_size": 16, "num_gpu_blocks": 3072}
    full = attest(cache_config={**cache, "kv_cache_memory_bytes": 6 * 2**30, "kv_cache_size_tokens": 49152})
    found = attest("compressed-tensors", cache_config={**cache, "kv_cache_size_tokens": 49152})
    declared = Precision(weights="fp8", activations="fp8", kv_cache="bf16")
    mismatches = compare(declared, found, reference=full)
    assert [(m.field, m.observed, m.confidence) for m in mismatches] == [("kv_cache", "8 bits", Confidence.INFERRED)]
    assert compare(Precision(weights="fp8", activations="fp8", kv_cache="fp8"), found, reference=full) == ()


def test_awq_and_gptq_tell_bits_and_group(attest: Callable[..., Attestation]) -> None:
    """Bits and group size are in the printed config; activations and KV stay in the model's dtype."""
    awq = attest("auto_awq", quant_config="AutoAWQConfig(quant_type=uint4, group_size=128, zero_point=True)")
    assert (awq.weights.value, awq.group_size, awq.activations.value, awq.kv_cache.value) == (
        "int4",
        128,
        "bf16",
        "bf16",
    )
    gptq = attest("auto_gptq", quant_config="AutoGPTQConfig(quant_type=uint8b128, group_size=64)")
    assert (gptq.weights.value, gptq.group_size) == ("int8", 64)
    declared = Precision(weights="int4", method="awq", group_size=64)
    assert {m.field for m in compare(declared, gptq)} == {"weights", "method"}
    assert {m.field for m in compare(declared, awq)} == {"group_size"}


def test_gptq_without_bits_falls_back_to_the_name(info: dict[str, Any], answers: Callable[..., Answers]) -> None:
    """Where the printed form hides the bits, the model's name is a hint, no more."""
    changed = copy.deepcopy(info)
    changed["vllm_config"]["model_config"]["quantization"] = "auto_gptq"
    models = {"data": [{"id": "m", "root": "org/Model-GPTQ-Int4"}]}
    found = ADAPTER.attest(answers({"/v1/models": models, INFO_PATH: changed}))
    assert (found.weights.value, found.weights.confidence) == ("int4", Confidence.INFERRED)


def test_dummy_weights_are_no_weights(attest: Callable[..., Attestation]) -> None:
    """GPTQ with dummy weights quantises nothing at all and says otherwise: nothing is believed."""
    found = attest("auto_gptq", load_config={"load_format": "dummy"})
    assert not found.weights.known
    assert "dummy" in found.notes[0]


def test_weight_only_fallback_by_the_card(attest: Callable[..., Attestation]) -> None:
    """NVFP4 on Hopper and FP8 on Ampere run weight-only, with a log line only: activations are the model's dtype."""
    hopper = attest("modelopt_fp4")
    assert (hopper.weights.value, hopper.activations.value) == ("nvfp4", "bf16")
    ampere = attest("fp8", gpus="GPU 0: NVIDIA A100-SXM4-80GB")
    assert (ampere.activations.value, ampere.activations.confidence) == ("bf16", Confidence.INFERRED)
    mismatches = compare(Precision(weights="fp8", activations="fp8"), ampere)
    assert judge(ampere, mismatches) is Verdict.SUSPECT


def test_mxfp8_may_be_weight_only(attest: Callable[..., Attestation]) -> None:
    """The kernel of mxfp8 is in the log alone: its activations are unknown."""
    found = attest("mxfp8")
    assert found.weights.value == "mxfp8"
    assert not found.activations.known


@pytest.mark.parametrize(
    ("cache_dtype", "gpus", "word"),
    [("int8_per_token_head", None, "garbage on CPU"), ("int4_per_token_head", H200, "NaN")],
)
def test_known_hazards_come_first(
    attest: Callable[..., Attestation], cache_dtype: str, gpus: str | None, word: str
) -> None:
    """KV types that start, are healthy and answer nonsense are called by name."""
    assert word in attest(cache_dtype=cache_dtype, gpus=gpus).notes[0]


def test_int8_per_token_head_is_fine_on_a_gpu(attest: Callable[..., Attestation]) -> None:
    """The same KV type that is garbage on a CPU is good on a GPU."""
    assert attest(cache_dtype="int8_per_token_head").notes == ()


def test_gpus_are_read_under_both_names(info: dict[str, Any], answers: Callable[..., Answers]) -> None:
    """0.25 and later versions name the field differently."""
    changed = copy.deepcopy(info)
    changed["system_env"].pop("nvidia_gpu_models")
    changed["system_env"]["gpu_models"] = H200
    assert ADAPTER.attest(answers({INFO_PATH: changed})).gpus == ("NVIDIA H200", "NVIDIA H200")


def test_a_crippled_info_page_falls_back(answers: Callable[..., Answers]) -> None:
    """A page without the expected sections attests nothing and raises nothing."""
    pages: list[object] = [{}, {"vllm_config": {"model_config": {}}}, {"vllm_config": {"model_config": {"model": "x"}}}]
    for page in pages:
        found = ADAPTER.attest(answers({"/v1/models": MODELS, INFO_PATH: page}))
        assert not found.weights.known
