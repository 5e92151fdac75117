"""LightLLM: its start arguments attest it. Pages are written after its source, which needs a GPU to run."""

from collections.abc import Callable

import pytest

from gateway.runtimes.adapter import Answers
from gateway.runtimes.attestation import Attestation, Confidence
from gateway.runtimes.lightllm import ADAPTER

INFO = {"data_type": "bfloat16", "quant_type": "none", "quant_cfg": None, "llm_kv_type": "None", "tp": 2, "dp": 1}


@pytest.fixture
def attest(answers: Callable[..., Answers]) -> Callable[..., Attestation]:
    """Attest a server with these start arguments."""

    def make(**fields: object) -> Attestation:
        models = {"data": [{"id": "m", "max_model_len": 4096}]}
        return ADAPTER.attest(answers({"/v1/models": models, "/get_server_info": INFO | fields}))

    return make


def test_only_the_path_that_generates_is_believed() -> None:
    """/liveness and /readiness always say ok, so they are not asked."""
    assert not {"/liveness", "/readiness"} & {probe.path for probe in ADAPTER.probes}


def test_health(answers: Callable[..., Answers]) -> None:
    """200 Ok is ready, 503 is not."""
    assert ADAPTER.health(answers({"/health": {"message": "Ok"}})).ready
    assert not ADAPTER.health(answers({"/health": 503})).ready


@pytest.mark.parametrize(
    ("current_load", "usage"), [(0.25, 0.25), ([0.5, 0.25], 0.375), ([], None), ("x", None), (1.5, 1.0)]
)
def test_load(answers: Callable[..., Answers], current_load: object, usage: float | None) -> None:
    """Paused requests wait too; the token load is one number or one per replica, held within 0 and 1."""
    page = (
        b'lightllm_num_running_reqs{model_name="m"} 4\nlightllm_queue_size{model_name="m"} 2\n'
        b'lightllm_batch_pause_size{model_name="m"} 1\nlightllm_cache_hit_rate{model_name="m"} 0.5\n'
    )
    load = ADAPTER.load(answers({"/metrics": page, "/token_load": {"current_load": current_load}}), 0.0)
    assert load is not None
    assert (load.running, load.waiting, load.kv_usage, load.prefix_hit_rate) == (4, 3, usage, 0.5)


def test_older_versions_name_the_batch(answers: Callable[..., Answers]) -> None:
    """Before num_running_reqs the size of the batch stands for it."""
    load = ADAPTER.load(answers({"/metrics": b"lightllm_batch_current_size 3\n"}), 0.0)
    assert load is not None
    assert (load.running, load.waiting) == (3, None)
    assert ADAPTER.load(answers({}), 0.0) is None


def test_a_plain_server(attest: Callable[..., Attestation]) -> None:
    """No quantisation: all from the data type."""
    found = attest()
    assert [found.weights.value, found.activations.value, found.kv_cache.value] == ["bf16"] * 3
    assert found.kv_cache.confidence is Confidence.REPORTED
    assert (found.context_length, found.tensor_parallel) == (4096, 2)


@pytest.mark.parametrize(
    ("quant_type", "weights", "activations"),
    [
        ("vllm-w8a8", "int8", "int8"),
        ("vllm-fp8w8a8-b128", "fp8", "fp8"),
        ("w4a16", "int4", "bf16"),
        ("awq", "int4", "bf16"),
    ],
)
def test_quant_types(attest: Callable[..., Attestation], quant_type: str, weights: str, activations: str) -> None:
    """The name of the method gives the formats."""
    found = attest(quant_type=quant_type)
    assert (found.weights.value, found.activations.value) == (weights, activations)


@pytest.mark.parametrize(("kind", "name"), [("int8kv", "int8"), ("int4kv", "int4"), ("fp8kv_sph", "fp8")])
def test_kv_types(attest: Callable[..., Attestation], kind: str, name: str) -> None:
    """The KV cache's type is reported under LightLLM's own names."""
    assert name == attest(llm_kv_type=kind).kv_cache.value


def test_what_it_does_not_tell(attest: Callable[..., Attestation], answers: Callable[..., Answers]) -> None:
    """A configuration per layer, an unknown method and a closed page leave the weights open."""
    assert not attest(quant_cfg="/etc/quant.yaml").weights.known
    assert not attest(quant_type="novel").weights.known
    closed = ADAPTER.attest(answers({"/get_server_info": 404}))
    assert closed.unattested == ("weights", "activations", "kv_cache")
    bare = ADAPTER.attest(answers({"/get_server_info": {"quant_type": "none"}}))
    assert not bare.kv_cache.known
