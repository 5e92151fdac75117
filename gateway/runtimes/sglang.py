"""SGLang: ``runtime: sglang``. Seen running: 0.5.23 on CPU.

What misleads here: any name in ``model`` is accepted and echoed; ``quantization`` in ``/server_info`` is what the
command line asked, so ``null`` does not exclude a quantised checkpoint; ``/health`` generates a token and always
takes a second or more; ``/v1/loads`` lags by about a second. Metrics need ``--enable-metrics``.
"""

from collections.abc import Mapping

import msgspec

from gateway.runtimes.adapter import Adapter, Answers, Health, Load, Probe, Purpose
from gateway.runtimes.attestation import Attestation, Observation, inferred, reported, unknown
from gateway.runtimes.exposition import count, first_named, mean, per_replica, read_samples, share, total, wanted
from gateway.runtimes.formats import canonical
from gateway.runtimes.hardware import native_activations
from gateway.runtimes.methods import MODEL_DTYPE, Scheme, scheme_of
from gateway.runtimes.reading import (
    MODELS_PATH,
    answered,
    as_int,
    as_text,
    as_told,
    attest_models,
    health_by_status,
    read_json,
    read_object,
    within,
)

RUNTIME = "sglang"

_INFO, _METRICS, _LOADS = "/server_info", "/metrics", "/v1/loads"

PROBES = (
    Probe("/health", Purpose.HEALTH, timeout_s=5.0, expected=frozenset({200, 503})),
    Probe(_METRICS, Purpose.METRICS, expected=frozenset({200, 404})),
    Probe(MODELS_PATH, Purpose.MODELS),
    Probe(_INFO, Purpose.INFO, timeout_s=5.0, expected=frozenset({200, 404})),
    Probe(_LOADS, Purpose.INFO, expected=frozenset({200, 404})),
)

_RUNNING = ("sglang:num_running_reqs",)
_QUEUE = ("sglang:num_queue_reqs",)
_GRAMMAR_QUEUE = ("sglang:num_grammar_queue_reqs",)
_USAGE = ("sglang:token_usage",)
_HIT_RATE = ("sglang:cache_hit_rate",)
_KV_GIB = "sglang:kv_cache_memory_usage_gb"
_KV_TOKENS = "sglang:max_total_num_tokens"
_REPLICA = "dp_rank"
_PATTERN = wanted((*_RUNNING, *_QUEUE, *_GRAMMAR_QUEUE, *_USAGE, *_HIT_RATE, _KV_GIB, _KV_TOKENS))
_RECORD = (
    "dtype",
    "device",
    "attention_backend",
    "quantization",
    "kv_cache_dtype",
    "pp_size",
    "dp_size",
    "max_running_requests",
    "mem_fraction_static",
    "page_size",
    "radix_eviction_policy",
)


def read_health(answers: Answers) -> Health:
    """503 while starting and while stopping, and when the scheduler gives no token in time."""
    return health_by_status(answers.get("/health"))


def read_load(answers: Answers, at: float) -> Load | None:
    """Tensor- and pipeline-parallel ranks repeat a number, data-parallel replicas add up. Requests that wait for
    their grammar to compile are waiting too.
    """
    samples = read_samples(answered(answers, _METRICS) or b"", _PATTERN)
    queued = [
        value
        for names in (_QUEUE, _GRAMMAR_QUEUE)
        if (value := total(per_replica(first_named(samples, names), _REPLICA))) is not None
    ]
    load = Load(
        at,
        running=count(total(per_replica(first_named(samples, _RUNNING), _REPLICA))),
        waiting=count(sum(queued)) if queued else None,
        kv_usage=share(mean(per_replica(first_named(samples, _USAGE), _REPLICA))),
        prefix_hit_rate=share(mean(per_replica(first_named(samples, _HIT_RATE), _REPLICA))),
    )
    return load if load.known else None


def attest(answers: Answers) -> Attestation:
    """Names from ``/v1/models``, the rest from ``/server_info``, the GPU from ``/v1/loads``."""
    base = attest_models(RUNTIME, answers, lists_adapters=True)
    info = read_object(answered(answers, _INFO))
    gpus = _gpus(answers)
    size, tokens = _kv_size(answers)
    base = msgspec.structs.replace(base, gpus=gpus, kv_tokens=tokens, kv_bytes_per_token=size)
    if not info:
        return base
    dtype = canonical(as_text(info.get("dtype")) or "")
    weights, scheme, notes = _weights(info, base.weights, dtype)
    return msgspec.structs.replace(
        base,
        weights=weights,
        activations=_activations(weights, scheme, dtype, gpus),
        kv_cache=_kv(as_text(info.get("kv_cache_dtype")) or "", dtype),
        method=as_text(info.get("quantization")),
        context_length=base.context_length or as_int(info.get("context_length")),
        version=as_text(info.get("version")),
        tensor_parallel=as_int(info.get("tp_size")),
        device=_record(info),
        notes=notes,
    )


def _record(info: Mapping[str, object]) -> dict[str, str]:
    told = {name: text for name in _RECORD if (text := as_told(info.get(name))) is not None}
    without = info.get("disable_radix_cache")
    return told if without is None else {**told, "enable_prefix_caching": str(not without)}


def _weights(info: Mapping[str, object], hint: Observation, dtype: str) -> tuple[Observation, Scheme, tuple[str, ...]]:
    method = as_text(info.get("quantization"))
    if method is not None:
        scheme = scheme_of(method)
        if scheme.weights is not None:
            return reported(scheme.weights, f"quantization {method}"), scheme, ()
        note = f"quantization {method} does not tell the bits"
        return (hint if hint.known else unknown(note)), scheme, (note,)
    if hint.known:
        return (
            hint,
            Scheme(),
            ("quantization is null on the command line, but the model's name hints at a quantised checkpoint",),
        )
    if not dtype or dtype == "auto":
        return unknown("dtype is auto"), Scheme(), ()
    # Null only says that the command line asked for nothing: a checkpoint may bring its own quantisation.
    return inferred(dtype, "dtype, no quantization asked for"), Scheme(dtype, MODEL_DTYPE), ()


def _activations(weights: Observation, scheme: Scheme, dtype: str, gpus: tuple[str, ...]) -> Observation:
    if scheme.activations is None or not weights.known or not dtype:
        return unknown("not reported")
    if scheme.activations == MODEL_DTYPE or native_activations(weights.value, gpus) is False:
        return inferred(dtype, "dtype")
    return inferred(scheme.activations, "the method's usual kernels")


def _kv(kv_dtype: str, dtype: str) -> Observation:
    if kv_dtype and kv_dtype != "auto":
        return reported(canonical(kv_dtype), "kv_cache_dtype")
    if kv_dtype == "auto" and dtype and dtype != "auto":
        return inferred(dtype, "kv_cache_dtype auto; a checkpoint may bring a scheme of its own")
    return unknown("kv_cache_dtype is not told")


def _kv_size(answers: Answers) -> tuple[float | None, int | None]:
    """Bytes per token of one rank, and tokens, from the gauges (whose ``gb`` are GiB)."""
    samples = read_samples(answered(answers, _METRICS) or b"", _PATTERN)
    gib, tokens = samples.get(_KV_GIB, []), samples.get(_KV_TOKENS, [])
    if not gib or not tokens or tokens[0].value <= 0:
        return None, None
    return gib[0].value * 2**30 / tokens[0].value, round(tokens[0].value)


def _gpus(answers: Answers) -> tuple[str, ...]:
    """``accelerator`` of ``/v1/loads``, at the top or in an entry of ``loads``."""
    value = read_json(answered(answers, _LOADS))
    entries: list[object] = list(value) if isinstance(value, list) else [value]
    loads = within(read_object(answered(answers, _LOADS)), "loads")
    entries += loads if isinstance(loads, list) else []
    names = [as_text(entry.get("accelerator")) for entry in entries if isinstance(entry, dict)]
    return tuple(sorted({name for name in names if name is not None}))


ADAPTER = Adapter(RUNTIME, PROBES, read_health, read_load, attest, checks_names=False)
