"""ONNX Runtime GenAI behind a server: only /v1/models can be counted on."""

from collections.abc import Callable

from gateway.runtimes.adapter import Answers
from gateway.runtimes.attestation import Confidence
from gateway.runtimes.onnxruntime_genai import ADAPTER


def test_health_is_the_list_of_models(answers: Callable[..., Answers]) -> None:
    """Foundry Local has no /health: the list stands for it."""
    assert ADAPTER.health(answers({"/v1/models": {"data": []}})).ready
    assert not ADAPTER.health(answers({"/v1/models": 404})).ready
    assert {probe.path for probe in ADAPTER.probes} == {"/v1/models"}


def test_the_id_is_a_hint(answers: Callable[..., Answers]) -> None:
    """A format in the id is inferred; without one nothing is known."""
    found = ADAPTER.attest(answers({"/v1/models": {"data": [{"id": "phi-4-mini-int4-cpu"}]}}))
    assert (found.weights.value, found.weights.confidence) == ("int4", Confidence.INFERRED)
    plain = ADAPTER.attest(answers({"/v1/models": {"data": [{"id": "phi-4-mini-instruct-generic-cpu:4"}]}}))
    assert plain.unattested == ("weights", "activations", "kv_cache")
    assert ADAPTER.load(answers({}), 0.0) is None
