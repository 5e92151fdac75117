"""Where the rollout stands, as the gateway's admin API tells it: buckets with their guards, and the record of events.

Own reading of the documented answers (``GET /api/v1/rollouts`` and ``…/history``), not the gateway's code. Owns what a
decision is called on the screen. Pure.
"""

from collections.abc import Mapping
from math import exp
from typing import Any

import msgspec

PROMOTED, ROLLED_BACK = "promoted", "rolled_back"
DECIDED = frozenset({PROMOTED, ROLLED_BACK})
TRIP_FROM = -5.0
"""Suspicion (a decimal logarithm) with which a stage begins: 0.00001 of what trips."""


class Twin(msgspec.Struct, frozen=True):
    """The same guard on the baseline."""

    outcomes: int = 0
    bad: float = 0.0


class Guard(msgspec.Struct, frozen=True):
    """One guard of a bucket in its stage. ``suspicion``: 0 trips. ``interval`` is one that holds at any time."""

    series: str
    limit: float
    asked: bool
    outcomes: int
    bad: float
    suspicion: float
    log_evidence: float
    needed_log_evidence: float
    interval: tuple[float, float] | None = None
    baseline: Twin = Twin()

    @property
    def against(self) -> float:
        """How far the meter is on its way to a rollback, 0 to 1."""
        return _clamped(1.0 - self.suspicion / TRIP_FROM)

    @property
    def proven(self) -> float:
        """How far the evidence is on its way to the next stage, 0 to 1."""
        return _clamped(self.log_evidence / self.needed_log_evidence)

    @property
    def e_value(self) -> float:
        """Evidence that the pool is better than the limit."""
        return exp(min(self.log_evidence, 700.0))

    @property
    def enough(self) -> float:
        """The e-value that passes the stage."""
        return exp(self.needed_log_evidence)


class Bucket(msgspec.Struct, frozen=True):
    """One bucket. ``stage`` counts from 0; ``share_bp`` is what the candidate gets, in basis points."""

    bucket: str
    state: str
    stage: int
    share_bp: int
    reason: str
    stages: tuple[dict[str, Any], ...] = ()
    series: tuple[Guard, ...] = ()

    @property
    def guards(self) -> tuple[Guard, ...]:
        """Those of the policy: all must pass, and each can take the pool out."""
        return tuple(guard for guard in self.series if guard.asked)

    @property
    def decided(self) -> bool:
        """Promoted or rolled back."""
        return self.state in DECIDED

    @property
    def share(self) -> str:
        """The candidate's share in words."""
        return percent(self.share_bp) if self.share_bp > 0 else "nothing"


class Event(msgspec.Struct, frozen=True):
    """One line of the record. ``at``: seconds of the gateway's wall clock."""

    id: int
    bucket: str
    at: float
    event: str
    before: str
    after: str
    stage: int
    share_bp: int
    reason: str

    @property
    def title(self) -> str:
        """What happened, in a few words."""
        if self.after == ROLLED_BACK:
            return "rolled back"
        if self.after == PROMOTED and self.before != PROMOTED:
            return "promoted"
        if self.event == "begin":
            return f"enters at {percent(self.share_bp)}"
        if self.event == "pass" and self.after == "stepping":
            return f"stepped to {percent(self.share_bp)}"
        return f"{self.after.replace('_', ' ')} ({self.event})"


def read_buckets(answer: Mapping[str, Any]) -> dict[str, Bucket]:
    """Buckets by name, of ``GET /api/v1/rollouts``."""
    found = msgspec.convert(answer.get("buckets", []), list[Bucket])
    return {bucket.bucket: bucket for bucket in found}


def read_events(answer: Mapping[str, Any]) -> tuple[Event, ...]:
    """The record, oldest first, of ``GET /api/v1/rollouts/{rollout}/history``."""
    return tuple(reversed(msgspec.convert(answer.get("events", []), list[Event])))


def percent(share_bp: int) -> str:
    """Basis points in words."""
    return f"{share_bp / 100:g} %"


def _clamped(value: float) -> float:
    return min(1.0, max(0.0, value))
