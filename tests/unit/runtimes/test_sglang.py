"""SGLang: real pages of 0.5.23, and what its configuration leaves open."""

import copy
from collections.abc import Callable
from typing import Any

import orjson
import pytest

from gateway.model.precision import Precision
from gateway.runtimes.adapter import Answer, Answers, HealthState, Purpose
from gateway.runtimes.attestation import Attestation, Confidence
from gateway.runtimes.compare import compare
from gateway.runtimes.sglang import ADAPTER

MODELS = {"data": [{"id": "m", "root": "/models/m", "max_model_len": 2048}]}


@pytest.fixture(scope="module")
def info(dump: Callable[[str], bytes]) -> dict[str, Any]:
    """The real /server_info of a BF16 server."""
    value: dict[str, Any] = orjson.loads(dump("sglang-0.5.23-cpu.server_info.json"))
    return value


@pytest.fixture
def attest(
    info: dict[str, Any], answers: Callable[..., Answers], dump: Callable[[str], bytes]
) -> Callable[..., Attestation]:
    """Attest the recorded server with some fields changed."""

    def make(models: object = MODELS, loads: object = None, **fields: object) -> Attestation:
        changed = copy.deepcopy(info) | fields
        metrics = dump("sglang-0.5.23-cpu.metrics.txt")
        return ADAPTER.attest(
            answers({"/v1/models": models, "/server_info": changed, "/metrics": metrics, "/v1/loads": loads or {}})
        )

    return make


def test_health(answers: Callable[..., Answers]) -> None:
    """/health generates a token: 200 is proof, 503 and silence are not, and the timeout leaves it its second."""
    assert ADAPTER.health(answers({"/health": b""})).ready
    assert ADAPTER.health(answers({"/health": 503})).state is HealthState.UNHEALTHY
    assert not ADAPTER.health(answers({"/health": Answer(0, error="timeout")})).ready
    (probe,) = ADAPTER.probes_for(Purpose.HEALTH)
    assert probe.timeout_s >= 3.0


def test_load_of_a_real_page(answers: Callable[..., Answers], dump: Callable[[str], bytes]) -> None:
    """An idle server reports zeros."""
    load = ADAPTER.load(answers({"/metrics": dump("sglang-0.5.23-cpu.metrics.txt")}), 1.0)
    assert load is not None
    assert (load.running, load.waiting, load.kv_usage, load.prefix_hit_rate) == (0, 0, 0.0, 0.0)


def test_ranks_do_not_multiply_the_load(answers: Callable[..., Answers]) -> None:
    """Four tensor-parallel ranks that repeat 5 are 5; two replicas are added; a grammar in the making waits too."""
    page = b"".join(
        b'sglang:num_running_reqs{dp_rank="%d",tp_rank="%d"} %d\nsglang:num_queue_reqs{dp_rank="%d",tp_rank="%d"} 1\n'
        b'sglang:token_usage{dp_rank="%d",tp_rank="%d"} 0.%d\n' % (d, t, 5 - d, d, t, d, t, 4 + 2 * d)
        for d in range(2)
        for t in range(4)
    )
    load = ADAPTER.load(answers({"/metrics": page + b'sglang:num_grammar_queue_reqs{tp_rank="0"} 3\n'}), 0.0)
    assert load is not None
    assert (load.running, load.waiting, load.kv_usage) == (9, 5, 0.5)


def test_no_metrics_no_load(answers: Callable[..., Answers]) -> None:
    """Without --enable-metrics the load is unknown."""
    assert ADAPTER.load(answers({"/metrics": 404}), 0.0) is None


def test_null_quantisation_is_only_an_inference(attest: Callable[..., Attestation]) -> None:
    """``quantization: null`` is what the command line asked; a checkpoint may still be quantised."""
    found = attest()
    assert (found.weights.value, found.weights.confidence) == ("bf16", Confidence.INFERRED)
    assert (found.kv_cache.value, found.kv_cache.confidence) == ("bf16", Confidence.INFERRED)
    assert (found.version, found.context_length, found.tensor_parallel) == ("0.5.23", 2048, 1)
    assert found.kv_bytes_per_token == pytest.approx(23042.8, abs=0.5)
    assert compare(Precision(), found) == ()


def test_a_quantised_checkpoint_is_hinted_at_by_its_name(attest: Callable[..., Attestation]) -> None:
    """A name that says AWQ outweighs the null."""
    found = attest(models={"data": [{"id": "m", "root": "org/Model-AWQ"}]})
    assert (found.weights.value, found.weights.confidence) == ("int4", Confidence.INFERRED)
    assert "hints" in found.notes[0]


@pytest.mark.parametrize(
    ("method", "weights", "activations"),
    [
        ("w8a8_int8", "int8", "int8"),
        ("fp8", "fp8", "fp8"),
        ("awq_marlin", "int4", "bf16"),
        ("modelopt_fp4", "nvfp4", "nvfp4"),
    ],
)
def test_methods(attest: Callable[..., Attestation], method: str, weights: str, activations: str) -> None:
    """An asked method is reported."""
    found = attest(quantization=method)
    assert (found.weights.value, found.weights.confidence) == (weights, Confidence.REPORTED)
    assert found.activations.value == activations


def test_containers_do_not_tell(attest: Callable[..., Attestation]) -> None:
    """compressed-tensors says no bits."""
    found = attest(quantization="compressed-tensors")
    assert not found.weights.known
    assert "does not tell" in found.notes[0]


def test_an_asked_kv_dtype_is_reported(attest: Callable[..., Attestation]) -> None:
    """fp8_e5m2 is an fp8, and not an fp8_e4m3."""
    found = attest(kv_cache_dtype="fp8_e5m2")
    assert found.kv_cache.confidence is Confidence.REPORTED
    assert compare(Precision(kv_cache="fp8"), found) == ()
    assert [m.field for m in compare(Precision(kv_cache="fp8_e4m3"), found)] == ["kv_cache"]


@pytest.mark.parametrize(("without", "caching"), [(False, "True"), (True, "False"), (None, None)])
def test_the_caches_settings_are_on_record(
    attest: Callable[..., Attestation], without: bool | None, caching: str | None
) -> None:
    """Under the names that a deployment record asks for: SGLang says what is off, the record what is on."""
    found = attest(page_size=1, mem_fraction_static=0.88, radix_eviction_policy="lru", disable_radix_cache=without)
    device = found.device
    assert (device["page_size"], device["mem_fraction_static"], device["radix_eviction_policy"]) == ("1", "0.88", "lru")
    assert device.get("enable_prefix_caching") == caching


def test_a_missing_kv_dtype_is_unknown(attest: Callable[..., Attestation]) -> None:
    """A version that does not tell leaves it open; so does a dtype of auto."""
    assert not attest(kv_cache_dtype=None).kv_cache.known
    assert not attest(dtype="auto").kv_cache.known
    assert not attest(dtype="auto").weights.known


@pytest.mark.parametrize(
    "loads",
    [
        {"accelerator": "NVIDIA H200", "loads": []},
        {"loads": [{"accelerator": "NVIDIA H200"}, {"accelerator": None}]},
        [{"accelerator": "NVIDIA H200"}],
    ],
)
def test_the_card_is_read(attest: Callable[..., Attestation], loads: object) -> None:
    """The accelerator stands at the top or in each replica's entry, by version."""
    assert attest(loads=loads).gpus == ("NVIDIA H200",)


def test_a_card_without_fp8_computes_in_the_models_dtype(attest: Callable[..., Attestation]) -> None:
    """FP8 on Ampere is weight-only."""
    found = attest(quantization="fp8", loads={"accelerator": "NVIDIA A100-SXM4-80GB"})
    assert found.activations.value == "bf16"


def test_without_server_info_only_the_names_are_known(answers: Callable[..., Answers]) -> None:
    """A closed /server_info leaves the endpoint unattested."""
    found = ADAPTER.attest(answers({"/v1/models": MODELS, "/server_info": 404}))
    assert found.unattested == ("weights", "activations", "kv_cache")
    assert found.models_listed
