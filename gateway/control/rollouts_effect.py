"""Design effects: how much stronger the evidence for advancing must be because outcomes repeat each other.

Owns the order of what is believed: what the bucket's own baseline has shown, then what the baseline has shown over all
its buckets, then what conversations of that length can do at worst. Changes nothing. Called by ``Run``.
"""

from gateway.control.guards import Shape, Wanted
from gateway.control.rollouts_feeds import BucketFeed
from gateway.core.evidence import Judge, SeriesKey, UnknownSeriesError
from gateway.core.evidence.promotion import conversation_design_effect

UNMEASURED_EFFECT = 1.5
"""The least while nothing is measured: outcomes of real traffic come in bursts, too."""
ASSUMED_CORRELATION = 0.3
"""Between outcomes of one conversation, while nothing is measured: the strongest that was simulated (evidence.md 6).

At this correlation and five turns a conversation an effect of 1.5 promotes 18 % of pools that are at their limit, where
5 % are promised; the effect that follows from the turns promotes 2 %.
"""
EVERYTHING = "*"


def design_effect(judge: Judge, feed: BucketFeed, one: Wanted) -> float:
    """1 for what is counted by conversation or by first failures, and for pairs; else measured, or assumed."""
    by_request = one.shape is Shape.RATE or (one.shape is Shape.MARGIN and one.guard.feed != "session")
    if not by_request or (one.shape is Shape.RATE and not one.twin):
        return 1.0
    baseline, guard = feed.plan.baseline, one.guard.name if one.shape is Shape.MARGIN else one.name
    for key in (feed.key_of(guard, baseline), SeriesKey(guard, EVERYTHING, baseline)):
        measured = _measured(judge, key)
        if measured is not None:
            return measured
    turns = feed.turns.mean()
    return max(UNMEASURED_EFFECT, conversation_design_effect(turns, ASSUMED_CORRELATION) if turns is not None else 1.0)


def _measured(judge: Judge, key: SeriesKey) -> float | None:
    try:
        dispersion = judge.series(key).dispersion
    except UnknownSeriesError:
        return None
    return dispersion.design_effect() if dispersion is not None else None
