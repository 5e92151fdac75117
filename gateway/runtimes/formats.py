"""Names of number formats: one spelling for the many that runtimes use, and when two of them agree.

Formats are lower-case words as in ``Precision``. Some are more exact than others (``q8_0`` is an ``int8``,
``fp8_e5m2`` an ``fp8``): a general name agrees with every exact one under it, two different exact ones do not agree.
Pure.
"""

import re

_ALIASES = {
    "bfloat16": "bf16",
    "half": "fp16",
    "float16": "fp16",
    "f16": "fp16",
    "float": "fp32",
    "float32": "fp32",
    "f32": "fp32",
    "float8_e4m3fn": "fp8_e4m3",
    "float8_e4m3": "fp8_e4m3",
    "fp8_e4m3fn": "fp8_e4m3",
    "float8_e5m2": "fp8_e5m2",
    "e4m3": "fp8_e4m3",
    "e5m2": "fp8_e5m2",
    "fp8_inc": "fp8",
    "fp8_ds_mla": "fp8",
    "fp8kv_sph": "fp8",
    "fp8kv_spt": "fp8",
    "int8kv": "int8",
    "int4kv": "int4",
    "uint8": "int8",
    "uint4": "int4",
    "uint8b128": "int8",
    "uint4b8": "int4",
    "nvfp4_per_token": "nvfp4",
    "fp4_e2m1": "fp4",
    "float4_e2m1fn_x2": "fp4",
}
_GGML = re.compile(r"i?q(\d)(?:_[a-z0-9]+)*")
_GENERAL_PREFIXES = ("fp8", "int8", "int4")
_BITS = re.compile(r"(?:bf|fp|f|int|uint|nvfp|mxfp|iq|q)(\d+)")
_SUFFIX = {" - small": "_s", " - medium": "_m", " - large": "_l"}


def canonical(text: str) -> str:
    """One spelling: ``torch.bfloat16`` gives ``bf16``, ``Q4_K - Medium`` ``q4_k_m``, ``IQ4_NL - 4.5 bpw`` ``iq4_nl``"""
    word = text.strip().lower().removeprefix("torch.").removeprefix("(guessed) ").removeprefix("all ")
    for suffix, short in _SUFFIX.items():
        word = word.replace(suffix, short)
    word = word.split(" - ")[0].removeprefix("mostly ").strip().replace("-", "_").replace(" ", "_")
    return _ALIASES.get(word, word)


def general(name: str) -> str:
    """The general format that an exact one belongs to: ``q8_0`` → ``int8``, ``fp8_e5m2`` → ``fp8``; itself if it is
    general.
    """
    if (match := _GGML.fullmatch(name)) is not None:
        return f"int{match[1]}"
    if name in ("nvfp4", "mxfp4"):
        return "fp4"
    if name == "mxfp8":
        return "fp8"
    for prefix in _GENERAL_PREFIXES:
        if name == prefix or name.startswith(prefix + "_"):
            return prefix
    return name


def agree(declared: str, observed: str) -> bool:
    """Whether two formats can be the same: equal, or one is the general name of the other."""
    left, right = canonical(declared), canonical(observed)
    return left == right or general(left) == right or left == general(right)


def bits(name: str) -> int | None:
    """Nominal bits per value, without scales; ``None`` for a name that does not say."""
    match = _BITS.match(canonical(name))
    return int(match[1]) if match is not None else None


_WORDS = re.compile(r"[a-z0-9_]+")
_NAME_HINTS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), name)
    for pattern, name in (
        (r"nvfp4", "nvfp4"),
        (r"mxfp4", "mxfp4"),
        (r"mxfp8", "mxfp8"),
        (r"fp8\w*", "fp8"),
        (r"w8a8|w8a16|int8|8bit", "int8"),
        (r"w4a16|w4a8|int4|4bit|awq", "int4"),
        (r"bf16", "bf16"),
        (r"fp16", "fp16"),
    )
)
_GGUF_NAME = re.compile(r"i?q[2-8](?:_[a-z0-9]+)+")


def hinted(name: str) -> str | None:
    """The weight format that a model's name or path hints at (``…-AWQ``, ``…-FP8-dynamic``, ``….Q4_K_M.gguf``).

    Only a hint: names are given by people. The last part of a path is read.
    """
    last = name.rstrip("/").rsplit("/", 1)[-1].lower()
    found = [
        word if _GGUF_NAME.fullmatch(word) else hint
        for word in _WORDS.findall(last)
        for pattern, hint in ((_GGUF_NAME, ""), *_NAME_HINTS)
        if pattern.fullmatch(word)
    ]
    return found[0] if found else None
