"""The contract of a runtime adapter: which HTTP GETs to make, and how to read their answers into values.

An adapter is pure: it opens no socket and knows no clock. The prober in ``control`` sends the ``Probe``s, hands the
``Answers`` back and stores what it gets. Every reader takes whatever answers there are: a missing or failed answer
makes a value unknown, never an exception. Called by ``control`` (probes, attestation).
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import TypeAlias

import msgspec

from gateway.runtimes.attestation import Attestation


class Purpose(StrEnum):
    """Why a probe is made; the prober picks its pace by it (``Adapter.*_interval_s``)."""

    HEALTH = "health"
    METRICS = "metrics"
    MODELS = "models"
    INFO = "info"
    VERSION = "version"


ATTESTING = frozenset({Purpose.MODELS, Purpose.INFO, Purpose.VERSION, Purpose.METRICS})
"""Purposes whose answers ``Adapter.attest`` reads; ask them together, so that one attestation is of one moment."""


class Probe(msgspec.Struct, frozen=True):
    """One GET. ``path`` is relative to the endpoint and is the key of its answer.

    ``expected``: statuses that are normal here; another status is worth a log line, not a crash. A 404 is expected
    where the runtime serves the path only when it was started so.
    """

    path: str
    purpose: Purpose
    timeout_s: float = 3.0
    expected: frozenset[int] = frozenset({200})


class Answer(msgspec.Struct, frozen=True):
    """What came back: ``status`` 0 = no HTTP answer at all, and then ``error`` says why (refused, timeout, reset)."""

    status: int
    body: bytes = b""
    error: str = ""


Answers: TypeAlias = Mapping[str, Answer]
"""Answers by the probe's path."""


class HealthState(StrEnum):
    """What a runtime says about itself. The values are those of ``EndpointState``."""

    READY = "ready"
    LOADING = "loading"
    UNHEALTHY = "unhealthy"


class Health(msgspec.Struct, frozen=True):
    """State and, unless ready, a short reason in a person's words."""

    state: HealthState
    reason: str = ""

    @property
    def ready(self) -> bool:
        """Whether new requests may be offered."""
        return self.state is HealthState.READY


READY = Health(HealthState.READY)


class Load(msgspec.Struct, frozen=True):
    """Load that the runtime reports, over all its engines. ``None`` = it does not say.

    ``running`` and ``waiting`` count requests of every client, not ours alone. ``kv_usage`` is a share, 0 to 1.
    ``slots``: how many requests can run at once. ``prefix_queries`` and ``prefix_hits`` are cumulative tokens
    (TensorRT-LLM: blocks) since its start, for rates over time; ``prefix_hit_rate`` is the runtime's own share.
    ``adapters``: LoRA adapters in use. ``at`` is the reader's clock when the answer arrived, in seconds.
    """

    at: float
    running: int | None = None
    waiting: int | None = None
    kv_usage: float | None = None
    slots: int | None = None
    prefix_queries: float | None = None
    prefix_hits: float | None = None
    prefix_hit_rate: float | None = None
    preemptions: float | None = None
    adapters: tuple[str, ...] = ()

    @property
    def known(self) -> bool:
        """Whether anything a balancer can use was reported."""
        return self.running is not None or self.waiting is not None or self.kv_usage is not None


class Adapter(msgspec.Struct, frozen=True):
    """Everything the gateway knows about one serving runtime. ``runtime`` is the policy's spelling.

    ``health`` reads any answers that hold the health probe's. ``load`` gives ``None`` when nothing was reported.
    ``checks_names``: a name in ``model`` that the runtime's list lacks is refused there; where any name is answered, or
    the list is not of names, another name in it fails no request.
    """

    runtime: str
    probes: tuple[Probe, ...]
    health: Callable[[Answers], Health]
    load: Callable[[Answers, float], Load | None]
    attest: Callable[[Answers], Attestation]
    checks_names: bool = True
    health_interval_s: float = 10.0
    load_interval_s: float = 1.0
    attest_interval_s: float = 60.0

    def probes_for(self, *purposes: Purpose) -> tuple[Probe, ...]:
        """The probes of these purposes, in the adapter's order."""
        return tuple(probe for probe in self.probes if probe.purpose in purposes)
