"""TensorRT-LLM's ``trtllm-serve``: ``runtime: tensorrt-llm``. Read in its source (main, 2026), not run: it needs a
GPU.

What misleads here: ``/metrics`` is a queue of iteration statistics that a read drains, so it is never read;
Prometheus text is at ``/prometheus/metrics``, and only with ``return_perf_metrics``; its load gauges move only when a
request completes. The model's id is the base name of its folder, ``model`` is not checked, unknown fields are
refused, and an internal error is answered 400.
"""

import msgspec

from gateway.runtimes.adapter import Adapter, Answers, Health, Load, Probe, Purpose
from gateway.runtimes.attestation import Attestation, Observation, inferred, reported, unknown
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
from gateway.runtimes.formats import canonical
from gateway.runtimes.hardware import native_activations
from gateway.runtimes.methods import MODEL_DTYPE, Scheme, wnam
from gateway.runtimes.reading import (
    MODELS_PATH,
    answered,
    as_int,
    as_text,
    attest_models,
    health_by_status,
    read_object,
)

RUNTIME = "tensorrt-llm"

_METRICS, _VERSION = "/prometheus/metrics", "/version"

PROBES = (
    Probe("/health", Purpose.HEALTH, expected=frozenset({200, 500, 503})),
    Probe(_METRICS, Purpose.METRICS, expected=frozenset({200, 307, 404})),
    Probe(MODELS_PATH, Purpose.MODELS),
    Probe(_VERSION, Purpose.VERSION),
)

_RUNNING = ("trtllm_num_requests_running",)
_WAITING = ("trtllm_num_requests_waiting",)
_KV_USAGE = ("trtllm_kv_cache_utilization",)
_HIT_RATE = ("trtllm_kv_cache_hit_rate",)
_REUSED = ("trtllm_kv_cache_reused_blocks_total",)
_MISSED = ("trtllm_kv_cache_missed_blocks_total",)
_SLOTS = ("trtllm_max_num_active_requests",)
_MODEL_INFO = "trtllm_model_config_info"
_KV_INFO = "trtllm_kv_cache_config_info"
_PARALLEL_INFO = "trtllm_parallel_config_info"
_PATTERN = wanted(
    (*_RUNNING, *_WAITING, *_KV_USAGE, *_HIT_RATE, *_REUSED, *_MISSED, *_SLOTS, _MODEL_INFO, _KV_INFO, _PARALLEL_INFO)
)


def read_health(answers: Answers) -> Health:
    """200 or not; the path does not generate, so a hung executor still looks ready here."""
    return health_by_status(answers.get("/health"))


def read_load(answers: Answers, at: float) -> Load | None:
    """Gauges as of the last completed request. Hits and queries count KV blocks, not tokens."""
    samples = read_samples(answered(answers, _METRICS) or b"", _PATTERN)
    reused, missed = total(first_named(samples, _REUSED)), total(first_named(samples, _MISSED))
    load = Load(
        at,
        running=count(total(first_named(samples, _RUNNING))),
        waiting=count(total(first_named(samples, _WAITING))),
        kv_usage=share(mean(first_named(samples, _KV_USAGE))),
        slots=count(total(first_named(samples, _SLOTS))),
        prefix_queries=reused + missed if reused is not None and missed is not None else None,
        prefix_hits=reused,
        prefix_hit_rate=share(mean(first_named(samples, _HIT_RATE))),
    )
    return load if load.known else None


def attest(answers: Answers) -> Attestation:
    """From the labels of the configuration metrics."""
    base = attest_models(RUNTIME, answers)
    samples = read_samples(answered(answers, _METRICS) or b"", _PATTERN)
    model, cache, parallel = (_info(samples, name) for name in (_MODEL_INFO, _KV_INFO, _PARALLEL_INFO))
    version = as_text(read_object(answered(answers, _VERSION)).get("version"))
    base = msgspec.structs.replace(base, version=version)
    if not model:
        return base
    dtype = canonical(as_text(model.get("dtype")) or "auto")
    algorithm = as_text(model.get("quantization"))
    gpu = as_text(model.get("gpu_type"))
    gpus = (gpu,) if gpu is not None else ()
    weights, activations, notes = _precision(algorithm, dtype, base.weights, gpus)
    return msgspec.structs.replace(
        base,
        weights=weights,
        activations=activations,
        kv_cache=_kv(as_text(cache.get("cache_dtype")), dtype, algorithm),
        method=algorithm,
        context_length=as_int(model.get("max_model_len")) or base.context_length,
        gpus=gpus,
        tensor_parallel=as_int(parallel.get("tensor_parallel_size")),
        device={
            **{f"model.{k}": v for k, v in model.items()},
            **{f"parallel.{k}": v for k, v in parallel.items()},
            **{k: v for k, v in cache.items() if k == "page_size"},
        },
        notes=notes,
    )


def _info(samples: Samples, name: str) -> dict[str, str]:
    found = samples.get(name, [])
    return {key: value for key, value in found[0].labels.items() if value} if found else {}


def scheme_of_algorithm(algorithm: str) -> Scheme:
    """Formats of a ``QuantAlgo`` name: ``FP8_BLOCK_SCALES``, ``NVFP4``, ``W4A8_AWQ``, ``W4A8_NVFP4_FP8`` …"""
    name = algorithm.upper().removeprefix("QUANTALGO.")
    if name.startswith("MIXED"):
        return Scheme()
    if name.startswith("FP8"):
        return Scheme("fp8", "fp8")
    if name.startswith("NVFP4"):
        return Scheme("nvfp4", "nvfp4")
    general = wnam(name)
    if general is None:
        return Scheme("int8", None) if name.startswith("INT8") else Scheme()
    floating = next((kind.lower() for kind in ("NVFP4", "MXFP4") if kind in name), None)
    activations = general.activations
    if activations != MODEL_DTYPE:
        if "MXFP8" in name:
            activations = "mxfp8"
        elif "FP8" in name or "AWQ" in name:  # W4A8_AWQ multiplies in FP8
            activations = "fp8"
    return Scheme(floating or general.weights, activations)


def _precision(
    algorithm: str | None, dtype: str, hint: Observation, gpus: tuple[str, ...]
) -> tuple[Observation, Observation, tuple[str, ...]]:
    if algorithm is None:
        if dtype == "auto":
            return hint, unknown("dtype is auto"), ()
        return (
            reported(dtype, "model_config_info dtype, no quantization"),
            reported(dtype, "model_config_info dtype"),
            (),
        )
    scheme = scheme_of_algorithm(algorithm)
    if scheme.weights is None:
        note = f"quantization {algorithm} does not tell one format"
        return (hint if hint.known else unknown(note)), unknown(note), (note,)
    weights = reported(scheme.weights, f"quantization {algorithm}")
    wide = scheme.activations == MODEL_DTYPE or native_activations(scheme.weights, gpus) is False
    name = dtype if wide else scheme.activations
    activations = inferred(name, f"quantization {algorithm}") if name and name != "auto" else unknown("not reported")
    return weights, activations, ()


def _kv(cache_dtype: str | None, dtype: str, algorithm: str | None) -> Observation:
    if cache_dtype is not None and cache_dtype != "auto":
        return reported(canonical(cache_dtype), "kv_cache_config_info cache_dtype")
    if cache_dtype is None or dtype == "auto":
        return unknown("cache_dtype is not told")
    if algorithm is None:
        return reported(dtype, "cache_dtype auto, and the checkpoint is not quantised")
    return unknown(f"cache_dtype is auto, and a {algorithm} checkpoint may bring a KV scheme of its own")


ADAPTER = Adapter(RUNTIME, PROBES, read_health, read_load, attest, checks_names=False, load_interval_s=2.0)
