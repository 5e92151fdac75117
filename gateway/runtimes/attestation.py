"""What a runtime says about itself: observed precision with its confidence, models, adapters, version, device.

A runtime reports what was asked of it, not always what runs, so each observation carries how it is known. Values
only; the adapters fill them, ``compare`` sets them against the policy, ``control`` stores and shows them.
"""

from collections.abc import Mapping
from enum import StrEnum

import msgspec


class Confidence(StrEnum):
    """How an observation is known."""

    REPORTED = "reported"  # the runtime states it, or it follows with certainty from what it states
    INFERRED = "inferred"  # follows from a name, a size or a usual default; enough to warn, not to quarantine
    UNKNOWN = "unknown"


class Observation(msgspec.Struct, frozen=True):
    """An observed format (``formats.canonical`` spelling), how it is known, and from what. Empty value = unknown."""

    value: str = ""
    confidence: Confidence = Confidence.UNKNOWN
    source: str = ""

    @property
    def known(self) -> bool:
        """Whether there is a value at all."""
        return self.confidence is not Confidence.UNKNOWN


def reported(value: str, source: str) -> Observation:
    """An observation the runtime states."""
    return Observation(value, Confidence.REPORTED, source)


def inferred(value: str, source: str) -> Observation:
    """An observation drawn from indirect signs."""
    return Observation(value, Confidence.INFERRED, source)


def unknown(why: str = "") -> Observation:
    """No observation; ``why`` is shown to a person."""
    return Observation(source=why)


class ServedModel(msgspec.Struct, frozen=True):
    """A model or LoRA adapter as the runtime lists it. ``parent`` is the base of an adapter; ``root`` the path or hub
    name.
    """

    name: str
    root: str | None = None
    parent: str | None = None
    context_length: int | None = None
    aliases: tuple[str, ...] = ()
    id: int | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """All names it answers to."""
        return (self.name, *self.aliases)


class Attestation(msgspec.Struct, frozen=True):
    """One reading of one endpoint.

    ``models_listed``: the runtime's list can be trusted to be complete; an empty list of one that lists nothing proves
    nothing. ``context_length``: tokens one request may hold, prompt and answer together. ``weight_bits``: measured
    bits per weight, file size over parameters, scales and unquantised layers included. ``kv_tokens``: tokens the KV
    cache holds; ``kv_bytes_per_token``: of one rank, for comparing endpoints of one model with equal
    ``tensor_parallel``. ``device``: record of versions and settings that explain a number later. ``notes``: for a
    person, known hazards first.
    """

    runtime: str
    weights: Observation = Observation()
    activations: Observation = Observation()
    kv_cache: Observation = Observation()
    method: str | None = None
    group_size: int | None = None
    context_length: int | None = None
    models: tuple[ServedModel, ...] = ()
    adapters: tuple[ServedModel, ...] = ()
    models_listed: bool = False
    adapters_listed: bool = False
    version: str | None = None
    gpus: tuple[str, ...] = ()
    tensor_parallel: int | None = None
    weight_bits: float | None = None
    kv_tokens: int | None = None
    kv_bytes_per_token: float | None = None
    device: Mapping[str, str] = {}
    notes: tuple[str, ...] = ()

    @property
    def unattested(self) -> tuple[str, ...]:
        """The parts of the precision that nothing is known of: ``weights``, ``activations``, ``kv_cache``."""
        parts = (("weights", self.weights), ("activations", self.activations), ("kv_cache", self.kv_cache))
        return tuple(name for name, observation in parts if not observation.known)
