"""What precision a pool computes in: weights, activations and KV cache, each on its own."""

import msgspec

FULL = frozenset({"bf16", "fp16", "fp32"})


class Precision(msgspec.Struct, frozen=True):
    """Declared precision of a pool. Formats are lower-case words: bf16 fp16 fp32 fp8 int8 int4 nvfp4 mxfp4 q8_0 …

    ``dynamic_scales``: quantisation scales depend on the batch, so equal prompts may differ between batches.
    ``emulated``: the hardware has no native path; such a pool is kept out of latency claims.
    """

    weights: str = "bf16"
    activations: str = "bf16"
    kv_cache: str = "bf16"
    method: str | None = None
    group_size: int | None = None
    dynamic_scales: bool = False
    emulated: bool = False

    @property
    def label(self) -> str:
        """Short label for headers and metrics: the weights' format, with the KV cache's where it is quantised."""
        return self.weights if self.kv_cache in FULL else f"{self.weights}+kv-{self.kv_cache}"


def bits(word: str) -> int:
    """Bits per value of a format word: ``bf16`` 16, ``nvfp4`` 4, ``q8_0`` 8; 16 for a word without a number."""
    digits = ""
    for character in word:
        if character.isdigit():
            digits += character
        elif digits:
            break
    return int(digits) if digits else 16


def rank(precision: Precision) -> int:
    """Order of precisions for "only upwards": the coarsest of weights and KV cache decides."""
    return min(bits(precision.weights), bits(precision.kv_cache))
