"""LMDeploy: ``runtime: lmdeploy``. Read in its source (v0.16), not run: it needs a GPU.

What misleads here: nothing over HTTP tells the weights or the KV cache (``quant_policy`` is not exposed, the
``backend_config`` metric is declared and never filled): always unattested. ``/health`` is 200 while the engine
sleeps.
"""

from gateway.runtimes.adapter import Adapter, Answers, Health, HealthState, Load, Probe, Purpose
from gateway.runtimes.attestation import Attestation
from gateway.runtimes.exposition import count, first_named, mean, read_samples, share, total, wanted
from gateway.runtimes.reading import (
    MODELS_PATH,
    answered,
    as_text,
    attest_models,
    health_by_status,
    read_object,
)

RUNTIME = "lmdeploy"

_METRICS = "/metrics"

PROBES = (
    Probe("/health", Purpose.HEALTH, expected=frozenset({200, 503})),
    Probe(_METRICS, Purpose.METRICS, expected=frozenset({200, 404})),
    Probe(MODELS_PATH, Purpose.MODELS),
)

_RUNNING = ("lmdeploy:num_requests_running",)
_WAITING = ("lmdeploy:num_requests_waiting",)
_API_WAITING = ("lmdeploy:num_api_requests_waiting",)
_KV_USAGE = ("lmdeploy:gpu_cache_usage_perc",)
_HIT_RATE = ("lmdeploy:prefix_cache_hit_rate",)
_PATTERN = wanted((*_RUNNING, *_WAITING, *_API_WAITING, *_KV_USAGE, *_HIT_RATE))


def read_health(answers: Answers) -> Health:
    """The status, and the word in the body where there is one: healthy, sleeping, initializing, unhealthy."""
    answer = answers.get("/health")
    word = as_text(read_object(answer.body if answer is not None else None).get("status"))
    if word in ("sleeping", "initializing"):
        return Health(HealthState.LOADING, f"the engine is {word}")
    return health_by_status(answer)


def read_load(answers: Answers, at: float) -> Load | None:
    """Requests wait in the engine, and before it in the API server."""
    samples = read_samples(answered(answers, _METRICS) or b"", _PATTERN)
    waits = [value for names in (_WAITING, _API_WAITING) if (value := total(first_named(samples, names))) is not None]
    load = Load(
        at,
        running=count(total(first_named(samples, _RUNNING))),
        waiting=count(sum(waits)) if waits else None,
        kv_usage=share(mean(first_named(samples, _KV_USAGE))),
        prefix_hit_rate=share(mean(first_named(samples, _HIT_RATE))),
    )
    return load if load.known else None


def attest(answers: Answers) -> Attestation:
    """Names only. Adapters stand among the models, without a parent, so they cannot be told from them."""
    return attest_models(RUNTIME, answers)


ADAPTER = Adapter(RUNTIME, PROBES, read_health, read_load, attest)
