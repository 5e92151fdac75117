"""Families of number formats, as far as rules and the hardware gate need them. Pure.

Some words are more exact than others: ``q8_0`` is an ``int8``, ``fp8_e5m2`` an ``fp8``, ``nvfp4`` an ``fp4``.
"""

import re

_GGML = re.compile(r"i?q([1-8])_[a-z0-9_]+")
_TERNARY = re.compile(r"tq([12])_0")
_GENERAL = {"fp8_e4m3": "fp8", "fp8_e5m2": "fp8", "mxfp8": "fp8", "mxfp6": "fp6", "nvfp4": "fp4", "mxfp4": "fp4"}
FLOATS = frozenset({"bf16", "fp16", "fp32", "tf32"})


def family(word: str) -> str:
    """The general format of an exact one; itself if it is general."""
    if (match := _GGML.fullmatch(word) or _TERNARY.fullmatch(word)) is not None:
        return f"int{match[1]}"
    return _GENERAL.get(word, word)


def quantised(word: str) -> bool:
    """Whether values in this format carry scales."""
    return word not in FLOATS
