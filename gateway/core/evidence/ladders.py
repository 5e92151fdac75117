"""Ladders of bets: how much a meter stakes on each assumption of how bad a pool is.

Owns the numbers of evidence.md 2.3 and 6 and nothing else. A bet ``b`` on a series with limit ``m`` multiplies its
stake by ``1 + b (v - m)`` for every outcome ``v``; at mean ``m`` that is fair (expectation 1), whatever the bet.
Positive bets win on outcomes worse than the limit (suspicion), negative ones on better outcomes (promotion), so both
directions share one formula. Called by feeds, meters and promotion; must not know series, blocks or time.
"""

from functools import lru_cache
from math import log1p

import msgspec

RATE_ODDS = (1.6, 3.0, 8.0, 30.0, 150.0)
"""Odds ratios of the assumed rate to the limit: from 'slightly above' to 'broken'."""

PAIR_FRACTIONS = (0.05, 0.12, 0.30, 0.60, 0.95)
"""Share of the stake that a pair can cost at worst; never 1, so one outcome cannot ruin a bet for ever."""

ALMOST_ALL_IN = 0.95
"""Cap of rate bets, for the same reason: a good outcome always leaves 5 % of the stake."""

_DISTINCT_LIMITS = 4096
"""Share limits follow realised traffic and vary from block to block; the cache is bounded and only saves work."""


class Ladder(msgspec.Struct, frozen=True, gc=False):
    """Bets that run side by side against one limit.

    ``lowest`` and ``highest`` bound the outcomes for which every factor is positive. ``log_zero`` and ``log_one`` are
    the log factors of the outcomes 0 and 1, which nearly all traffic consists of. ``targets`` names the assumed rates
    of a rate ladder.
    """

    limit: float
    bets: tuple[float, ...]
    lowest: float
    highest: float
    log_zero: tuple[float, ...]
    log_one: tuple[float, ...]
    targets: tuple[float, ...] = ()

    def log_factors(self, value: float) -> tuple[float, ...]:
        """Natural log of ``1 + b (value - limit)`` for every bet ``b``."""
        if value == 0.0:
            return self.log_zero
        if value == 1.0:
            return self.log_one
        return tuple(log1p(bet * (value - self.limit)) for bet in self.bets)


def _ladder(limit: float, bets: tuple[float, ...], lowest: float, targets: tuple[float, ...] = ()) -> Ladder:
    return Ladder(
        limit=limit,
        bets=bets,
        lowest=lowest,
        highest=1.0,
        log_zero=tuple(log1p(-bet * limit) for bet in bets),
        log_one=tuple(log1p(bet * (1.0 - limit)) for bet in bets),
        targets=targets,
    )


def _check_rate_limit(limit: float) -> None:
    if not 0.0 < limit < 1.0:
        raise ValueError(
            f"a rate limit must lie strictly between 0 and 1, got {limit!r}: 0 and 1 leave nothing to bet on"
        )


def _check_tolerance(tolerance: float) -> None:
    if not 0.0 <= tolerance < 1.0:
        raise ValueError(f"a pair tolerance must be at least 0 and below 1, got {tolerance!r}")


def _rate_at_odds(odds: float) -> float:
    return odds / (1.0 + odds)


@lru_cache(maxsize=_DISTINCT_LIMITS)
def rate_ladder(limit: float) -> Ladder:
    """Six bets that the bad rate is above ``limit`` (0 < limit < 1); outcomes in [0, 1], 1 = bad."""
    _check_rate_limit(limit)
    odds = limit / (1.0 - limit)
    cap = limit + ALMOST_ALL_IN * (1.0 - limit)
    targets = (*(min(_rate_at_odds(odds * ratio), cap) for ratio in RATE_ODDS), cap)
    bets = tuple((target - limit) / (limit * (1.0 - limit)) for target in targets)
    return _ladder(limit, bets, 0.0, targets)


@lru_cache(maxsize=_DISTINCT_LIMITS)
def pair_ladder(tolerance: float) -> Ladder:
    """Five bets that the mean loss is above ``tolerance`` (0 <= tolerance < 1); losses in [-1, 1]."""
    _check_tolerance(tolerance)
    return _ladder(tolerance, tuple(share / (1.0 + tolerance) for share in PAIR_FRACTIONS), -1.0)


@lru_cache(maxsize=_DISTINCT_LIMITS)
def promotion_rate_ladder(limit: float) -> Ladder:
    """Five bets that the bad rate is BELOW ``limit``: the rate ladder turned round."""
    _check_rate_limit(limit)
    odds = limit / (1.0 - limit)
    targets = tuple(_rate_at_odds(odds / ratio) for ratio in RATE_ODDS)
    bets = tuple((target - limit) / (limit * (1.0 - limit)) for target in targets)
    return _ladder(limit, bets, 0.0, targets)


@lru_cache(maxsize=_DISTINCT_LIMITS)
def promotion_pair_ladder(tolerance: float) -> Ladder:
    """Five bets that the mean loss is BELOW ``tolerance``."""
    _check_tolerance(tolerance)
    return _ladder(tolerance, tuple(-share / (1.0 - tolerance) for share in PAIR_FRACTIONS), -1.0)
