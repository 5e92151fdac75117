"""What an operator sets about a simulated runtime, with its defaults and their reasons.

Owns the shape of ``sim.yaml`` and of ``POST /sim/config``. Frozen; a change makes a new value. Read by every other
module of the simulator; it must not do I/O beyond the bytes it is given.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from gateway.simulator.fault import Fault
from gateway.simulator.latency import Distribution


class ReportedPrecision(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the runtime says of its own precision, in vLLM's words. It need not be what a policy declares.

    ``quantization`` is the method in ``/server_info`` (None, fp8, awq, compressed-tensors …); vLLM never tells bits.
    ``kv_cache_dtype`` "auto" means the model's own dtype.
    """

    dtype: str = "bfloat16"
    quantization: str | None = None
    kv_cache_dtype: str = "auto"
    gpu: str = "NVIDIA H100 80GB HBM3"


class Capacity(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``running`` requests at once (vLLM's max-num-seqs), ``queue`` more wait (None: without bound, as vLLM does unless
    told otherwise). ``kv_tokens`` is what 100 % of the KV cache holds."""

    running: int = 256
    queue: int | None = None
    kv_tokens: int = 1_000_000


class Slowdown(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Latencies are multiplied by 1 + ``at_full`` × (running / capacity) ^ ``power``."""

    at_full: float = 0.0
    power: float = 1.0

    def factor(self, share: float) -> float:
        """The multiplier at this share of the capacity in use."""
        return 1.0 + self.at_full * share**self.power if self.at_full else 1.0


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A simulated runtime. Times are seconds, lengths tokens.

    ``ttft`` is the wait before the first token of an empty prompt; ``ttft_per_1k_tokens`` is added for each thousand
    uncached prompt tokens. ``tpot`` is drawn per request; ``tpot_jitter`` spreads single tokens by that share.
    ``output_tokens`` is the natural length of prose (a JSON or tool answer is as long as it is).
    ``bytes_per_token`` is the whole tokenizer: a token is that many UTF-8 bytes of prompt.
    ``keep_alive`` is uvicorn's as vLLM starts it. ``record`` keeps that many last requests for ``GET /sim/requests``.
    """

    model: str = "sim"
    aliases: tuple[str, ...] = ()
    adapters: tuple[str, ...] = ()
    version: str = "0.32.0"
    seed: int = 0
    precision: ReportedPrecision = ReportedPrecision()
    context_length: int = 131_072
    capacity: Capacity = Capacity()
    ttft: Distribution = Distribution(constant=0.0)
    ttft_per_1k_tokens: float = 0.0
    tpot: Distribution = Distribution(constant=0.0)
    tpot_jitter: float = 0.0
    slowdown: Slowdown = Slowdown()
    output_tokens: Distribution = Distribution(constant=64.0)
    max_output_tokens: int | None = None
    reasoning_tokens: int = 0
    tool_call_rate: float = 1.0
    embedding_dimensions: int = 256
    bytes_per_token: int = 4
    prefix_cache: bool = True
    server_info: bool = True
    healthy: bool = True
    api_key: str | None = None
    keep_alive: float = 5.0
    max_body_bytes: int = 256 * 1024 * 1024
    record: int = 1000
    faults: tuple[Fault, ...] = ()

    def __post_init__(self) -> None:
        if self.bytes_per_token < 1 or self.capacity.running < 1 or self.context_length < 1:
            raise ValueError("bytes_per_token, capacity.running and context_length are at least 1")
        if not 0 <= self.tool_call_rate <= 1 or not 0 <= self.tpot_jitter <= 1:
            raise ValueError("tool_call_rate and tpot_jitter are between 0 and 1")

    @property
    def names(self) -> tuple[str, ...]:
        """Every name a request may use as ``model``."""
        return (self.model, *self.aliases, *self.adapters)


def read_config(text: bytes) -> Config:
    """The configuration in a YAML text; empty text gives the defaults.

    Raises ``msgspec.ValidationError`` naming the key, or ``yaml.YAMLError`` with line and column.
    """
    document = msgspec.yaml.decode(text) if text.strip() else {}
    return msgspec.convert(document or {}, Config)


def patched(config: Config, patch: Mapping[str, Any]) -> Config:
    """``config`` with the given keys replaced; nested objects are merged key by key, so one number can be set alone.

    A distribution is replaced whole, because its shapes exclude each other.
    """
    merged: dict[str, Any] = msgspec.to_builtins(config)
    for key, value in patch.items():
        current = merged.get(key)
        whole = isinstance(getattr(config, key, None), Distribution)
        merged[key] = (
            {**current, **value} if isinstance(current, dict) and isinstance(value, dict) and not whole else value
        )
    return msgspec.convert(merged, Config)
