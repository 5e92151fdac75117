"""``transformers serve``: ``runtime: transformers``. Seen running: 5.19 on CPU.

What misleads here: ``/v1/models`` does not list a model given by path (and is 500 without a cache folder), so it is
not probed; many fields are accepted and not obeyed; streams end without ``[DONE]`` and put usage on the last choice;
an unstreamed request runs to its end after the client is gone. Nothing tells version, dtype or load: always
unattested.
"""

from gateway.runtimes.adapter import Adapter, Answers, Health, Probe, Purpose
from gateway.runtimes.attestation import Attestation, unknown
from gateway.runtimes.reading import health_by_status, no_load

RUNTIME = "transformers"

PROBES = (Probe("/health", Purpose.HEALTH, expected=frozenset({200, 503})),)

_WHY = "transformers serve does not report it"


def read_health(answers: Answers) -> Health:
    """503 when the worker of continuous batching is dead."""
    return health_by_status(answers.get("/health"))


def attest(answers: Answers) -> Attestation:
    """Nothing is told over HTTP."""
    del answers
    return Attestation(RUNTIME, weights=unknown(_WHY), activations=unknown(_WHY), kv_cache=unknown(_WHY))


ADAPTER = Adapter(RUNTIME, PROBES, read_health, no_load, attest, checks_names=False)
