"""Feeds: how the outcomes of one block become one log factor per bet.

Owns the choice between product feed (every outcome counts), vote feed (one vote a block, the share of bad ones) and
what an empty block means (nothing: factor 1). Sums run over sorted values, so the result does not depend on the order
in which workers' counts were merged, not even in the last bit. Called by series; knows neither time nor meters.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from math import exp, log

import msgspec

from gateway.core.evidence.ladders import Ladder


class Feed(StrEnum):
    """How a block's outcomes are staked; evidence.md 2.4 says when each is right."""

    PRODUCT = "product"
    VOTE = "vote"


class Group(msgspec.Struct, frozen=True, gc=False):
    """Outcomes of one block under one limit, as ``{value: count}``; only a slice's block has several groups."""

    ladder: Ladder
    counts: Mapping[float, int]


def count_of(groups: Iterable[Group]) -> int:
    """Number of outcomes in all groups."""
    return sum(sum(group.counts.values()) for group in groups)


def log_factors(groups: tuple[Group, ...], feed: Feed) -> tuple[float, ...] | None:
    """Log factor per bet, or None for a block without outcomes (its factors are 1)."""
    filled = [group for group in groups if any(group.counts.values())]
    if not filled:
        return None
    return _product(filled) if feed is Feed.PRODUCT else _vote(filled)


def mean_of(group: Group) -> tuple[float, int]:
    """Mean value and number of outcomes of a group that has any."""
    number = sum(group.counts.values())
    return sum(value * count for value, count in sorted(group.counts.items())) / number, number


def _product(groups: list[Group]) -> tuple[float, ...]:
    sums = [0.0] * len(groups[0].ladder.bets)
    for group in groups:
        for value, count in sorted(group.counts.items()):
            if count:
                for rung, step in enumerate(group.ladder.log_factors(value)):
                    sums[rung] += count * step
    return tuple(sums)


def _vote(groups: list[Group]) -> tuple[float, ...]:
    if len(groups) == 1:
        mean, _ = mean_of(groups[0])
        return groups[0].ladder.log_factors(mean)
    # Several limits in one block: each limit's vote is a fair bet by itself, and so is their average weighted by
    # traffic.
    means = [mean_of(group) for group in groups]
    total = sum(number for _, number in means)
    votes = [
        [exp(step) * number / total for step in group.ladder.log_factors(mean)]
        for group, (mean, number) in zip(groups, means, strict=True)
    ]
    return tuple(log(sum(column)) for column in zip(*votes, strict=True))


def log_mean_exp(logs: Iterable[float]) -> float:
    """Log of the mean of the exponentials, safe for any size."""
    values = list(logs)
    top = max(values)
    return top + log(sum(exp(value - top) for value in values) / len(values))
