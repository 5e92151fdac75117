"""The twin rule: is the pool to blame, or the platform?

Owns the decision of evidence.md 4.3 as a function of values. Relative meters (pairs, shares) compare with the
baseline already and decide alone; an absolute meter that trips asks its twin, the same guard in the same bucket on
the baseline pool. Called by the judge for every trip.
"""

from enum import StrEnum

import msgspec

TWIN_QUIET_S = 3600.0
TWIN_CALM_BELOW = 1e-3


class Response(StrEnum):
    """What a trip leads to."""

    ROLL_BACK = "roll_back"
    HOLD = "hold"


class TwinStanding(msgspec.Struct, frozen=True):
    """How the twin stands: its money, and when it last tripped (None = never)."""

    total: float
    last_trip_s: float | None


class TripDecision(msgspec.Struct, frozen=True):
    """What to do and why, in words for the person who is paged."""

    response: Response
    reason: str


def decide_trip(*, relative: bool, twin: TwinStanding | None, now_s: float) -> TripDecision:
    """Response to a trip; ``twin`` is None if the baseline has no such series."""
    if relative:
        return TripDecision(Response.ROLL_BACK, "the guard compares with the baseline itself")
    if twin is None:
        return TripDecision(
            Response.ROLL_BACK, "the baseline is not watched by this guard, so nothing speaks for an incident"
        )
    if twin.last_trip_s is not None and now_s - twin.last_trip_s <= TWIN_QUIET_S:
        ago = now_s - twin.last_trip_s
        return TripDecision(Response.HOLD, f"the baseline tripped {ago:.0f} s ago: an incident of the platform")
    if twin.total >= TWIN_CALM_BELOW:
        return TripDecision(
            Response.HOLD,
            f"the baseline's suspicion is {twin.total:.2g}, at least {TWIN_CALM_BELOW}: an incident of the platform",
        )
    return TripDecision(Response.ROLL_BACK, f"the baseline is calm (suspicion {twin.total:.2g})")
