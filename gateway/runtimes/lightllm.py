"""LightLLM: ``runtime: lightllm``. Read in its source (v1.2), not run: it needs a GPU.

What misleads here: ``/liveness`` and ``/readiness`` always say ok (``/health`` generates); ``model`` is not checked
and is echoed; generic failures are answered **417**; ``max_tokens`` is 65,536 where the request gives none.
"""

from collections.abc import Mapping

import msgspec

from gateway.runtimes.adapter import Adapter, Answers, Health, Load, Probe, Purpose
from gateway.runtimes.attestation import Attestation, Observation, inferred, reported, unknown
from gateway.runtimes.exposition import count, first_named, mean, read_samples, share, total, wanted
from gateway.runtimes.formats import canonical
from gateway.runtimes.methods import MODEL_DTYPE, scheme_of, wnam
from gateway.runtimes.reading import (
    MODELS_PATH,
    answered,
    as_int,
    as_text,
    attest_models,
    health_by_status,
    read_object,
)

RUNTIME = "lightllm"

_METRICS, _TOKENS, _INFO = "/metrics", "/token_load", "/get_server_info"

PROBES = (
    Probe("/health", Purpose.HEALTH, timeout_s=5.0, expected=frozenset({200, 503})),
    Probe(_METRICS, Purpose.METRICS),
    Probe(_TOKENS, Purpose.METRICS, expected=frozenset({200, 404})),
    Probe(MODELS_PATH, Purpose.MODELS, expected=frozenset({200, 404})),
    Probe(_INFO, Purpose.INFO, expected=frozenset({200, 404})),
)

_RUNNING = ("lightllm_num_running_reqs", "lightllm_batch_current_size")
_QUEUE = ("lightllm_queue_size",)
_PAUSED = ("lightllm_batch_pause_size",)
_HIT_RATE = ("lightllm_cache_hit_rate",)
_PATTERN = wanted((*_RUNNING, *_QUEUE, *_PAUSED, *_HIT_RATE))


def read_health(answers: Answers) -> Health:
    """``/health`` alone: the other two paths do not look at the engine."""
    return health_by_status(answers.get("/health"))


def read_load(answers: Answers, at: float) -> Load | None:
    """Paused requests wait for memory, so they count as waiting. The token load is one number, or one per replica."""
    samples = read_samples(answered(answers, _METRICS) or b"", _PATTERN)
    waits = [value for names in (_QUEUE, _PAUSED) if (value := total(first_named(samples, names))) is not None]
    load = Load(
        at,
        running=count(total(first_named(samples, _RUNNING))),
        waiting=count(sum(waits)) if waits else None,
        kv_usage=_token_load(answered(answers, _TOKENS)),
        prefix_hit_rate=share(mean(first_named(samples, _HIT_RATE))),
    )
    return load if load.known else None


def attest(answers: Answers) -> Attestation:
    """The start arguments, as ``/get_server_info`` repeats them."""
    base = attest_models(RUNTIME, answers)
    info = read_object(answered(answers, _INFO))
    if not info:
        return base
    dtype = canonical(as_text(info.get("data_type")) or "")
    weights, activations, notes = _precision(info, dtype, base.weights)
    return msgspec.structs.replace(
        base,
        weights=weights,
        activations=activations,
        kv_cache=_kv(info, dtype),
        method=as_text(info.get("quant_type")),
        context_length=base.context_length or as_int(info.get("max_req_total_len")),
        tensor_parallel=as_int(info.get("tp")),
        device={
            name: str(info[name]) for name in ("data_type", "quant_type", "llm_kv_type", "tp", "dp") if info.get(name)
        },
        notes=notes,
    )


def _token_load(body: bytes | None) -> float | None:
    value = read_object(body).get("current_load")
    loads = value if isinstance(value, list) else [value]
    numbers = [float(load) for load in loads if isinstance(load, int | float) and not isinstance(load, bool)]
    return share(sum(numbers) / len(numbers)) if numbers else None


def _precision(
    info: Mapping[str, object], dtype: str, hint: Observation
) -> tuple[Observation, Observation, tuple[str, ...]]:
    kind = as_text(info.get("quant_type"))
    if as_text(info.get("quant_cfg")) is not None:
        note = "quant_cfg gives each layer its own format, which is not told over HTTP"
        return (hint if hint.known else unknown(note)), unknown(note), (note,)
    if kind is None:
        told = reported(dtype, "data_type, no quant_type") if dtype else hint
        return told, told, ()
    scheme = wnam(kind) or scheme_of(kind)
    if scheme.weights is None:
        note = f"quant_type {kind} does not tell the bits"
        return (hint if hint.known else unknown(note)), unknown(note), (note,)
    name = dtype if scheme.activations == MODEL_DTYPE else scheme.activations
    activations = inferred(name, f"quant_type {kind}") if name else unknown("not reported")
    return reported(scheme.weights, f"quant_type {kind}"), activations, ()


def _kv(info: Mapping[str, object], dtype: str) -> Observation:
    if "llm_kv_type" not in info:
        return unknown("llm_kv_type is not told")
    kind = as_text(info.get("llm_kv_type"))
    if kind is not None:
        return reported(canonical(kind), "llm_kv_type")
    return reported(dtype, "data_type, no llm_kv_type") if dtype else unknown("data_type is not told")


ADAPTER = Adapter(RUNTIME, PROBES, read_health, read_load, attest, checks_names=False, load_interval_s=2.0)
