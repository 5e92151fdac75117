"""Any other server that speaks OpenAI's API: the adapter for ``runtime: openai``.

Nothing is assumed beyond ``GET /v1/models``: no load, no precision (unattested). Pure; see ``adapter`` for the
contract.
"""

from gateway.runtimes.adapter import Adapter, Answers, Health, Probe, Purpose
from gateway.runtimes.attestation import Attestation
from gateway.runtimes.reading import MODELS_PATH, attest_models, health_by_status, no_load

RUNTIME = "openai"

PROBES = (Probe(MODELS_PATH, Purpose.HEALTH, timeout_s=5.0), Probe(MODELS_PATH, Purpose.MODELS, timeout_s=5.0))


def read_health(answers: Answers) -> Health:
    """Ready when the list of models is served."""
    return health_by_status(answers.get(MODELS_PATH))


def attest(answers: Answers) -> Attestation:
    """Names and context lengths only."""
    return attest_models(RUNTIME, answers, lists_adapters=False)


ADAPTER = Adapter(RUNTIME, PROBES, read_health, no_load, attest)
