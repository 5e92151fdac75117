"""Feeds simulated outcomes to the engine's own meter and says where it trips first.

Checking after every request costs a feed per request; but between two bad outcomes every bet only loses, so feeding
the good ones before a bad one together with it, as one block, trips at exactly the same request (``tests`` prove it).
"""

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from gateway.core.evidence.feeds import Feed, Group, log_factors
from gateway.core.evidence.ladders import Ladder
from gateway.core.evidence.meter import Meter

Counts = dict[float, int]


def first_trip(ladder: Ladder, feed: Feed, lump: float, blocks: Iterable[Counts]) -> int | None:
    """Number (from 0) of the block at which a fresh meter with a lump and no drip trips, or None."""
    meter = Meter(len(ladder.bets), 0.0, 0.0)
    meter.grant(0, lump)
    for number, counts in enumerate(blocks):
        if meter.feed(number, float(number), log_factors((Group(ladder, counts),), feed)).tripped:
            return number
    return None


def runs_to_bad(bad: NDArray[np.bool_]) -> Iterator[Counts]:
    """Blocks that end at each bad request and hold the good ones before it; what follows the last cannot trip."""
    previous = -1
    for index in np.flatnonzero(bad).tolist():
        good = index - previous - 1
        yield {0.0: good, 1.0: 1} if good else {1.0: 1}
        previous = index


def runs_to_share(shares: NDArray[np.float64]) -> Iterator[Counts]:
    """The same for shares: zeros only lose, so they are fed with the share after them."""
    zeros = 0
    for share in shares.tolist():
        if share:
            yield {0.0: zeros, share: 1} if zeros else {share: 1}
            zeros = 0
        else:
            zeros += 1


def equal_blocks(bad: NDArray[np.bool_], size: int) -> Iterator[Counts]:
    """Blocks of ``size`` requests; what does not fill a block is left over."""
    whole = len(bad) // size
    for count in bad[: whole * size].reshape(whole, size).sum(axis=1).tolist():
        yield {0.0: size - count, 1.0: count}
