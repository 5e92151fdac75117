"""Shadow pairs into series: agreement, likelihood gaps, and in shadow stages what the candidate's own leg says.

Owns the booking of pairs, by the second of the client's request, and what the baseline's legs have shown of latencies.
Called by ``rollouts_feeds``.
"""

from collections.abc import Callable, Mapping

from gateway.control import guards, worth
from gateway.control.guards import Shape, Source, Wanted
from gateway.control.rollouts_latencies import Latencies
from gateway.core.evidence import Judge, SeriesKey
from gateway.core.evidence.pairs import PairLoss, in_hundredths
from gateway.core.quality import Inspection
from gateway.model.pair import Leg, Pair
from gateway.model.proving import Rollout


class PairFeed:
    """Pairs of one bucket. ``blame`` notes the request of a bad value at a pool.

    ``latencies`` are what its legs have shown.
    """

    def __init__(
        self,
        judge: Judge,
        plan: Rollout,
        bucket: str,
        by_source: Mapping[Source, list[Wanted]],
        blame: Callable[[Wanted, float, str, str], None],
    ) -> None:
        self._judge = judge
        self._plan = plan
        self._bucket = bucket
        self._by_source = by_source
        self._blame = blame
        self.latencies = Latencies(by_source.get(Source.SHADOW_LATENCY, ()))

    def is_mine(self, pair: Pair) -> bool:
        """Whether it compares the rollout's own pools; another shadow rule's says nothing of the candidate.

        A request that failed everywhere names no pool.
        """
        plan = self._plan
        return (pair.candidate.pool, pair.baseline.pool or plan.baseline) == (plan.candidate, plan.baseline)

    def take_pair(self, pair: Pair, loss: PairLoss | None) -> None:
        """The loss of a pair; None = it had no noise leg, and says nothing."""
        if loss is None:
            return
        second, candidate = int(pair.at), self._plan.candidate
        for one in self._by_source.get(Source.PAIRS, ()):
            if one.guard.metric != "agreement":
                continue
            key = self._key(one, candidate)
            if loss.trip is None:
                self._judge.series(key).accept_unscored(second)
            else:
                self._judge.accept(key, second, in_hundredths(loss.trip))
                self._blame(one, float(loss.trip > (one.guard.margin or 0.0)), candidate, pair.request_id)
        for one in self._by_source.get(Source.MISSING, ()):
            self._judge.accept(self._key(one, candidate), second, float(loss.unscored))

    def take_gap(self, pair: Pair, mean_nats: float) -> None:
        """Nats per token by which the candidate is worse."""
        for one in self._by_source.get(Source.PAIRS, ()):
            scale = guards.gap_scale(one.guard)
            if scale is not None:
                value = in_hundredths(scale.loss(mean_nats))
                self._judge.accept(self._key(one, self._plan.candidate), int(pair.at), value)
                self._blame(one, float(value > scale.limit), self._plan.candidate, pair.request_id)

    def take_legs(self, pair: Pair, baseline: Inspection | None, candidate: Inspection | None) -> None:
        """Errors, latencies and checks of both legs; for shadow stages, where nothing else speaks of the candidate."""
        second = int(pair.at)
        for leg, inspection in ((pair.candidate, candidate), (pair.baseline, baseline)):
            for one in self._by_source.get(Source.SHADOW_ERRORS, ()):
                self._book(one, leg, second, worth.leg_value(leg.failure), pair)
            for one in self._by_source.get(Source.SHADOW_LATENCY, ()):
                self._book(one, leg, second, self._slowness(one, leg, second), pair)
            for one in self._by_source.get(Source.SHADOW_CHECKS, ()):
                if one.shape is Shape.RATE:
                    self._book(one, leg, second, worth.check_value(one.guard, inspection), pair)
        for one in self._by_source.get(Source.SHADOW_CHECKS, ()):
            if one.shape is Shape.PAIR:
                mine, theirs = worth.check_value(one.guard, candidate), worth.check_value(one.guard, baseline)
                if mine is not None and theirs is not None:
                    self._judge.accept(self._key(one, self._plan.candidate), second, mine - theirs)
                    self._blame(one, mine - theirs, self._plan.candidate, pair.request_id)

    def _book(self, one: Wanted, leg: Leg, second: int, value: float | None, pair: Pair) -> None:
        pool = leg.pool or self._plan.baseline  # a request that failed everywhere names none
        if value is not None and pool in (self._plan.candidate, self._plan.baseline):
            self._judge.accept(self._key(one, pool), second, value)
            self._blame(one, value, pool, pair.request_id)

    def _slowness(self, one: Wanted, leg: Leg, second: int) -> float | None:
        latency = _latency_of_leg(one, leg)
        late = latency is None and worth.late(one.guard.metric, leg.failure)
        candidate = leg.pool == self._plan.candidate
        return self.latencies.value(one, second, latency, candidate=candidate, timed_out=late)

    def _key(self, one: Wanted, pool: str) -> SeriesKey:
        return SeriesKey(one.name, self._bucket, pool)


def _latency_of_leg(one: Wanted, leg: Leg) -> float | None:
    if leg.failure:
        return None
    if one.guard.metric == "tpot":
        return worth.per_token_s(leg.first_to_last_s, leg.completion_tokens)
    seconds = {"ttft": leg.ttft_s, "total": leg.total_s, "token_gap": leg.longest_gap_s}[one.guard.metric]
    return seconds if seconds >= 0.0 else None
