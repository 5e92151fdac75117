"""What happens to requests, on its way to the feeds of the buckets that it speaks of.

Owns the order in which the judge hears of it: dispatches before what became of them. Part of the engine.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec

from gateway.control.rollouts_buckets import Buckets
from gateway.control.rollouts_clock import Stamps
from gateway.control.rollouts_runs import Run
from gateway.control.scoring import Scored
from gateway.core.consequence import Consequence, Subject
from gateway.core.evidence import Judge, SeriesKey
from gateway.core.evidence.pairs import PairLoss
from gateway.core.quality import Inspection
from gateway.model.messages import Starts
from gateway.model.outcome import Outcome
from gateway.model.pair import Pair

Stamped = TypeVar("Stamped", Outcome, Pair, Subject)


class Intake:
    """``judge`` gives the one in force; before ``ready`` nothing is known of the past, and nothing is taken."""

    def __init__(self, buckets: Buckets, judge: Callable[[], Judge], ready: Callable[[], bool]) -> None:
        self._buckets = buckets
        self._judge = judge
        self._ready = ready
        self.stamps = Stamps()
        self._starts: dict[tuple[str, str, int], int] = {}

    def take_starts(self, message: Starts, now_s: float | None = None) -> None:
        """Dispatches that workers announce. They are told to the judge before anything that became of them."""
        if now_s is not None:
            self.stamps.see(now_s)
        for start in message.counts:
            at = (start.bucket, start.pool, int(self.stamps.moment(start.second)))
            self._starts[at] = self._starts.get(at, 0) + start.number

    def announce(self) -> None:
        """Tell the judge of the dispatches."""
        starts, self._starts = self._starts, {}
        for (bucket, pool, second), number in starts.items():
            told: set[SeriesKey] = set()  # two rollouts of a bucket may have one baseline
            for run in self._buckets.of(bucket):
                run.feed.start(second, pool, number, told)

    def take_outcomes(self, batch: Sequence[Outcome], now_s: float) -> None:
        """Finished requests, as they come from the workers."""
        self.stamps.see(now_s)  # a turn may wait for long, and what is of now must not look as if it were to come
        self.announce()
        by_run: dict[Run, list[Outcome]] = {}
        for outcome in map(self._placed, batch) if self._ready() else ():
            run = self._buckets.met(self._judge(), outcome, now_s) if outcome.kind.rollout else None
            if run is not None:
                by_run.setdefault(run, []).append(outcome)
        for run, outcomes in by_run.items():
            run.feed.take_outcomes(outcomes)

    def take_unchecked(self, batch: Sequence[Outcome]) -> None:
        """The same requests, where nobody will look into the answers."""
        by_run: dict[Run, list[Outcome]] = {}
        for outcome in map(self._placed, batch):
            run = self._buckets.known(outcome)
            if run is not None:
                by_run.setdefault(run, []).append(outcome)
        for run, outcomes in by_run.items():
            run.feed.take_unchecked(outcomes)

    def take_scored(self, batch: Sequence[Scored], now_s: float) -> None:
        """The same requests, with texts, once they were checked or will not be."""
        for scored in batch:
            run = self._buckets.known(scored.outcome)
            if run is not None:
                run.feed.take_checked(self._placed(scored.outcome), scored.inspection, now_s)

    def take_consequence(self, found: Consequence, bad: float, now_s: float) -> None:
        """What became known of an earlier answer: like the answer, it speaks of the rollout that it took part in."""
        run = self._buckets.named(found.subject.rollout, found.subject.bucket)
        if run is not None:
            subject = self._placed(found.subject)
            placed = found if subject is found.subject else msgspec.structs.replace(found, subject=subject)
            run.feed.take_consequence(placed, bad, now_s)

    def take_pair(
        self, pair: Pair, loss: PairLoss | None, baseline: Inspection | None = None, candidate: Inspection | None = None
    ) -> None:
        """A compared shadow pair, with what the checks found in both answers."""
        for run in self._buckets.of(pair.bucket):
            run.feed.take_pair(self._placed(pair), loss, baseline, candidate)

    def take_gap(self, pair: Pair, mean_nats: float) -> None:
        """A shadow pair scored by likelihood: nats per token that the candidate is worse."""
        for run in self._buckets.of(pair.bucket):
            run.feed.take_gap(self._placed(pair), mean_nats)

    def _placed(self, one: Stamped) -> Stamped:
        """The same, by the clock of now."""
        if self.stamps.settled:
            return one
        return msgspec.structs.replace(one, at=self.stamps.moment(one.at))
