"""Reading vLLM's configuration (``/server_info``, ``cache_config_info``) into an attestation. Called by ``vllm``
alone.

Each branch that doubts the runtime says in its note what it knows. Pure.
"""

import re
from collections.abc import Mapping

import msgspec

from gateway.runtimes.adapter import Answers
from gateway.runtimes.attestation import Attestation, Observation, inferred, reported, unknown
from gateway.runtimes.exposition import read_samples, wanted
from gateway.runtimes.formats import canonical
from gateway.runtimes.hardware import native_activations
from gateway.runtimes.methods import MODEL_DTYPE, Scheme, read_printed, scheme_of
from gateway.runtimes.reading import answered, as_int, as_text, as_told, attest_models, read_object, within

RUNTIME = "vllm"
INFO_PATH = "/server_info?config_format=json"
METRICS_PATH = "/metrics"
VERSION_PATH = "/version"
CACHE_INFO = "vllm:cache_config_info"

_CACHE = wanted((CACHE_INFO,))
_GPU = re.compile(r"GPU \d+: ([^\n]+)")
_RECORD = (
    ("torch", ("system_env", "torch_version")),
    ("cuda", ("system_env", "cuda_runtime_version")),
    ("driver", ("system_env", "nvidia_driver_version")),
    ("device", ("vllm_config", "device_config", "device")),
    ("dtype", ("vllm_config", "model_config", "dtype")),
    ("quantization", ("vllm_config", "model_config", "quantization")),
    ("pipeline_parallel", ("vllm_config", "parallel_config", "pipeline_parallel_size")),
    ("data_parallel", ("vllm_config", "parallel_config", "data_parallel_size")),
    ("max_num_seqs", ("vllm_config", "scheduler_config", "max_num_seqs")),
    ("enforce_eager", ("vllm_config", "model_config", "enforce_eager")),
)
_CACHE_RECORD = ("block_size", "enable_prefix_caching", "gpu_memory_utilization")


class _Cache(msgspec.Struct, frozen=True):
    """The KV cache as configured; ``dtype`` empty = not told. ``record``: settings that explain a number."""

    dtype: str
    tokens: int | None
    memory_bytes: int | None
    record: Mapping[str, str]


def attest(answers: Answers) -> Attestation:
    """Names from ``/v1/models``; precision from the development endpoint, and the KV cache from the metrics without
    it.
    """
    base = attest_models(RUNTIME, answers, lists_adapters=True)
    info = read_object(answered(answers, INFO_PATH))
    cache = _cache(answers, info)
    version = as_text(read_object(answered(answers, VERSION_PATH)).get("version"))
    size = cache.memory_bytes / cache.tokens if cache.memory_bytes and cache.tokens else None
    common = msgspec.structs.replace(
        base, version=version, kv_tokens=cache.tokens, kv_bytes_per_token=size, device=cache.record
    )
    if not within(info, "vllm_config", "model_config"):
        return msgspec.structs.replace(common, kv_cache=_kv_without_info(cache.dtype))
    return _with_info(common, info, cache.dtype)


def _cache(answers: Answers, info: Mapping[str, object]) -> _Cache:
    """From the metrics' labels, completed from ``/server_info``. The labels also hold ``mamba_cache_dtype``: match
    exactly.
    """
    samples = read_samples(answered(answers, METRICS_PATH) or b"", _CACHE).get(CACHE_INFO, [])
    labels: Mapping[str, object] = samples[0].labels if samples else {}
    configured = within(info, "vllm_config", "cache_config")
    both = [labels, configured if isinstance(configured, dict) else {}]
    dtype = next((text for source in both if (text := as_text(source.get("cache_dtype")))), "")
    tokens = next((n for source in both if (n := as_int(source.get("kv_cache_size_tokens")))), None) or _block_tokens(
        both
    )
    memory = next((n for source in both if (n := as_int(source.get("kv_cache_memory_bytes")))), None)
    told = {name: text for source in reversed(both) for name in _CACHE_RECORD if (text := as_told(source.get(name)))}
    return _Cache(dtype, tokens, memory, told)


def _block_tokens(sources: list[Mapping[str, object]]) -> int | None:
    for source in sources:
        blocks, size = as_int(source.get("num_gpu_blocks")), as_int(source.get("block_size"))
        if blocks and size:
            return blocks * size
    return None


def _kv_without_info(dtype: str) -> Observation:
    if dtype and dtype != "auto":
        return reported(canonical(dtype), "cache_config_info cache_dtype")
    return unknown("cache_dtype is auto, and without VLLM_SERVER_DEV_MODE=1 the model's own dtype is not told")


def _with_info(base: Attestation, info: Mapping[str, object], cache_dtype: str) -> Attestation:
    config = within(info, "vllm_config", "model_config")
    model: Mapping[str, object] = config if isinstance(config, dict) else {}
    dtype = canonical(as_text(model.get("dtype")) or "")
    method = as_text(model.get("quantization"))
    gpus = _gpus(info)
    printed = read_printed(as_text(within(info, "vllm_config", "quant_config")) or "")
    weights, scheme, notes = _weights(model, info, base.weights, dtype)
    kv = _kv(cache_dtype, dtype, method, scheme)
    device = {name: text for name, path in _RECORD if (text := as_told(within(info, *path))) is not None}
    if device.get("device") == "cpu" and kv.value == "int8_per_token_head":
        notes = ("KV cache int8_per_token_head gives garbage on CPU (seen on 0.32)", *notes)
    if kv.value == "int4_per_token_head":
        notes = ("KV cache int4_per_token_head gives NaN log-probabilities on Hopper (seen on 0.25.1)", *notes)
    return msgspec.structs.replace(
        base,
        weights=weights,
        activations=_activations(weights, scheme, dtype, gpus),
        kv_cache=kv,
        method=method,
        group_size=printed.group_size,
        context_length=base.context_length or as_int(model.get("max_model_len")),
        gpus=gpus,
        tensor_parallel=as_int(within(info, "vllm_config", "parallel_config", "tensor_parallel_size")),
        device={**device, **base.device},
        notes=notes,
    )


def _weights(
    model: Mapping[str, object], info: Mapping[str, object], hint: Observation, dtype: str
) -> tuple[Observation, Scheme, tuple[str, ...]]:
    method = as_text(model.get("quantization"))
    if as_text(within(info, "vllm_config", "load_config", "load_format")) == "dummy":
        # With no file there is no layer list, and GPTQ then quantises nothing at all.
        return unknown("weights are dummies"), Scheme(), ("load_format is dummy: random weights, not a model",)
    if not dtype and method is None:
        return hint, Scheme(), ()
    if method is None:
        return reported(dtype, "model_config.dtype, no quantization"), Scheme(dtype, MODEL_DTYPE, carries_kv=False), ()
    scheme = scheme_of(method)
    online = model.get("quantization_config")
    if isinstance(online, dict):
        return _online(method, online, info, scheme, dtype)
    if method.startswith("int8_per_channel_weight_only"):
        why = f"{method} quantises expert layers only, and quantization_config does not tell if there are any"
        return unknown(why), Scheme(None, MODEL_DTYPE, carries_kv=False), (why,)
    printed = read_printed(as_text(within(info, "vllm_config", "quant_config")) or "")
    name = printed.weights or scheme.weights
    if name is not None:
        return reported(name, f"quantization {method}"), scheme, ()
    note = f"quantization {method} does not tell the bits over HTTP"
    return (hint if hint.known else unknown(note)), scheme, (note,)


def _online(
    method: str, config: Mapping[str, object], info: Mapping[str, object], scheme: Scheme, dtype: str
) -> tuple[Observation, Scheme, tuple[str, ...]]:
    """An online method lists a spec per kind of layer; a kind without a spec stays as it was."""
    linear, moe = _spec_dtype(config.get("linear")), _spec_dtype(config.get("moe"))
    is_moe = within(info, "vllm_config", "parallel_config", "is_moe_model") is True
    scheme = msgspec.structs.replace(scheme, carries_kv=False)
    if "linear" not in config and "moe" not in config:
        return (reported(scheme.weights, f"quantization {method}") if scheme.weights else unknown(method)), scheme, ()
    if linear is None and not (is_moe and moe is not None):
        note = f"quantization {method} is set but quantises no layer of this model: it runs in {dtype}"
        return (
            inferred(dtype, "quantization_config has no linear spec"),
            Scheme(dtype, MODEL_DTYPE, carries_kv=False),
            (note,),
        )
    if is_moe and linear != moe:
        name = moe or linear or ""
        note = f"experts are {moe or dtype}, other layers {linear or dtype}"
        return reported(name, "quantization_config"), scheme, (note,)
    return reported(scheme.weights or linear or "", "quantization_config"), scheme, ()


def _spec_dtype(spec: object) -> str | None:
    """The weights' format in a layer spec: ``{"weight": {"dtype": …}}``, ``{"dtype": …}`` or a method's name."""
    if isinstance(spec, str):
        return scheme_of(spec).weights or canonical(spec)
    if not isinstance(spec, dict):
        return None
    inner = spec.get("weight", spec)
    if isinstance(inner, str):
        return canonical(inner)
    text = as_text(inner.get("dtype")) if isinstance(inner, dict) else None
    return canonical(text) if text is not None else None


def _activations(weights: Observation, scheme: Scheme, dtype: str, gpus: tuple[str, ...]) -> Observation:
    if scheme.activations == MODEL_DTYPE:
        return reported(dtype, "model_config.dtype") if dtype else unknown()
    if scheme.activations is None or not weights.known:
        return unknown("the chosen kernel is in the log only")
    if native_activations(weights.value, gpus) is False:
        return inferred(dtype, f"{gpus[0]} has no native {weights.value}: weight-only kernels")
    return inferred(scheme.activations, "the method's usual kernels; the chosen one is in the log only")


def _kv(cache_dtype: str, dtype: str, method: str | None, scheme: Scheme) -> Observation:
    if cache_dtype and cache_dtype != "auto":
        return reported(canonical(cache_dtype), "cache_dtype")
    if not cache_dtype or not dtype:
        return unknown("cache_dtype is not told")
    if method is None:
        return reported(dtype, "cache_dtype auto, and the checkpoint is not quantised")
    if scheme.carries_kv:
        return unknown(f"cache_dtype is auto, and a {method} checkpoint may bring a KV scheme of its own")
    return inferred(dtype, f"cache_dtype auto, and {method} brings no KV scheme")


def _gpus(info: Mapping[str, object]) -> tuple[str, ...]:
    """0.25 calls it ``nvidia_gpu_models``, later versions ``gpu_models``: lines of ``GPU 0: NVIDIA H200``."""
    text = as_text(within(info, "system_env", "nvidia_gpu_models")) or as_text(within(info, "system_env", "gpu_models"))
    return tuple(name.strip() for name in _GPU.findall(text)) if text else ()
