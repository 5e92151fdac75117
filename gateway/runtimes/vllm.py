"""vLLM: ``runtime: vllm``. Seen running: 0.25.1 on H200, 0.32.0 on CPU.

What misleads here: ``/server_info`` exists only in development mode (``VLLM_SERVER_DEV_MODE=1``) and names the
method, mostly not the bits; ``cache_dtype="auto"`` is the model's dtype or a checkpoint's own KV scheme; an online
method may quantise no layer at all and be reported all the same; low-precision activations fall back to weight-only
kernels with a log line only; NaN log-probabilities of a broken KV cache come back as 400 on a valid request.
``vllm_info`` reads the configuration; this module probes, and reads health and load.
"""

from gateway.runtimes.adapter import Adapter, Answers, Health, HealthState, Load, Probe, Purpose
from gateway.runtimes.exposition import (
    Samples,
    count,
    first_named,
    mean,
    read_samples,
    share,
    total,
    wanted,
)
from gateway.runtimes.reading import MODELS_PATH, answered, health_by_status
from gateway.runtimes.vllm_info import CACHE_INFO, INFO_PATH, METRICS_PATH, RUNTIME, VERSION_PATH, attest

PROBES = (
    Probe("/health", Purpose.HEALTH, expected=frozenset({200, 503})),
    Probe(METRICS_PATH, Purpose.METRICS),
    Probe(MODELS_PATH, Purpose.MODELS),
    Probe(INFO_PATH, Purpose.INFO, timeout_s=5.0, expected=frozenset({200, 404})),
    Probe(VERSION_PATH, Purpose.VERSION),
)

# Aliases, newest name first.
_RUNNING = ("vllm:num_requests_running",)
_WAITING = ("vllm:num_requests_waiting",)
_KV_USAGE = ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc")
_QUERIES = ("vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total")
_HITS = ("vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total")
_HIT_RATE = ("vllm:gpu_prefix_cache_hit_rate",)
_PREEMPTIONS = ("vllm:num_preemptions_total",)
_LORA = ("vllm:lora_requests_info",)
_SLEEP = ("vllm:engine_sleep_state",)
_PATTERN = wanted(
    (*_RUNNING, *_WAITING, *_KV_USAGE, *_QUERIES, *_HITS, *_HIT_RATE, *_PREEMPTIONS, *_LORA, *_SLEEP, CACHE_INFO)
)


def read_health(answers: Answers) -> Health:
    """200 is ready, unless the metrics (if given too) say that the engine sleeps; 503 is a dead engine."""
    health = health_by_status(answers.get("/health"))
    if health.ready and _asleep(read_samples(answered(answers, METRICS_PATH) or b"", _PATTERN)):
        return Health(HealthState.LOADING, "the engine sleeps: its weights are off the device")
    return health


def _asleep(samples: Samples) -> bool:
    awake = [sample.value for sample in first_named(samples, _SLEEP) if sample.labels.get("sleep_state") == "awake"]
    return bool(awake) and not any(awake)


def read_load(answers: Answers, at: float) -> Load | None:
    """Counts are summed over the engines of a data-parallel server, KV usage is their mean."""
    samples = read_samples(answered(answers, METRICS_PATH) or b"", _PATTERN)
    load = Load(
        at,
        running=count(total(first_named(samples, _RUNNING))),
        waiting=count(total(first_named(samples, _WAITING))),
        kv_usage=share(mean(first_named(samples, _KV_USAGE))),
        prefix_queries=total(first_named(samples, _QUERIES)),
        prefix_hits=total(first_named(samples, _HITS)),
        prefix_hit_rate=share(mean(first_named(samples, _HIT_RATE))),
        preemptions=total(first_named(samples, _PREEMPTIONS)),
        adapters=_adapters_in_use(samples),
    )
    return load if load.known else None


def _adapters_in_use(samples: Samples) -> tuple[str, ...]:
    """Old label sets of this metric stay on the page; the value is their time, so the newest one counts."""
    newest = max(first_named(samples, _LORA), key=lambda sample: sample.value, default=None)
    if newest is None:
        return ()
    named = [newest.labels.get(label, "") for label in ("running_lora_adapters", "waiting_lora_adapters")]
    return tuple(sorted({name.strip() for text in named for name in text.split(",") if name.strip()}))


ADAPTER = Adapter(RUNTIME, PROBES, read_health, read_load, attest)
