"""What a GPU's name says: its compute capability, and whether a reported name can be the declared one.

Needed because a quantised format runs natively only from some capability on, and falls back to weight-only kernels
below, without a word over HTTP (vLLM logs it). Pure.
"""

import itertools
import re

_CAPABILITIES: tuple[tuple[re.Pattern[str], tuple[int, int]], ...] = tuple(
    (re.compile(pattern), capability)
    for pattern, capability in (
        (r"g?b300|gb?10[34]", (10, 3)),
        (r"g?b[12]00", (10, 0)),
        (r"rtx50\d0\w*|rtxpro6000\w*|50[5-9]0", (12, 0)),
        (r"g?h[12]00\w*|h800|h20", (9, 0)),
        (r"l4|l20|l40s?|rtx40\d0\w*|40[5-9]0|rtx6000ada", (8, 9)),
        (r"a100\w*|a800|a30", (8, 0)),
        (r"a10g?|a40|a16|a2|a6000|a5000|a4000|rtx30\d0\w*|30[5-9]0", (8, 6)),
        (r"t4|rtx20\d0\w*|20[6-8]0", (7, 5)),
        (r"v100\w*", (7, 0)),
    )
)
_WORD = re.compile(r"[a-z0-9]+")

FP8_NATIVE = (8, 9)
FP4_NATIVE = (10, 0)


def compute_capability(gpu: str) -> tuple[int, int] | None:
    """CUDA compute capability by the GPU's name; ``None`` for a name not in the table (also every non-NVIDIA one)."""
    words = _WORD.findall(gpu.lower())
    joined = {f"{first}{second}" for first, second in itertools.pairwise(words)}
    joined |= {"".join(words[i : i + 3]) for i in range(len(words) - 2)}
    for pattern, capability in _CAPABILITIES:
        if any(pattern.fullmatch(word) for word in (*words, *joined)):
            return capability
    return None


def native_activations(weights: str, gpus: tuple[str, ...]) -> bool | None:
    """Whether low-precision activations of this weight format have native kernels on all these GPUs; ``None`` =
    cannot tell.
    """
    needed = FP8_NATIVE if weights.startswith("fp8") else FP4_NATIVE if weights in ("nvfp4", "mxfp8", "mxfp4") else None
    known = [compute_capability(gpu) for gpu in gpus]
    if needed is None or not known or None in known:
        return None
    return all(capability is not None and capability >= needed for capability in known)


def same_gpu(declared: str, reported: str) -> bool:
    """Whether a reported GPU name can be the declared one: the model word (the first with a digit) must be among its
    words.
    """
    models = [word for word in _WORD.findall(declared.lower()) if any(char.isdigit() for char in word)]
    return not models or models[0] in _WORD.findall(reported.lower())
