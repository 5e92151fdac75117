"""Latency sketches: quantiles of any number of durations in a few kilobytes, that merge without loss.

Owns the bins: 64 to each power of two, so a value is known to 0.8 % (`ACCURACY`), from a microsecond to half a year.
A sketch is a bag of integers: merging adds counts, so any order of merging, over workers, replicas or time, gives the
same bytes. No logarithm is taken: the bin is read off the float's own exponent and mantissa, the same on every machine.
Called by control with outcomes, by the report, and by whoever merges what replicas stored.
"""

import struct
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import repeat
from math import ceil, frexp, ldexp, lgamma, log
from operator import rshift
from typing import NamedTuple, Self

import msgspec

STEPS = 64
"""Bins to each power of two."""
ACCURACY = 1.0 / (2 * STEPS)
"""Largest relative error of a quantile, as bins are told by their middle: half a bin over its lower end."""
LEAST_S = 2.0**-20
MOST_S = 2.0**24
"""Durations beyond these count as these."""
_LOWEST = -20 * STEPS
_HIGHEST = 24 * STEPS
_PER_SECOND = 1_000_000
# Of a double's 64 bits these are below the exponent and the top of the mantissa that tell the bins apart.
_BITS_BELOW = 52 - 6
_BIAS = 1023 * STEPS

_LOG_BETA_HALF_HALF = 2.0 * lgamma(0.5) - lgamma(1.0)


class Span(NamedTuple):
    """Ends of an interval in seconds; ``inf`` where nothing bounds it."""

    lower: float
    upper: float


class Bin(NamedTuple):
    """Durations from ``lower`` (included) to ``upper`` (not included), in seconds."""

    lower: float
    upper: float
    number: int


class State(msgspec.Struct, frozen=True, array_like=True):
    """What a sketch is, in the one form that equal sketches share. Sums and ends are whole microseconds.

    ``bins`` alternates bin number and count, in ascending order.
    """

    count: int = 0
    sum_us: int = 0
    least_us: int = -1
    most_us: int = -1
    bins: tuple[int, ...] = ()


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(State)


class Sketch:
    """Counts of durations by bin. ``count`` durations so far; ``bins`` maps bin numbers to counts."""

    __slots__ = ("bins", "count", "least_us", "most_us", "sum_us")

    def __init__(self) -> None:
        self.bins: dict[int, int] = {}
        self.count = 0
        self.sum_us = 0
        self.least_us = -1
        self.most_us = -1

    def add(self, seconds: float) -> None:
        """Count one duration, in seconds; below zero is zero."""
        if LEAST_S <= seconds < MOST_S:
            mantissa, exponent = frexp(seconds)
            number = (exponent - 1) * STEPS + int((mantissa - 0.5) * (2 * STEPS))
        elif seconds >= MOST_S:
            number, seconds = _HIGHEST, MOST_S
        else:
            number, seconds = _LOWEST, max(seconds, 0.0)
        self.bins[number] = self.bins.get(number, 0) + 1
        micros = int(seconds * _PER_SECOND + 0.5)
        self.count += 1
        self.sum_us += micros
        if micros > self.most_us:  # noqa: PLR1730 - the call of max costs more than the rest of this method's ends
            self.most_us = micros
        if micros < self.least_us or self.least_us < 0:
            self.least_us = micros

    def extend(self, durations: Sequence[float]) -> None:
        """``add`` each; for hundreds at once it takes half the time, and a tenth for zeros."""
        zeros = durations.count(0.0)
        if zeros:
            durations = [seconds for seconds in durations if seconds]
            self._count(_LOWEST, zeros)
            self._measure(zeros, 0, 0, 0)
        if not durations:
            return
        if min(durations) < LEAST_S or max(durations) >= MOST_S:
            for seconds in durations:
                self.add(seconds)
            return
        bits = struct.unpack(f"<{len(durations)}q", struct.pack(f"<{len(durations)}d", *durations))
        for upper, count in Counter(map(rshift, bits, repeat(_BITS_BELOW))).items():
            self._count(upper - _BIAS, count)
        micros = [int(seconds * _PER_SECOND + 0.5) for seconds in durations]
        self._measure(len(micros), sum(micros), min(micros), max(micros))

    def _count(self, number: int, count: int) -> None:
        self.bins[number] = self.bins.get(number, 0) + count

    def _measure(self, count: int, sum_us: int, least_us: int, most_us: int) -> None:
        self.count += count
        self.sum_us += sum_us
        self.most_us = max(self.most_us, most_us)
        self.least_us = least_us if self.least_us < 0 else min(self.least_us, least_us)

    def merge(self, other: "Sketch") -> None:
        """Count everything that ``other`` counted."""
        for number, count in other.bins.items():
            self._count(number, count)
        if other.count:
            self._measure(other.count, other.sum_us, other.least_us, other.most_us)

    @property
    def mean(self) -> float | None:
        """Mean in seconds; None without durations."""
        return self.sum_us / _PER_SECOND / self.count if self.count else None

    @property
    def least(self) -> float | None:
        """Shortest duration in seconds, to the microsecond."""
        return self.least_us / _PER_SECOND if self.count else None

    @property
    def most(self) -> float | None:
        """Longest duration in seconds, to the microsecond."""
        return self.most_us / _PER_SECOND if self.count else None

    def quantile(self, share: float) -> float | None:
        """Smallest duration that at least ``share`` of all do not exceed, to within ``ACCURACY``; None without any."""
        if not self.count:
            return None
        # The slack keeps 0.95 * 20 = 19.000000000000004 from asking for the 20th.
        return self._at_rank(max(1, ceil(share * self.count - 1e-9)))

    def quantiles(self, shares: Sequence[float]) -> list[float | None]:
        """``quantile`` of each share."""
        return [self.quantile(share) for share in shares]

    def quantile_interval(self, share: float, alpha: float = 0.05) -> Span:
        """Interval for the quantile at level ``1 - alpha`` that holds at every look (evidence.md 10).

        A duration x is inside as long as the anytime-valid interval of P(X <= x) holds ``share``. Without enough
        durations an end is 0 or infinite.
        """
        if not self.count:
            return Span(0.0, float("inf"))
        low, high = _ranks(self.count, share, alpha)
        lower = 0.0 if low < 1 else self._edge_at_rank(low)[0]
        upper = float("inf") if high >= self.count else self._edge_at_rank(high + 1)[1]
        return Span(lower, upper)

    def spans(self) -> Iterator[Bin]:
        """The filled bins in ascending order, for plots."""
        for number in sorted(self.bins):
            lower, upper = edges_of(number)
            yield Bin(lower, upper, self.bins[number])

    def encode(self) -> bytes:
        """The sketch as bytes; equal for equal counts, whatever order they came in."""
        flat = tuple(value for number in sorted(self.bins) for value in (number, self.bins[number]))
        return _ENCODER.encode(State(self.count, self.sum_us, self.least_us, self.most_us, flat))

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """What ``encode`` gave. Raises ``msgspec.MsgspecError`` for anything else."""
        state = _DECODER.decode(data)
        if len(state.bins) % 2 or state.count != sum(state.bins[1::2]):
            raise msgspec.ValidationError("the counts of a sketch do not add up")
        made = cls()
        made.bins = dict(zip(state.bins[::2], state.bins[1::2], strict=True))
        made.count, made.sum_us = state.count, state.sum_us
        made.least_us, made.most_us = state.least_us, state.most_us
        return made

    def _at_rank(self, rank: int) -> float:
        lower, upper = self._edge_at_rank(rank)
        middle = 0.5 * (lower + upper)
        return min(max(middle, self.least_us / _PER_SECOND), self.most_us / _PER_SECOND)

    def _edge_at_rank(self, rank: int) -> tuple[float, float]:
        """Edges of the bin that holds the ``rank``-th shortest duration, from 1."""
        seen = 0
        for number in sorted(self.bins):
            seen += self.bins[number]
            if seen >= rank:
                return edges_of(number)
        return edges_of(_HIGHEST)


def edges_of(number: int) -> tuple[float, float]:
    """Where a bin begins and ends, in seconds."""
    exponent, step = divmod(number, STEPS)
    lower = ldexp(1.0 + step / STEPS, exponent)
    upper = ldexp(1.0 + (step + 1) / STEPS, exponent)
    return (0.0 if number == _LOWEST else lower), upper


def _ranks(number: int, share: float, alpha: float) -> tuple[int, int]:
    """Least and greatest k for which a share of ``share`` is inside the anytime-valid interval of k of ``number``."""
    bound = log(1.0 / alpha)
    per_hit, per_miss = log(share), log(1.0 - share)
    constant = lgamma(number + 1.0) + _LOG_BETA_HALF_HALF + bound

    def outside(hits: int) -> bool:
        mixture = lgamma(hits + 0.5) + lgamma(number - hits + 0.5)
        return mixture - hits * per_hit - (number - hits) * per_miss >= constant

    middle = min(number, max(0, round(share * number)))
    return _border(outside, middle, -1), _border(outside, middle, number + 1)


def _border(outside: Callable[[int], bool], inside: int, far: int) -> int:
    """The last whole number inside, between one inside and one beyond (``far``, never asked)."""
    step = 1 if far > inside else -1
    low, high = 0, abs(far - inside)
    while high - low > 1:
        middle = (low + high) // 2
        if outside(inside + step * middle):
            high = middle
        else:
            low = middle
    return inside + step * low
