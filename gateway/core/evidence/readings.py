"""Readings: what a closed block says, by the form of the guard.

Owns the step from lanes and counts to groups with a ladder each: the limit of a rate, each request's own limit of a
slice, the share limit that realised traffic sets, the two uses of an unscored pair. Called by series; must not know
meters or time.
"""

from enum import StrEnum

import msgspec

from gateway.core.evidence.blocks import BAD, BASELINE, CANDIDATE, GOOD, ONLY_LANE, OpenBlock
from gateway.core.evidence.feeds import Group
from gateway.core.evidence.ladders import (
    PAIR_FRACTIONS,
    RATE_ODDS,
    pair_ladder,
    promotion_pair_ladder,
    promotion_rate_ladder,
    rate_ladder,
)
from gateway.core.evidence.pairs import WORST_LOSS
from gateway.core.evidence.shares import share_limit


class Form(StrEnum):
    """What a guard asks; evidence.md 4."""

    RATE = "rate"
    """Rate of bad outcomes (0 or 1) against the limit."""
    SESSION = "session"
    """Mean of votes in [0, 1], one per conversation, against the limit."""
    PAIR = "pair"
    """Mean loss in [-1, 1] against the tolerance."""
    SHARE = "share"
    """Candidate's part in the failures of both arms against its part of the traffic; the lane is the arm."""
    SLICE = "slice"
    """Outcomes in [0, 1] of many buckets, each against its own limit; the lane is the limit."""

    @property
    def relative(self) -> bool:
        """Whether the form compares with the baseline itself."""
        return self in (Form.PAIR, Form.SHARE)

    @property
    def fractional(self) -> bool:
        """Whether its interval is that of a mean rather than of a rate."""
        return self in (Form.PAIR, Form.SESSION)

    @property
    def lowest(self) -> float:
        """Smallest legal value; the largest is 1."""
        return -1.0 if self is Form.PAIR else 0.0

    def check(self, value: float, lane: float) -> None:
        """Raise ValueError for an outcome that this form cannot bet on."""
        if not self.lowest <= value <= 1.0 or (self in (Form.RATE, Form.SHARE) and value not in (GOOD, BAD)):
            raise ValueError(f"{value!r} is no outcome of a {self} guard")
        if self is Form.SLICE:
            legal = 0.0 < lane < 1.0
        elif self is Form.SHARE:
            legal = lane in (CANDIDATE, BASELINE)
        else:
            legal = lane == ONLY_LANE
        if not legal:
            raise ValueError(f"{lane!r} is no lane of a {self} guard: slices need the request's limit, shares the arm")


class Reading(msgspec.Struct, frozen=True, gc=False):
    """A block as groups for the suspicion meter and for promotion; ``bad`` sums the values of ``number`` outcomes."""

    groups: tuple[Group, ...]
    promotion_groups: tuple[Group, ...]
    number: int
    bad: float


def rungs_of(form: Form) -> tuple[int, int]:
    """Number of bets on suspicion and on promotion."""
    pairs = len(PAIR_FRACTIONS)
    return (pairs, pairs) if form is Form.PAIR else (len(RATE_ODDS) + 1, len(RATE_ODDS))


def read_block(form: Form, limit: float, tolerated_ratio: float, block: OpenBlock) -> Reading:
    """What ``block`` says under a guard of this form."""
    if form is Form.PAIR:
        return _read_pairs(limit, block)
    if form is Form.SHARE:
        return _read_share(tolerated_ratio, block)
    if form is Form.SLICE:
        return _read_slice(block)
    counts = {value: count for (_, value), count in block.cells.items()}
    return _reading((Group(rate_ladder(limit), counts),), (Group(promotion_rate_ladder(limit), counts),))


def _reading(groups: tuple[Group, ...], promotion_groups: tuple[Group, ...]) -> Reading:
    number, bad = 0, 0.0
    for group in groups:
        number += sum(group.counts.values())
        bad += sum(value * count for value, count in sorted(group.counts.items()))
    return Reading(groups, promotion_groups, number, bad)


def _read_pairs(tolerance: float, block: OpenBlock) -> Reading:
    counts = {value: count for (_, value), count in block.cells.items()}
    promotion = Group(promotion_pair_ladder(tolerance), counts)
    if block.unscored:
        # Nothing to stake for suspicion, the worst loss for promotion: a broken scorer must not promote.
        worst = {**counts, WORST_LOSS: counts.get(WORST_LOSS, 0) + block.unscored}
        promotion = Group(promotion.ladder, worst)
    return _reading((Group(pair_ladder(tolerance), counts),), (promotion,))


def _read_slice(block: OpenBlock) -> Reading:
    by_limit: dict[float, dict[float, int]] = {}
    for (limit, value), count in sorted(block.cells.items()):
        by_limit.setdefault(limit, {})[value] = count
    return _reading(
        tuple(Group(rate_ladder(limit), counts) for limit, counts in by_limit.items()),
        tuple(Group(promotion_rate_ladder(limit), counts) for limit, counts in by_limit.items()),
    )


def _read_share(tolerated_ratio: float, block: OpenBlock) -> Reading:
    known = block.resolved()
    # An open request was dispatched all the same: it belongs to its arm's traffic.
    traffic = {lane: max(known.get(lane, 0), block.announced.get(lane, 0)) for lane in (CANDIDATE, BASELINE)}
    limit = share_limit(traffic[CANDIDATE], traffic[BASELINE], tolerated_ratio)
    blamed = block.cells.get((CANDIDATE, BAD), 0)
    other = block.cells.get((BASELINE, BAD), 0)
    if limit is None or blamed + other == 0:
        return Reading((), (), 0, 0.0)
    counts = {BAD: blamed, GOOD: other}
    return _reading((Group(rate_ladder(limit), counts),), (Group(promotion_rate_ladder(limit), counts),))
