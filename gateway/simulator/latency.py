"""How long something takes, as a distribution that is sampled by its inverse.

Owns the three shapes a latency or a length may be given in. Pure: the uniform number is an argument. ``service`` and
``answer`` call it.
"""

from bisect import bisect_right
from itertools import pairwise
from statistics import NormalDist

import msgspec

_STANDARD = NormalDist()


class Distribution(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One of: ``constant``; lognormal by ``median`` and ``sigma``; ``quantiles`` ({"0.5": 0.02, "0.99": 0.4}).

    Seconds where it describes time, tokens where it describes lengths. Between quantiles values are interpolated
    linearly, outside the given ones the nearest holds. ``ValueError`` when none or several shapes are given.
    """

    constant: float | None = None
    median: float | None = None
    sigma: float = 0.5
    quantiles: dict[str, float] = {}

    def __post_init__(self) -> None:
        shapes = (self.constant is not None) + (self.median is not None) + bool(self.quantiles)
        if shapes != 1:
            raise ValueError("give exactly one of constant, median (with sigma), quantiles")
        values = [value for value in (self.constant, self.median, *self.quantiles.values()) if value is not None]
        if min(values) < 0 or self.sigma < 0:
            raise ValueError("a distribution holds no negative values")
        if self.median == 0:
            raise ValueError("a lognormal distribution needs a median above zero; use constant: 0")
        points = self.points()
        if any(not 0 <= at <= 1 for at, _ in points):
            raise ValueError("quantiles are between 0 and 1, for example '0.99'")
        if any(later < earlier for (_, earlier), (_, later) in pairwise(points)):
            raise ValueError("quantiles must not fall")

    def points(self) -> list[tuple[float, float]]:
        """The quantiles as (probability, value), ascending; empty for the other shapes."""
        return sorted((float(at), value) for at, value in self.quantiles.items())

    def sample(self, uniform: float) -> float:
        """The value at probability ``uniform`` (0 ≤ u < 1)."""
        if self.constant is not None:
            return self.constant
        if self.median is not None:
            normal = _STANDARD.inv_cdf(min(max(uniform, 1e-9), 1 - 1e-9))
            return self.median * float(2.718281828459045 ** (self.sigma * normal))
        points = self.points()
        index = bisect_right(points, uniform, key=lambda point: point[0])
        if index == 0:
            return points[0][1]
        if index == len(points):
            return points[-1][1]
        (low, start), (high, end) = points[index - 1], points[index]
        return start + (end - start) * (uniform - low) / (high - low)
