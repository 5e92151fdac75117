"""Setting what a policy declares of a pool against what an endpoint attests.

It owns the rule what counts as a contradiction and how sure it is; what follows (quarantine, warning) is
``control``'s. A missing observation contradicts nothing: it leaves the endpoint unattested. Pure.
"""

from collections.abc import Collection
from enum import StrEnum

import msgspec

from gateway.model.precision import FULL, Precision
from gateway.runtimes.attestation import Attestation, Confidence, Observation, ServedModel
from gateway.runtimes.formats import agree, bits, canonical, general
from gateway.runtimes.hardware import same_gpu


class Mismatch(msgspec.Struct, frozen=True):
    """One contradiction. ``confidence`` REPORTED is ground to quarantine, INFERRED to warn. ``reason`` is for a
    person.
    """

    field: str
    declared: str
    observed: str
    confidence: Confidence
    reason: str

    @property
    def proven(self) -> bool:
        """The runtime says so itself."""
        return self.confidence is Confidence.REPORTED


class Declaration(msgspec.Struct, frozen=True):
    """What a policy claims of one endpoint beside its precision. ``None`` or empty = claims nothing.

    ``names``: the model names that requests will carry upstream. ``context_window`` in tokens.
    """

    precision: Precision
    names: tuple[str, ...] = ()
    adapters: tuple[str, ...] = ()
    context_window: int | None = None
    gpu: str | None = None


class Verdict(StrEnum):
    """The state of an endpoint's attestation."""

    ATTESTED = "attested"  # weights and KV cache are known, nothing contradicts
    PARTIAL = "partial"  # one of them is known, nothing contradicts
    UNATTESTED = "unattested"  # neither is known
    SUSPECT = "suspect"  # contradicted by an inference
    MISMATCH = "mismatch"  # contradicted by the runtime's own report


def compare(
    declared: Declaration | Precision, observed: Attestation, reference: Attestation | None = None
) -> tuple[Mismatch, ...]:
    """Every contradiction, in the order precision, models, context, hardware.

    ``reference``: the attestation of an endpoint that serves the same model with a 16-bit KV cache, known as such;
    the bytes per token then show a quantised KV cache that the runtime calls ``auto``.
    """
    claim = declared if isinstance(declared, Declaration) else Declaration(declared)
    precision = claim.precision
    found = [
        _format("weights", precision.weights, observed.weights),
        _format("activations", precision.activations, observed.activations),
        _format("kv_cache", precision.kv_cache, observed.kv_cache) or _kv_size(precision, observed, reference),
        _weight_bits(precision, observed),
        _method(precision, observed),
        _group_size(precision, observed),
        *_names(claim.names, observed),
        *_adapters(claim.adapters, observed),
        _context(claim.context_window, observed),
        _gpu(claim.gpu, observed),
    ]
    return tuple(mismatch for mismatch in found if mismatch is not None)


def judge(observed: Attestation, mismatches: Collection[Mismatch]) -> Verdict:
    """The verdict on one endpoint, given its contradictions."""
    if any(mismatch.proven for mismatch in mismatches):
        return Verdict.MISMATCH
    if mismatches:
        return Verdict.SUSPECT
    known = (observed.weights.known, observed.kv_cache.known)
    return Verdict.ATTESTED if all(known) else Verdict.PARTIAL if any(known) else Verdict.UNATTESTED


def kv_bits(observed: Attestation, reference: Attestation) -> int | None:
    """Bits per value of ``observed``'s KV cache, from its bytes per token against a 16-bit cache of the same model.

    ``None`` unless both report the size and the same tensor parallelism: a rank holds only its share of the heads.
    """
    ours, full = observed.kv_bytes_per_token, reference.kv_bytes_per_token
    parallel = observed.tensor_parallel
    if not ours or not full or parallel is None or parallel != reference.tensor_parallel:
        return None
    ratio = ours / full
    steps = ((16, 0.9, 1.1), (8, 0.45, 0.65), (4, 0.22, 0.4))  # upper bounds leave room for the scales
    return next((width for width, low, high in steps if low <= ratio <= high), None)


def _format(field: str, declared: str, observation: Observation) -> Mismatch | None:
    if not observation.known or agree(declared, observation.value):
        return None
    reason = (
        f"policy says {field} {declared}, the runtime {_verb(observation)} {observation.value} ({observation.source})"
    )
    return Mismatch(field, canonical(declared), observation.value, observation.confidence, reason)


def _verb(observation: Observation) -> str:
    return "reports" if observation.confidence is Confidence.REPORTED else "seems to use"


def _kv_size(precision: Precision, observed: Attestation, reference: Attestation | None) -> Mismatch | None:
    """The KV cache by its size: catches a checkpoint's own KV scheme behind ``auto``."""
    if reference is None or observed.kv_cache.confidence is Confidence.REPORTED:
        return None
    width = kv_bits(observed, reference)
    claimed = bits(precision.kv_cache)
    if width is None or claimed is None or width == claimed:
        return None
    reason = (
        f"policy says kv_cache {precision.kv_cache}, but a token takes {observed.kv_bytes_per_token:.0f} bytes of KV "
        f"cache against {reference.kv_bytes_per_token:.0f} on a 16-bit endpoint of this model: about {width} bits"
    )
    return Mismatch("kv_cache", canonical(precision.kv_cache), f"{width} bits", Confidence.INFERRED, reason)


def _weight_bits(precision: Precision, observed: Attestation) -> Mismatch | None:
    """Fewer measured bits per weight than the declared format needs: the label lies. More is normal (embeddings,
    scales).
    """
    nominal = bits(general(canonical(precision.weights)))
    measured = observed.weight_bits
    if nominal is None or measured is None or measured >= nominal * 0.95:
        return None
    reason = f"policy says weights {precision.weights}, but the file holds {measured:.1f} bits per weight"
    return Mismatch("weights", canonical(precision.weights), f"{measured:.1f} bits", Confidence.REPORTED, reason)


def _method(precision: Precision, observed: Attestation) -> Mismatch | None:
    """Only AWQ and GPTQ exclude one another; the other names are containers (compressed-tensors, quark, modelopt)."""
    ours, theirs = precision.method, observed.method
    if ours is None or theirs is None:
        return None
    declared, seen = ours.lower(), theirs.removeprefix("auto_").removesuffix("_marlin")
    if declared == seen or not {declared, seen} <= {"awq", "gptq"}:
        return None
    reason = f"policy says method {ours}, the runtime reports {theirs}"
    return Mismatch("method", declared, seen, Confidence.REPORTED, reason)


def _group_size(precision: Precision, observed: Attestation) -> Mismatch | None:
    ours, theirs = precision.group_size, observed.group_size
    if ours is None or theirs is None or ours == theirs:
        return None
    reason = f"policy says group_size {ours}, the runtime reports {theirs}"
    return Mismatch("group_size", str(ours), str(theirs), Confidence.REPORTED, reason)


def _names(names: tuple[str, ...], observed: Attestation) -> list[Mismatch]:
    if not observed.models_listed:
        return []
    served = {name for model in (*observed.models, *observed.adapters) for name in model.names}
    return [
        Mismatch(
            "model",
            name,
            ", ".join(sorted(served)) or "none",
            Confidence.REPORTED,
            f"requests will ask for model {name!r}, the runtime serves {', '.join(sorted(served)) or 'none'}: "
            "start it with that name, or give its name in the policy",
        )
        for name in names
        if name not in served
    ]


def _adapters(names: tuple[str, ...], observed: Attestation) -> list[Mismatch]:
    if not observed.adapters_listed:
        return []
    loaded = {adapter.name: adapter for adapter in observed.adapters}
    bases = {name for model in observed.models for name in (*model.names, model.root) if name}
    found = []
    for name in names:
        adapter = loaded.get(name)
        if adapter is None:
            seen, why = ", ".join(sorted(loaded)) or "none", f"adapter {name!r} is not loaded"
        elif _foreign(adapter, bases):
            seen, why = (
                str(adapter.parent),
                f"adapter {name!r} belongs to {adapter.parent!r}, not to a model served here",
            )
        else:
            continue
        found.append(Mismatch("adapters", name, seen, Confidence.REPORTED, why))
    return found


def _foreign(adapter: ServedModel, bases: set[str]) -> bool:
    return adapter.parent is not None and bool(bases) and adapter.parent not in bases


def _context(window: int | None, observed: Attestation) -> Mismatch | None:
    length = observed.context_length
    if window is None or length is None or length >= window:
        return None
    reason = f"policy says context_window {window}, the runtime takes {length} tokens a request: longer ones would fail"
    return Mismatch("context_window", str(window), str(length), Confidence.REPORTED, reason)


def _gpu(declared: str | None, observed: Attestation) -> Mismatch | None:
    other = [gpu for gpu in observed.gpus if declared is not None and not same_gpu(declared, gpu)]
    if declared is None or not other:
        return None
    # Vendors spell a card in several ways, so a different name alone never quarantines.
    return Mismatch(
        "gpu", declared, other[0], Confidence.INFERRED, f"policy says gpu {declared}, the runtime reports {other[0]}"
    )


def reference_for(candidates: Collection[Attestation]) -> Attestation | None:
    """An attestation fit as ``compare``'s reference: its KV cache is reported as 16-bit, and its bytes per token are
    known.
    """
    for candidate in candidates:
        kv = candidate.kv_cache
        if kv.confidence is Confidence.REPORTED and kv.value in FULL - {"fp32"} and candidate.kv_bytes_per_token:
            return candidate
    return None
