"""Anytime-valid intervals for screens and reports; no decision is ever made from them.

Owns the two intervals of evidence.md 10: a rate by a Beta mixture, and the mean of bounded values by a predictable
plug-in empirical-Bernstein bound. Both hold at every moment at once, so a person may look as often as they like.
Called by series and by reports.
"""

from collections.abc import Callable
from math import inf, lgamma, log, log1p, sqrt

import msgspec

_LOG_BETA_HALF_HALF = 2.0 * lgamma(0.5) - lgamma(1.0)
_BISECTIONS = 200


class Interval(msgspec.Struct, frozen=True):
    """Lower and upper end."""

    lower: float
    upper: float


def rate_interval(number: int, bad: int, alpha: float = 0.05) -> Interval:
    """Interval at level ``1 - alpha`` for a rate, from ``bad`` of ``number`` outcomes."""
    if not 0 <= bad <= number or not 0.0 < alpha < 1.0:
        raise ValueError(f"need 0 <= bad <= number and 0 < alpha < 1, got {bad!r} of {number!r} at {alpha!r}")
    if number == 0:
        return Interval(0.0, 1.0)
    good = number - bad
    mixture = lgamma(bad + 0.5) + lgamma(good + 0.5) - lgamma(number + 1.0) - _LOG_BETA_HALF_HALF
    bound = log(1.0 / alpha)

    def outside(rate: float) -> bool:
        return mixture - bad * log(rate) - good * log1p(-rate) >= bound

    middle = bad / number
    lower = 0.0 if bad == 0 else _border(outside, 0.0, middle)
    upper = 1.0 if good == 0 else _border(outside, 1.0, middle)
    return Interval(lower, upper)


def _border(outside: Callable[[float], bool], far: float, near: float) -> float:
    """Bisection between a point outside the interval and one inside."""
    for _ in range(_BISECTIONS):
        middle = 0.5 * (far + near)
        if middle in (far, near):
            break
        if outside(middle):
            far = middle
        else:
            near = middle
    return near


class MeanState(msgspec.Struct, frozen=True):
    """Running sums of a mean interval; field names follow the formula in evidence.md 10."""

    number: int = 0
    sum_x: float = 0.0
    spread: float = 0.25
    sum_bet: float = 0.0
    sum_bet_x: float = 0.0
    sum_cost: float = 0.0


class MeanInterval:
    """Interval for the mean of values in [0, 1], value by value, at a fixed level ``1 - alpha``."""

    __slots__ = ("_bound", "alpha", "state")

    def __init__(self, alpha: float = 0.05) -> None:
        if not 0.0 < alpha < 1.0:
            raise ValueError(f"alpha must lie strictly between 0 and 1, got {alpha!r}")
        self.alpha = alpha
        self._bound = log(2.0 / alpha)
        self.state = MeanState()

    def add(self, x: float) -> None:
        """Count one value."""
        old = self.state
        number = old.number + 1
        mean_before = (0.5 + old.sum_x) / (old.number + 1)
        bet = min(0.5, sqrt(2.0 * self._bound / (old.spread * log1p(number))))
        sum_x = old.sum_x + x
        mean_after = (0.5 + sum_x) / (number + 1)
        self.state = MeanState(
            number=number,
            sum_x=sum_x,
            spread=old.spread + (x - mean_after) ** 2,
            sum_bet=old.sum_bet + bet,
            sum_bet_x=old.sum_bet_x + bet * x,
            sum_cost=old.sum_cost + (x - mean_before) ** 2 * (-log1p(-bet) - bet),
        )

    def interval(self) -> Interval:
        """Ends, not clipped to [0, 1] (few values say so by ends far outside); infinite without values."""
        state = self.state
        if state.number == 0:
            return Interval(-inf, inf)
        centre = state.sum_bet_x / state.sum_bet
        half = (self._bound + state.sum_cost) / state.sum_bet
        return Interval(centre - half, centre + half)

    def loss_interval(self) -> Interval:
        """The same on the scale of losses, for values added as ``(loss + 1) / 2``."""
        interval = self.interval()
        return Interval(2.0 * interval.lower - 1.0, 2.0 * interval.upper - 1.0)
