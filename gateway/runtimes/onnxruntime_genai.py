"""ONNX Runtime GenAI behind an OpenAI-compatible server: ``runtime: onnxruntime-genai``.

The engine ships no HTTP server of its own. What serves it (Foundry Local, or a shim of the operator's) has
``/v1/models`` in common, and no health, metrics or version path: Foundry Local answers 404 there (seen with SDK
2.2.1). Precision is at best a hint in the model's id, so an endpoint is unattested or inferred, never reported.
"""

from gateway.runtimes.adapter import Adapter, Answers, Health, Probe, Purpose
from gateway.runtimes.attestation import Attestation
from gateway.runtimes.reading import MODELS_PATH, attest_models, health_by_status, no_load

RUNTIME = "onnxruntime-genai"

PROBES = (Probe(MODELS_PATH, Purpose.HEALTH, timeout_s=5.0), Probe(MODELS_PATH, Purpose.MODELS, timeout_s=5.0))


def read_health(answers: Answers) -> Health:
    """Ready when the list of models is served."""
    return health_by_status(answers.get(MODELS_PATH))


def attest(answers: Answers) -> Attestation:
    """Names, and the format that the id hints at (``…-int4-cpu``)."""
    return attest_models(RUNTIME, answers)


ADAPTER = Adapter(RUNTIME, PROBES, read_health, no_load, attest)
