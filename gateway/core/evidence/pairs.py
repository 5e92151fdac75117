"""Pairs: the loss of a candidate against the baseline on the same prompt.

Owns what a missing leg means (evidence.md 4.1): a failed leg is a value, never dropped, because dropping it would
hide exactly the failures; a leg that could not be scored has no value for the suspicion meter and the worst one for
promotion. Pure arithmetic on scores in [0, 1]; called by the scorer's side of control and by series. Must not know
meters.
"""

from enum import StrEnum

import msgspec


class Missing(StrEnum):
    """Why a leg has no score."""

    FAILED = "fail"
    """The pool failed, timed out, or answered something invalid or empty."""
    UNSCORED = "unscored"
    """The pool answered, but the scorer broke."""


Leg = float | Missing


class PairLoss(msgspec.Struct, frozen=True):
    """Loss of one pair, in [-1, 1], positive when the candidate is worse.

    ``trip`` goes to the suspicion meter and is None if there is nothing to stake; ``promotion`` goes to the evidence
    for advancing. ``unscored`` pairs count as bad in a *missing* rate guard, ``both_failed`` ones in the error
    guards.
    """

    trip: float | None
    promotion: float
    unscored: bool = False
    both_failed: bool = False


WORST_LOSS = 1.0


def pair_loss(baseline: Leg, candidate: Leg) -> PairLoss:
    """Loss of a pair from its two legs; raises ValueError for scores outside [0, 1]."""
    if baseline is Missing.UNSCORED or candidate is Missing.UNSCORED:
        return PairLoss(trip=None, promotion=WORST_LOSS, unscored=True)
    # Never conditional on the baseline having succeeded: two equal pools would then look like a loss.
    loss = _score(baseline) - _score(candidate)
    both_failed = baseline is Missing.FAILED and candidate is Missing.FAILED
    return PairLoss(trip=loss, promotion=loss, both_failed=both_failed)


def three_leg_loss(noise: Leg | None, candidate: Leg) -> PairLoss | None:
    """Loss for scores that measure agreement with the baseline's own answer.

    ``noise`` is the agreement of the baseline with a second run of itself, ``candidate`` that of the candidate with the
    baseline. Without a noise leg there is no loss: sampling noise alone would look like one.
    """
    return None if noise is None else pair_loss(noise, candidate)


def in_hundredths(loss: float) -> float:
    """Loss rounded to hundredths, so that a block holds at most 201 different values."""
    return round(loss * 100.0) / 100.0 + 0.0


class GapScale(msgspec.Struct, frozen=True):
    """Scale that maps an unbounded gap (log-likelihood per token) into [-1, 1].

    ``tolerance`` and ``noise_sd`` (of the baseline against itself) are in the gap's unit. Too small a scale clips the
    loss away, too large a one wastes samples; three times the larger of the two is the measured compromise.
    """

    tolerance: float
    noise_sd: float

    def __post_init__(self) -> None:
        if self.tolerance <= 0.0 or self.noise_sd < 0.0:
            raise ValueError(f"need tolerance > 0 and noise_sd >= 0, got {self.tolerance!r} and {self.noise_sd!r}")

    @property
    def span(self) -> float:
        """Gap that counts as the whole loss of 1."""
        return 3.0 * max(self.tolerance, self.noise_sd)

    @property
    def limit(self) -> float:
        """Tolerance of the pair guard over scaled gaps."""
        return self.tolerance / self.span

    def loss(self, gap: float) -> float:
        """Scaled and clipped loss of one pair."""
        return min(1.0, max(-1.0, gap / self.span))


def _score(leg: Leg) -> float:
    if isinstance(leg, Missing):
        return 0.0
    if not 0.0 <= leg <= 1.0:
        raise ValueError(f"a score must lie in [0, 1], got {leg!r}")
    return leg
