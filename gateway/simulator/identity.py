"""What the simulated runtime says it is: models, version, server_info, fingerprint.

Owns that JSON, as vLLM 0.32 sends it. Pure. ``routes`` calls it. The reported precision comes from the configuration
and need not be true: that is what attestation is rehearsed with.
"""

from hashlib import blake2b
from typing import Any

import orjson

from gateway.simulator.config import Config

_BLOCK_SIZE = 16


def model_entry(config: Config, name: str, created: int) -> dict[str, Any]:
    """One entry of ``/v1/models``; adapters name their base as ``parent`` and tell no length."""
    adapter = name in config.adapters
    return {
        "id": name,
        "object": "model",
        "created": created,
        "owned_by": "vllm",
        "root": f"/adapters/{name}" if adapter else f"/models/{config.model}",
        "parent": config.model if adapter else None,
        "max_model_len": None if adapter else config.context_length,
        "permission": [],
    }


def models(config: Config, created: int) -> bytes:
    """The body of ``/v1/models``."""
    return orjson.dumps({"object": "list", "data": [model_entry(config, name, created) for name in config.names]})


def fingerprint(config: Config) -> str:
    """Stable over restarts with the same settings, another one with other precision or capacity, as vLLM's is."""
    shape = (config.model, config.precision, config.context_length, config.capacity.running, config.version)
    return f"vllm-{config.version}-{blake2b(repr(shape).encode(), digest_size=4).hexdigest()}"


def cache_config(config: Config) -> dict[str, str]:
    """Labels of ``vllm:cache_config_info``; none of them carries the weights' format."""
    tokens = config.capacity.kv_tokens
    return {
        "block_size": str(_BLOCK_SIZE),
        "cache_dtype": config.precision.kv_cache_dtype,
        "effective_attention_block_size": str(_BLOCK_SIZE),
        "enable_prefix_caching": str(config.prefix_cache),
        "engine": "0",
        "gpu_memory_utilization": "0.92",
        "is_attention_free": "False",
        "kv_cache_max_concurrency": f"{tokens / config.context_length:.2f}",
        "kv_cache_size_tokens": str(tokens),
        "mamba_cache_dtype": "auto",
        "mamba_ssm_cache_dtype": "float32",
        "num_cpu_blocks": "None",
        "num_gpu_blocks": str(tokens // _BLOCK_SIZE),
        "num_gpu_blocks_override": "None",
        "prefix_caching_hash_algo": "sha256",
        "sliding_window": "None",
    }


def server_info(config: Config) -> bytes:
    """The body of ``/server_info?config_format=json``: the parts that tell a gateway something."""
    precision = config.precision
    model_config = {
        "model": f"/models/{config.model}",
        "runner": "auto",
        "tokenizer": f"/models/{config.model}",
        "dtype": f"torch.{precision.dtype}",
        "seed": config.seed,
        "max_model_len": config.context_length,
        "quantization": precision.quantization,
        "quantization_config": None,
        "served_model_name": [config.model, *config.aliases],
    }
    cache = {
        "block_size": _BLOCK_SIZE,
        "gpu_memory_utilization": 0.92,
        "cache_dtype": precision.kv_cache_dtype,
        "enable_prefix_caching": config.prefix_cache,
        "num_gpu_blocks": config.capacity.kv_tokens // _BLOCK_SIZE,
        "kv_cache_size_tokens": config.capacity.kv_tokens,
        "mamba_cache_dtype": "auto",
    }
    lora = {"max_loras": len(config.adapters), "max_lora_rank": 16} if config.adapters else None
    scheduler = {
        "max_num_seqs": config.capacity.running,
        "max_num_queued_reqs": config.capacity.queue,
        "policy": "fcfs",
    }
    return orjson.dumps(
        {
            "vllm_config": {
                "model_config": model_config,
                "cache_config": cache,
                "parallel_config": {"tensor_parallel_size": 1, "pipeline_parallel_size": 1},
                "scheduler_config": scheduler,
                "device_config": {"device": "cuda"},
                "lora_config": lora,
                "quant_config": None,
            },
            "vllm_env": {"VLLM_SERVER_DEV_MODE": True},
            "system_env": {
                "torch_version": "2.13.0+cu130",
                "is_cuda_available": "True",
                "nvidia_driver_version": "580.95.05",
                "nvidia_gpu_models": f"GPU 0: {precision.gpu}",
                "vllm_version": config.version,
                "simulated": True,
            },
        }
    )
