"""What the name of a quantisation method says about formats, for the runtimes that report only that name.

vLLM, SGLang and LightLLM share the vocabulary. A method that is a container (compressed-tensors, quark, torchao …)
says nothing about bits, and neither does this table then. Pure.
"""

import re

import msgspec

from gateway.runtimes.attestation import Confidence
from gateway.runtimes.formats import canonical

MODEL_DTYPE = "model"
"""Stands for "as the model's dtype" in a scheme's activations."""


class Scheme(msgspec.Struct, frozen=True):
    """Formats a method implies; ``None`` = does not say. ``carries_kv``: its checkpoints may hold a KV-cache scheme
    of their own, which ``auto`` then obeys. ``confidence`` is that of the weights.
    """

    weights: str | None = None
    activations: str | None = None
    carries_kv: bool = True
    confidence: Confidence = Confidence.REPORTED


_FP8 = Scheme("fp8", "fp8")
_AWQ = Scheme("int4", MODEL_DTYPE, carries_kv=False)
_GPTQ = Scheme(None, MODEL_DTYPE, carries_kv=False)
_BY_NAME: dict[str, Scheme] = {
    **dict.fromkeys(("fp8", "fp8_per_tensor", "fp8_per_channel", "fp8_per_block", "fbgemm_fp8", "ptpc_fp8"), _FP8),
    **dict.fromkeys(("modelopt", "modelopt_fp8", "w8a8_fp8", "deepseek_v4_fp8"), _FP8),
    **dict.fromkeys(
        ("modelopt_fp4", "nvfp4", "nvfp4_per_token", "nvfp4_online", "petit_nvfp4"), Scheme("nvfp4", "nvfp4")
    ),
    **dict.fromkeys(("mxfp8", "modelopt_mxfp8"), Scheme("mxfp8")),
    **dict.fromkeys(("mxfp4", "gpt_oss_mxfp4"), Scheme("mxfp4")),
    **dict.fromkeys(("awq", "auto_awq", "awq_marlin"), _AWQ),
    **dict.fromkeys(("gptq", "auto_gptq", "gptq_marlin"), _GPTQ),
    "w8a8_int8": Scheme("int8", "int8"),
    "w4afp8": Scheme("int4", "fp8"),
    "bitsandbytes": Scheme(None, MODEL_DTYPE, carries_kv=False),
    "gguf": Scheme(None, MODEL_DTYPE, carries_kv=False),
}
_ONLINE = frozenset({"fp8_per_tensor", "fp8_per_channel", "fp8_per_block", "nvfp4_per_token", "nvfp4_online"})
_WNAM = re.compile(r"(fp)?w(\d+)a(fp)?(\d+)")
_QUANT_TYPE = re.compile(r"quant_type=(?:ScalarType\.)?(\w+)")
_WEIGHT_BITS = re.compile(r"(?:weight_)?bits=(\d+)")
_GROUP_SIZE = re.compile(r"group_size=(-?\d+)")


def scheme_of(method: str) -> Scheme:
    """Formats that ``method`` implies. A name of the kind ``…w4a16…`` is read too; an unknown name says nothing."""
    name = method.strip().lower().replace("-", "_")
    known = _BY_NAME.get(name)
    if known is not None:
        # An online method quantises a full-precision checkpoint, which carries no KV scheme.
        return msgspec.structs.replace(known, carries_kv=False) if name in _ONLINE else known
    return wnam(name) or Scheme()


def wnam(name: str) -> Scheme | None:
    """The scheme in a name such as ``w8a8``, ``w4a16`` or ``fp8w8a8``; ``None`` where there is none."""
    text = name.lower()
    match = _WNAM.search(text)
    if match is None:
        return None
    weight_bits, activation_bits = int(match[2]), int(match[4])
    floating = "fp8" in text or match[1] is not None
    weights = f"fp{weight_bits}" if floating else f"int{weight_bits}"
    if activation_bits == 16:
        return Scheme(weights, MODEL_DTYPE)
    activations = f"fp{activation_bits}" if floating or match[3] is not None else f"int{activation_bits}"
    return Scheme(weights, activations)


class Printed(msgspec.Struct, frozen=True):
    """What the printed form of a quantisation config tells."""

    weights: str | None = None
    group_size: int | None = None


def read_printed(config: str) -> Printed:
    """Bits and group size out of a config's printed form (``AutoAWQConfig(quant_type=uint4, group_size=128, …)``).

    ``<… object at 0x…>`` tells nothing. A group size of -1 means one scale for a whole channel.
    """
    kind = _QUANT_TYPE.search(config)
    width = _WEIGHT_BITS.search(config)
    group = _GROUP_SIZE.search(config)
    weights = canonical(kind[1]) if kind is not None else f"int{width[1]}" if width is not None else None
    return Printed(weights, int(group[1]) if group is not None else None)
