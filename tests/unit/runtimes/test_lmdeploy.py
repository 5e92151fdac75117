"""LMDeploy: load and health; its precision is never told. Pages are written after its source."""

from collections.abc import Callable

import pytest

from gateway.runtimes.adapter import Answer, Answers, HealthState
from gateway.runtimes.lmdeploy import ADAPTER


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        (Answer(200, b'{"status":"healthy"}'), HealthState.READY),
        (Answer(200), HealthState.READY),
        (Answer(200, b'{"status":"sleeping"}'), HealthState.LOADING),
        (Answer(503, b'{"status":"initializing"}'), HealthState.LOADING),
        (Answer(503, b'{"status":"unhealthy"}'), HealthState.UNHEALTHY),
        (Answer(0), HealthState.UNHEALTHY),
    ],
)
def test_health(answers: Callable[..., Answers], answer: Answer, state: HealthState) -> None:
    """A sleeping engine answers 200 and is not ready; older versions answer an empty 200."""
    assert ADAPTER.health(answers({"/health": answer})).state is state


def test_load(answers: Callable[..., Answers]) -> None:
    """Requests wait in the engine and before it."""
    page = (
        b'lmdeploy:num_requests_running{engine="0"} 2\nlmdeploy:num_requests_waiting{engine="0"} 1\n'
        b'lmdeploy:num_api_requests_waiting{engine="0"} 4\nlmdeploy:gpu_cache_usage_perc{engine="0"} 0.5\n'
        b'lmdeploy:prefix_cache_hit_rate{engine="0"} 0.1\n'
    )
    load = ADAPTER.load(answers({"/metrics": page}), 0.0)
    assert load is not None
    assert (load.running, load.waiting, load.kv_usage, load.prefix_hit_rate) == (2, 5, 0.5, 0.1)
    assert ADAPTER.load(answers({"/metrics": 404}), 0.0) is None


def test_precision_is_never_told(answers: Callable[..., Answers]) -> None:
    """Only a name may hint at the weights; the KV cache's quant_policy is nowhere."""
    found = ADAPTER.attest(answers({"/v1/models": {"data": [{"id": "internlm3-8b-instruct-awq"}, {"id": "sql-lora"}]}}))
    assert found.weights.value == "int4"
    assert found.unattested == ("activations", "kv_cache")
    assert not found.adapters_listed  # adapters stand among the models and cannot be told from them
