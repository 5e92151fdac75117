"""The hardware gate: a pool may claim only what its hardware computes natively, unless it says ``emulated: true``.

FP8 weights or activations need compute capability 8.9, NVFP4, MXFP4 and MXFP8 activations 10.0, weight-only INT4 and
INT8 warn below 8.0. A CPU and GPUs of other makers have no compute capability; what is known of them stands in the
table. Called by ``load``.
"""

import re

from gateway.errors import PolicyError
from gateway.policy.formats import family, quantised
from gateway.policy.schema import Policy
from gateway.policy.schema.serving import Hardware, Pool
from gateway.policy.tree import Path, Tree

_NVIDIA: tuple[tuple[str, float], ...] = (
    (r"g?b30[03]", 10.3),
    (r"g?b[12]00", 10.0),
    (r"rtxpro[456]\d00\w*|rtx50[5-9]0\w*|50[5-9]0", 12.0),
    (r"gb10|dgxspark", 12.1),
    (r"g?h[12]00\w*|h800|h20", 9.0),
    (r"l4|l20|l40s?|rtx40[5-9]0\w*|40[5-9]0|rtx[456]000ada", 8.9),
    (r"a100\w*|a800|a30", 8.0),
    (r"a10g?|a40|a16|a2|rtxa[456]000|a[456]000|rtx30[5-9]0\w*|30[5-9]0", 8.6),
    (r"t4|rtx20[6-8]0\w*|20[6-8]0", 7.5),
    (r"v100\w*", 7.0),
    (r"p100|p40|p4", 6.0),
)
# Families with native matrix units on other makers' GPUs, by the words of the GPU's name.
_OTHERS: tuple[tuple[str, frozenset[str]], ...] = (
    (r"mi35[05]x?", frozenset({"fp8", "mxfp8", "mxfp6", "mxfp4", "int8"})),
    (r"mi3(?:00|08|25)[ax]?", frozenset({"fp8", "int8"})),
    (r"mi2[15]0x?|mi100", frozenset({"int8"})),
    (r"gaudi[23]", frozenset({"fp8"})),
)
_NEEDS = {"fp8": 8.9, "nvfp4": 10.0, "fp4": 10.0, "mxfp4": 10.0, "mxfp8": 10.0, "mxfp6": 10.0, "fp6": 10.0}
_WORD = re.compile(r"[a-z0-9]+")
_LEAVE = "correct the hardware or the precision, or say emulated: true, which keeps the pool out of latency claims"


def compute_capability(gpu: str) -> float | None:
    """By the GPU's name (``NVIDIA H100 80GB HBM3``); ``None`` for a name that is not known or not NVIDIA's."""
    return next((value for pattern, value in _NVIDIA if _named(gpu, pattern)), None)


def known_gpu(name: str) -> bool:
    """Whether this is the name of a GPU that the table knows, of any maker."""
    return any(_named(name, pattern) for pattern, _ in (*_NVIDIA, *_OTHERS))


def capability_of(hardware: Hardware | None) -> float | None:
    """As declared, else by the GPU's name."""
    if hardware is None:
        return None
    if hardware.compute_capability is not None:
        return float(hardware.compute_capability)
    return compute_capability(hardware.gpu) if hardware.gpu else None


def _named(gpu: str, pattern: str) -> bool:
    words = _WORD.findall(gpu.lower())
    joined = [
        "".join(words[start : start + length]) for length in (1, 2, 3) for start in range(len(words) - length + 1)
    ]
    return any(re.fullmatch(pattern, word) for word in joined)


def check_hardware(policy: Policy, tree: Tree) -> list[PolicyError]:
    """Errors for claims the hardware cannot meet, warnings where it cannot be told."""
    return [finding for name, pool in policy.pools.items() for finding in _check_pool(name, pool, tree)]


def _check_pool(name: str, pool: Pool, tree: Tree) -> list[PolicyError]:
    path: Path = ("pools", name, "precision")
    found: list[PolicyError] = []
    hardware = pool.hardware
    if hardware is not None and hardware.gpu and hardware.compute_capability:
        by_name = compute_capability(hardware.gpu)
        if by_name is not None and by_name != float(hardware.compute_capability):
            place = tree.place(("pools", name, "hardware", "compute_capability"))
            said = f"pool {name}: {hardware.gpu} has compute capability {by_name}, not {hardware.compute_capability}"
            found.append(place.finding(said, f'write "{by_name}", or leave it out'))
    precision = pool.precision
    if precision.dynamic_scales is None and quantised(precision.activations):
        said = f"pool {name} does not say whether its activation scales are static; it counts as dynamic"
        found.append(tree.place(path).finding(said, "give precision.dynamic_scales", "warning"))
    if precision.emulated:
        return found
    claims = {("activations", _claim(precision.activations)), ("weights", _weights_claim(pool))}
    for field, claim in sorted(claims):
        if claim in _NEEDS:
            found += _native(name, hardware, claim, tree, (*path, field))
    if family(precision.weights) in ("int4", "int8") and not quantised(precision.activations):
        found += _weight_only(name, pool, tree)
    return found


def _claim(word: str) -> str:
    return word if word in _NEEDS else family(word)


def _weights_claim(pool: Pool) -> str:
    """Microscaling formats with 16-bit activations are unpacked first.

    Only NVFP4 and FP8 weights claim matrix units.
    """
    claim = _claim(pool.precision.weights)
    native = claim in ("fp8", "nvfp4") or quantised(pool.precision.activations)
    return claim if native else ""


def _native(name: str, hardware: Hardware | None, claim: str, tree: Tree, path: Path) -> list[PolicyError]:
    needed = _NEEDS[claim]
    place = tree.place(path)
    if hardware is None or (hardware.device == "gpu" and hardware.gpu is None and hardware.compute_capability is None):
        said = f"pool {name} claims {claim} but does not say on what hardware, so the gate cannot check it"
        return [place.finding(said, "give hardware: {gpu: …} or compute_capability", "warning")]
    if hardware.device == "cpu":
        return [place.finding(f"pool {name} claims {claim} on a CPU, which has no native path for it", _LEAVE)]
    other = next((formats for pattern, formats in _OTHERS if hardware.gpu and _named(hardware.gpu, pattern)), None)
    capability = capability_of(hardware)
    if capability is None and other is None:
        said = f"pool {name} claims {claim} on {hardware.gpu}, which is not known here"
        return [place.finding(said, 'give hardware.compute_capability, such as "9.0"', "warning")]
    if capability is not None and capability < needed:
        gpu = hardware.gpu or "this GPU"
        said = f"pool {name} claims {claim}, which needs compute capability {needed}, but {gpu} has {capability}"
        return [place.finding(said, _LEAVE)]
    if capability is None and other is not None and claim not in other:
        return [place.finding(f"pool {name} claims {claim}, which {hardware.gpu} does not compute natively", _LEAVE)]
    return []


def _weight_only(name: str, pool: Pool, tree: Tree) -> list[PolicyError]:
    capability = capability_of(pool.hardware)
    if capability is None or capability >= 8.0:
        return []
    place = tree.place(("pools", name, "precision", "weights"))
    weights = pool.precision.weights
    said = f"pool {name}: weight-only {weights} kernels need compute capability 8.0, here it is {capability}"
    return [place.finding(said, "expect slow fallbacks; measure before relying on it", "warning")]
