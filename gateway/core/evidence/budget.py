"""The budget of false rollbacks: one number a year for the whole fleet, split into drips and lumps.

Owns the split (evidence.md 5), the yearly ledger of lumps and their shrinking. The promise "at most B false
rollbacks a year" is nothing but the sum of what is put in, so nothing may enter a meter that did not come from here.
Called by the judge; time is an argument.
"""

from math import floor

import msgspec

from gateway.core.evidence.setting import moved

YEAR_S = 365.25 * 86_400.0

STAGE_LUMP = 1e-5
"""Default lump at a stage start: costs ln(1e5) = 11.5 nats of evidence on a fresh canary."""
PAIR_LUMP = 1e-4
"""Pairs cost most evidence per nat; granted at shadow start and at the first live stage only."""

_LUMPS_LEFT = 10.0
"""A lump is at most a tenth of what is left, so near the cap lumps shrink step by step and never reach zero."""


class Budget(msgspec.Struct, frozen=True):
    """Accepted expected false rollbacks per year, over ``slots`` series."""

    false_rollbacks_per_year: float = 1.0
    slots: int = 1024

    def __post_init__(self) -> None:
        if self.false_rollbacks_per_year <= 0.0 or self.slots < 1:
            raise ValueError(
                "a budget needs false_rollbacks_per_year > 0 and slots >= 1, got "
                f"{self.false_rollbacks_per_year!r} and {self.slots!r}"
            )

    @property
    def lumps_per_year(self) -> float:
        """Half of the budget: money for stage starts."""
        return self.false_rollbacks_per_year / 2.0

    @property
    def drip_per_s(self) -> float:
        """Money per second and series; the other half, in equal slots."""
        return drip_per_s(self.false_rollbacks_per_year / 2.0, self.slots)


def drip_per_s(drips_per_year: float, slots: int) -> float:
    """Money per second that each of ``slots`` series gets out of ``drips_per_year``."""
    return drips_per_year / slots / YEAR_S


class LedgerState(msgspec.Struct, frozen=True):
    """Lumps granted in year number ``year`` (counted from second 0)."""

    year: int = 0
    granted: float = 0.0


class Ledger:
    """Lumps of the current year; at its cap lumps shrink, nothing else happens."""

    __slots__ = ("_state", "lumps_per_year")

    def __init__(self, lumps_per_year: float) -> None:
        self.lumps_per_year = lumps_per_year
        self._state = LedgerState()

    def grant(self, asked: float, now_s: float) -> float:
        """Take a lump out of this year's budget; returns what is granted, at most ``asked``."""
        if asked < 0.0:
            raise ValueError(f"a lump cannot be negative, got {asked!r}")
        self._turn_year(now_s)
        left = max(0.0, self.lumps_per_year - self._state.granted)
        granted = min(asked, left / _LUMPS_LEFT)
        self._state = LedgerState(self._state.year, self._state.granted + granted)
        return granted

    def granted_this_year(self, now_s: float) -> float:
        """Sum of the lumps granted in the year that holds ``now_s``."""
        self._turn_year(now_s)
        return self._state.granted

    def state(self) -> LedgerState:
        """What must survive a restart."""
        return self._state

    def shift(self, was_s: float, now_s: float) -> None:
        """The clock was set: the year is another one, what was granted in it stays granted."""
        year = moved(self._state.year, floor(was_s / YEAR_S), floor(now_s / YEAR_S))
        self._state = LedgerState(year, self._state.granted)

    def restore(self, state: LedgerState) -> None:
        """Continue from a stored state."""
        self._state = state

    def _turn_year(self, now_s: float) -> None:
        year = floor(now_s / YEAR_S)
        if year > self._state.year:
            self._state = LedgerState(year, 0.0)
