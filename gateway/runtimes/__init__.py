"""One file per serving runtime: how to probe it, read its health and load, attest its precision, and spell its
quirks.

Everything here is pure: ``adapter`` states the contract, ``registry`` holds all runtimes, ``compare`` sets an
attestation against a policy, ``quirks`` is what the data plane reads per request, ``faults`` reads error bodies.
Shared ground: ``reading`` (OpenAI's surface), ``exposition`` (Prometheus text), ``formats``, ``methods`` and
``hardware`` (names and what they mean).
"""

from gateway.runtimes.adapter import ATTESTING, Adapter, Answer, Answers, Health, HealthState, Load, Probe, Purpose
from gateway.runtimes.attestation import Attestation, Confidence, Observation, ServedModel
from gateway.runtimes.compare import Declaration, Mismatch, Verdict, compare, judge, reference_for
from gateway.runtimes.faults import Fault, read_fault
from gateway.runtimes.quirks import Blame, LoraAdapter, Quirks, Spelling, blame, spell
from gateway.runtimes.registry import ADAPTERS

__all__ = [
    "ADAPTERS",
    "ATTESTING",
    "Adapter",
    "Answer",
    "Answers",
    "Attestation",
    "Blame",
    "Confidence",
    "Declaration",
    "Fault",
    "Health",
    "HealthState",
    "Load",
    "LoraAdapter",
    "Mismatch",
    "Observation",
    "Probe",
    "Purpose",
    "Quirks",
    "ServedModel",
    "Spelling",
    "Verdict",
    "blame",
    "compare",
    "judge",
    "read_fault",
    "reference_for",
    "spell",
]
