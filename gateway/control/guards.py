"""Guards as series: which series a guard of the policy becomes, and how each is fed.

Pure mapping, no state: forms, feeds and deadlines (evidence.md 2 and 4). What one outcome is worth to them is
``worth``'s. Called by ``rollouts_feeds``, which holds the state, and by the rehearsal.
"""

import hashlib
from enum import StrEnum
from functools import partial

import msgspec
import orjson

from gateway.core.evidence import Feed, Form, Overdue, SeriesSpec
from gateway.core.evidence.blocks import ONLY_LANE, REQUESTS
from gateway.core.evidence.latency import exceedance_limit
from gateway.core.evidence.pairs import GapScale
from gateway.model.proving import Guard

HARD_ERRORS = "hard_errors"
HARD_ANSWERS = "hard_answers"
HARD_LIMIT = 0.5
"""More than half unusable, proven: about 20 in a row on a fresh canary, 35 to 40 later; one success all but resets it.

A meter like any other, so the fast path is inside the budget and healthy pools cannot trip it by one short burst.
"""
MISSING_LIMIT = 0.02

ERRORS_D_S = 30.0
LATE_D_S = 600.0
LATENCY_D_S = 90.0  # beyond the usual first-byte timeout; an answer that lasts longer counts in the late series
CHECK_D_S = 120.0
SHARE_D_S = 120.0
PAIR_D_S = 150.0  # a leg's timeout and the comparison
FEEDBACK_D_S = 1_800.0
TURN_S = 60.0
CONVERSATION_S = 600.0
IDLE_S = 60.0

LATENCIES = frozenset({"ttft", "tpot", "token_gap", "total"})
PAIRS = frozenset({"agreement", "likelihood_gap"})
FEEDBACK = "feedback_rate"


class Source(StrEnum):
    """Where a series' outcomes come from."""

    ATTEMPTS = "attempts"
    LATENCY = "latency"
    CHECKS = "checks"
    FEEDBACK = "feedback"
    PAIRS = "pairs"
    SHADOW_ERRORS = "shadow_errors"
    SHADOW_LATENCY = "shadow_latency"
    SHADOW_CHECKS = "shadow_checks"
    MISSING = "missing"
    HARD_ANSWERS = "hard_answers"


class Shape(StrEnum):
    """How outcomes of a source become values of the series."""

    RATE = "rate"
    SESSION = "session"
    MARGIN = "margin"
    SHARE = "share"
    PAIR = "pair"


class Wanted(msgspec.Struct, frozen=True):
    """One series of a guard. ``twin``: the baseline has the same one. ``asked``: it must pass before a stage advances.

    ``stages``: shadow | live | both, the stages in which it is fed. ``calm``: asked only whether its meter is calm,
    because its form can protect but never prove (a share with ratio 1).
    """

    name: str
    guard: Guard
    source: Source
    shape: Shape
    spec: SeriesSpec
    twin: bool = True
    asked: bool = True
    stages: str = "live"
    calm: bool = False

    @property
    def plain(self) -> bool:
        """Whether each outcome counts by itself."""
        return self.shape not in (Shape.SHARE, Shape.MARGIN)

    @property
    def by_conversation(self) -> bool:
        """Whether conversations vote, and not single answers."""
        return self.shape is Shape.SESSION or (self.shape is Shape.MARGIN and self.guard.feed == "session")

    @property
    def lane(self) -> float:
        """The lane of single requests: where conversations vote, they are awaited apart and have no value."""
        return REQUESTS if self.shape is Shape.SESSION else ONLY_LANE

    @property
    def meaning(self) -> str:
        """What it asks, as a hash: what is open of another question must not be counted for it."""
        parts = orjson.dumps(msgspec.to_builtins(self), option=orjson.OPT_SORT_KEYS)
        return hashlib.blake2b(parts, digest_size=8).hexdigest()


def series_of(guard: Guard) -> tuple[Wanted, ...]:
    """The series of one guard; each bound of it is one."""
    if guard.metric in PAIRS:
        return _of_pairs(guard)
    if guard.metric in LATENCIES:
        return _of_latency(guard)
    return _of_rate(guard)


def implicit_series() -> tuple[Wanted, ...]:
    """The fast path for hard failures, which every rollout has."""
    guard = Guard("hard", "error_rate", limit=HARD_LIMIT, critical=False)
    spec = partial(SeriesSpec, Form.RATE, HARD_LIMIT, Feed.PRODUCT, block_s=1.0, deadline_s=CHECK_D_S, announced=True)
    return (
        Wanted(HARD_ERRORS, guard, Source.ATTEMPTS, Shape.RATE, spec(overdue=Overdue.GOOD), asked=False),
        Wanted(HARD_ANSWERS, guard, Source.HARD_ANSWERS, Shape.RATE, spec(), asked=False),
    )


def _of_pairs(guard: Guard) -> tuple[Wanted, ...]:
    deadline_s = guard.deadline_s or PAIR_D_S
    scale = gap_scale(guard)
    tolerance = scale.limit if scale is not None else guard.margin or 0.0
    pair = SeriesSpec(Form.PAIR, tolerance, Feed.PRODUCT, guard.block_s, deadline_s)
    if scale is not None:  # a pair without a gap is no pair here: nothing is missing
        return (Wanted(guard.name, guard, Source.PAIRS, Shape.PAIR, pair, twin=False, stages="both"),)
    missing = SeriesSpec(Form.RATE, MISSING_LIMIT, Feed.PRODUCT, guard.block_s, deadline_s)
    return (
        Wanted(guard.name, guard, Source.PAIRS, Shape.PAIR, pair, twin=False, stages="both"),
        Wanted(
            f"{guard.name}.missing", guard, Source.MISSING, Shape.RATE, missing, twin=False, asked=False, stages="both"
        ),
    )


def _of_latency(guard: Guard) -> tuple[Wanted, ...]:
    limit = exceedance_limit(guard.quantile or 0.99)
    feed = Feed.PRODUCT if guard.feed == "product" else Feed.VOTE
    spec = partial(SeriesSpec, Form.RATE, limit, feed, guard.block_s)
    found = []
    if guard.limit is not None:
        live = spec(deadline_s=max(guard.deadline_s or 0.0, LATENCY_D_S), announced=True)
        found.append(Wanted(guard.name, guard, Source.LATENCY, Shape.RATE, live))
        # A latency is known when its answer ends, so the deadline drops the slowest ones first: nothing may pass
        # without them. Dropped here too what is still open: it may have been cancelled, or its outcome lost.
        late = msgspec.structs.replace(live, deadline_s=max(live.deadline_s, _late_s(guard)))
        found.append(Wanted(f"{guard.name}.late", guard, Source.LATENCY, Shape.RATE, late))
        found.append(
            Wanted(
                f"{guard.name}.shadow",
                guard,
                Source.SHADOW_LATENCY,
                Shape.RATE,
                spec(deadline_s=PAIR_D_S),
                stages="shadow",
            )
        )
    if ratio_of(guard) is not None:
        share = SeriesSpec(Form.SHARE, 0.0, Feed.VOTE, guard.block_s, SHARE_D_S)
        of_share = partial(Wanted, guard=guard, source=Source.LATENCY, shape=Shape.SHARE, twin=False, calm=True)
        found.append(of_share(f"{guard.name}.ratio", spec=share))
        late = msgspec.structs.replace(share, deadline_s=_late_s(guard))
        found.append(of_share(f"{guard.name}.ratio.late", spec=late))
    return tuple(found)


def _late_s(guard: Guard) -> float:
    """How long an answer may last and still count: well beyond the limit where the whole answer has one."""
    return max(LATE_D_S, guard.limit + LATENCY_D_S if guard.metric == "total" and guard.limit is not None else 0.0)


def _of_rate(guard: Guard) -> tuple[Wanted, ...]:
    source = _source(guard)
    found = []
    if guard.limit is not None:
        shape = Shape.SESSION if guard.feed == "session" else Shape.RATE
        found.append(Wanted(guard.name, guard, source, shape, _absolute(guard, source, shape)))
        if source is Source.ATTEMPTS:
            # What fails after the guard's deadline counted as good there; here it does not.
            late = msgspec.structs.replace(found[0].spec, deadline_s=LATE_D_S)
            found.append(Wanted(f"{guard.name}.late", guard, source, Shape.RATE, late, asked=False))
            shadow = SeriesSpec(Form.RATE, guard.limit, found[0].spec.feed, guard.block_s, PAIR_D_S)
            found.append(
                Wanted(f"{guard.name}.shadow", guard, Source.SHADOW_ERRORS, Shape.RATE, shadow, stages="shadow")
            )
    if source is Source.CHECKS:
        found += _shadow_checks(guard)
    if guard.margin is not None:
        # Booked when its block of dispatches is complete, in order: no second wait.
        pair = SeriesSpec(Form.PAIR, guard.margin, Feed.PRODUCT, 1.0, 0.0)
        found.append(Wanted(f"{guard.name}.margin", guard, source, Shape.MARGIN, pair, twin=False))
    if guard.ratio is not None:
        deadline_s = outcome_s(guard) if source is Source.FEEDBACK else SHARE_D_S
        share = SeriesSpec(Form.SHARE, 0.0, Feed.PRODUCT, guard.block_s, deadline_s, tolerated_ratio=guard.ratio)
        calm = guard.ratio <= 1.0
        found.append(Wanted(f"{guard.name}.ratio", guard, source, Shape.SHARE, share, twin=False, calm=calm))
    return tuple(found)


def _shadow_checks(guard: Guard) -> list[Wanted]:
    """What the checks say of mirrored answers: a limit as live, a margin on the same prompt."""
    found = []
    spec = partial(SeriesSpec, feed=Feed.PRODUCT, block_s=guard.block_s, deadline_s=PAIR_D_S)
    source = Source.SHADOW_CHECKS
    if guard.limit is not None:
        rate = spec(Form.RATE, guard.limit)
        found.append(Wanted(f"{guard.name}.shadow", guard, source, Shape.RATE, rate, stages="shadow"))
    if guard.margin is not None:
        pair = spec(Form.PAIR, guard.margin)
        name = f"{guard.name}.margin.shadow"
        found.append(Wanted(name, guard, source, Shape.PAIR, pair, twin=False, stages="shadow"))
    return found


def gap_scale(guard: Guard) -> GapScale | None:
    """How a gap in nats per token becomes a loss in [-1, 1]; None for guards on agreement."""
    return GapScale(guard.margin or 0.1, 0.0) if guard.metric == "likelihood_gap" else None


def _absolute(guard: Guard, source: Source, shape: Shape) -> SeriesSpec:
    limit = guard.limit or 0.0
    if shape is Shape.SESSION:
        longest_s = conversation_s(guard)
        return SeriesSpec(
            Form.SESSION,
            limit,
            Feed.PRODUCT,
            guard.block_s,
            deadline_s=longest_s + TURN_S,
            announced=source is not Source.FEEDBACK,  # nobody knows which answers somebody will judge
            grace_s=min(TURN_S, longest_s),
        )
    feed = Feed.VOTE if guard.feed == "vote" else Feed.PRODUCT
    if source is Source.FEEDBACK:
        return SeriesSpec(Form.RATE, limit, feed, guard.block_s, outcome_s(guard))
    if source is Source.ATTEMPTS:
        deadline_s, overdue = guard.deadline_s or ERRORS_D_S, Overdue.GOOD
    else:
        deadline_s, overdue = guard.deadline_s or CHECK_D_S, Overdue.DROP
    return SeriesSpec(Form.RATE, limit, feed, guard.block_s, deadline_s=deadline_s, announced=True, overdue=overdue)


def _source(guard: Guard) -> Source:
    if guard.metric == "error_rate":
        return Source.ATTEMPTS
    return Source.FEEDBACK if guard.metric == FEEDBACK else Source.CHECKS


def ratio_of(guard: Guard) -> float | None:
    """Tolerated multiple of the baseline's latency, where that alone is the bound."""
    return guard.ratio if guard.ratio is not None or guard.limit is not None else guard.or_ratio


def conversation_s(guard: Guard) -> float:
    """How long a conversation may last before it votes, for guards with session votes."""
    return outcome_s(guard) if guard.metric == FEEDBACK else guard.deadline_s or CONVERSATION_S


def idle_s(guard: Guard) -> float:
    """How long a conversation may be silent before it votes: a person's word may come as long as it is open."""
    longest_s = conversation_s(guard)
    return longest_s if guard.metric == FEEDBACK else min(IDLE_S, longest_s / 2)


def outcome_s(guard: Guard) -> float:
    """How long what is found in an answer, or said of it, may take to become known."""
    return guard.deadline_s or (FEEDBACK_D_S if guard.metric == FEEDBACK else CHECK_D_S)
