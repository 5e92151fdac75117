"""The brake: when many buckets trip together, nothing else moves until it is known why.

Owns the question whether the trips of the last minute look like one cause, and whether the baselines say that the
cause is not the pool. The brake never stops a rollback of a pool that is to blame; it stops every advance and, where
the baselines suffer as well, turns trips of absolute guards into holds. Pure: time and trips are arguments.
"""

from collections import deque

import msgspec

from gateway.core.evidence.setting import moved

WINDOW_S = 60.0
LEAST_BUCKETS = 3
LEAST_SHARE = 0.25
"""Three buckets of four are a pattern; three of a hundred may be three bad buckets."""
CALM_S = 900.0


class Tripped(msgspec.Struct, frozen=True):
    """One tripped bucket. ``baseline_troubled``: the same guard on its baseline is suspicious as well."""

    at_s: float
    identity: str
    bucket: str
    baseline_troubled: bool


class Assessment(msgspec.Struct, frozen=True):
    """``engaged``: many tripped together. ``platform``: the baselines suffer too, so the pools are not to blame."""

    engaged: bool
    platform: bool
    reason: str


class Brake:
    """Trips of the last ``WINDOW_S`` seconds."""

    __slots__ = ("_trips", "engaged_s")

    def __init__(self) -> None:
        self._trips: deque[Tripped] = deque()
        self.engaged_s: float | None = None

    def note(self, trip: Tripped) -> None:
        """One more."""
        self._trips.append(trip)

    def assess(self, now_s: float, running: int) -> Assessment:
        """What the last minute looks like; ``running`` buckets could have tripped."""
        while self._trips and self._trips[0].at_s < now_s - WINDOW_S:
            self._trips.popleft()
        buckets = {(trip.identity, trip.bucket): trip for trip in self._trips}
        many = len(buckets) >= LEAST_BUCKETS and len(buckets) >= LEAST_SHARE * max(running, 1)
        troubled = sum(trip.baseline_troubled for trip in buckets.values())
        if many:
            self.engaged_s = now_s
        platform = many and 2 * troubled >= len(buckets)
        blame = "their baselines suffer too: an incident of the platform" if platform else "their baselines are calm"
        return Assessment(many, platform, f"{len(buckets)} of {running} buckets tripped within a minute; {blame}")

    def shift(self, was_s: float, now_s: float) -> None:
        """The clock was set from one moment to another."""
        self._trips = deque(msgspec.structs.replace(trip, at_s=moved(trip.at_s, was_s, now_s)) for trip in self._trips)
        if self.engaged_s is not None:
            self.engaged_s = moved(self.engaged_s, was_s, now_s)

    def over(self, now_s: float) -> bool:
        """Whether it was on and has been calm for long enough; asking releases it."""
        if self.engaged_s is None or now_s - self.engaged_s < CALM_S:
            return False
        self.engaged_s = None
        return True
