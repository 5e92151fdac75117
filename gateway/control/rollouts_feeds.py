"""From outcomes to the series of one (rollout, bucket): sessions, shares, margins and thresholds with their state.

Owns what must be remembered between outcomes; values are ``guards``', statistics ``core.evidence``'s. Everything is
booked by the second of arrival, so that the workers' announcements and the outcomes meet in the same block. Called by
the engine on control's loop, and by the rehearsal with simulated outcomes.
"""

from collections import deque
from collections.abc import Iterable, Iterator

import msgspec

from gateway.control import worth
from gateway.control.guards import Shape, Source, Wanted
from gateway.control.rollouts_booking import Booking
from gateway.control.rollouts_latencies import Latencies
from gateway.control.rollouts_margins import Margins
from gateway.control.rollouts_open import OpenState
from gateway.control.rollouts_pairs import PairFeed
from gateway.control.rollouts_sessions import Sessions
from gateway.control.rollouts_shares import Shares
from gateway.core.consequence import Consequence, Subject
from gateway.core.consequence import Kind as ConsequenceKind
from gateway.core.evidence import Judge, SeriesKey, SeriesSpec
from gateway.core.evidence.pairs import PairLoss
from gateway.core.evidence.turns import Turns
from gateway.core.quality import Inspection
from gateway.model.outcome import Attempt, Outcome
from gateway.model.pair import Pair
from gateway.model.proving import Rollout

CULPRITS_MOST = 50
_TOOLS = "tool_failure_rate"
_TOOL_KINDS = frozenset({ConsequenceKind.TOOL_ERROR, ConsequenceKind.REPEATED_CALL})


class BucketFeed:
    """Feeds of one bucket. ``seen`` counts attempts per pool; ``culprits`` are the last bad requests per series.

    ``turns`` counts how many requests its conversations make.
    """

    def __init__(self, judge: Judge, plan: Rollout, bucket: str, wanted: Iterable[Wanted], now_s: float) -> None:
        self.plan = plan
        self.bucket = bucket
        self.wanted = tuple(wanted)
        self.seen: dict[str, int] = {}
        self.culprits: dict[str, deque[str]] = {}
        self.turns = Turns()
        self.shadowing = False
        self._judge = judge
        self._booking = Booking(judge, bucket)
        # By any equal string the plan's own, which is quick to find in a dict.
        self._pools = {pool: pool for pool in (plan.candidate, plan.baseline)}
        self._by_source: dict[Source, list[Wanted]] = {}
        for one in self.wanted:
            self._by_source.setdefault(one.source, []).append(one)
        attempts = self._by_source.get(Source.ATTEMPTS, ())
        self._plain_attempts = [one for one in attempts if one.plain]
        self._other_attempts = [one for one in attempts if not one.plain]
        self._unscored = [
            one
            for source in (Source.CHECKS, Source.HARD_ANSWERS)
            for one in self._by_source.get(source, ())
            if one.spec.announced and one.plain
        ]
        self._announced = [
            one
            for one in self.wanted
            if one.spec.announced and one.shape in (Shape.RATE, Shape.SESSION) and one.stages != "shadow"
        ]
        self._pairs = PairFeed(judge, plan, bucket, self._by_source, self._blame)
        self._shares = Shares(self._booking, self.wanted, plan.candidate)
        self._margins = {one.name: Margins(one, now_s) for one in self.wanted if one.shape is Shape.MARGIN}
        self._sessions = Sessions(judge, self._booking, self._margins, plan.candidate)
        self._latencies = Latencies(self._by_source.get(Source.LATENCY, ()))

    def key(self, one: Wanted, pool: str) -> SeriesKey:
        """The series of a pool."""
        return SeriesKey(one.name, self.bucket, pool)

    def key_of(self, name: str, pool: str) -> SeriesKey:
        """The series of a name and a pool."""
        return SeriesKey(name, self.bucket, pool)

    def keys(self, one: Wanted) -> Iterator[tuple[SeriesKey, SeriesSpec]]:
        """Every series of a wanted one: the candidate's, and its twin where there is one."""
        yield self.key(one, self.plan.candidate), one.spec
        if one.twin:
            yield self.key(one, self.plan.baseline), _measuring(one.spec)

    # what comes in

    def start(self, second: int, pool: str, number: int, told: set[SeriesKey]) -> None:
        """Attempts at a pool that were dispatched; their outcomes are to come. ``told``: series that know of them."""
        if self._is_mine(pool):
            for one in self._announced:
                key = self.key(one, pool)
                if (one.twin or pool == self.plan.candidate) and key not in told:
                    told.add(key)
                    self._judge.announce(key, second, number, one.lane)

    def take_outcomes(self, outcomes: Iterable[Outcome]) -> None:
        """What is known without looking into the answers: errors and latencies, of every attempt."""
        by_latency = self._by_source.get(Source.LATENCY, ())
        alike: dict[tuple[str, int, float | None], int] = {}
        for outcome in outcomes:
            second = int(outcome.at)
            self.turns.see(outcome.conversation or outcome.request_id, second)
            for attempt in outcome.attempts:
                pool = self._pools.get(attempt.pool)
                if pool is None:
                    continue
                self.seen[pool] = self.seen.get(pool, 0) + 1
                value = worth.attempt_value(outcome, attempt)
                if value:
                    for one in self._plain_attempts:
                        self._book_plain(one, pool, second, value, outcome.request_id)
                else:
                    alike[pool, second, value] = alike.get((pool, second, value), 0) + 1
                for one in self._other_attempts:
                    self._book(one, pool, second, value, outcome)
                for one in by_latency:
                    self._book_latency(one, pool, second, outcome, attempt)
        for (pool, second, value), number in alike.items():
            for one in self._plain_attempts:
                self._book_plain(one, pool, second, value, number=number)
        self._booking.settle()

    def take_unchecked(self, outcomes: Iterable[Outcome]) -> None:
        """That nobody will look into these answers: that resolves the requests too."""
        for outcome in outcomes if self._unscored else ():
            for attempt in outcome.attempts:
                pool = self._pools.get(attempt.pool)
                for one in self._unscored if pool is not None else ():
                    self._book_plain(one, attempt.pool, int(outcome.at), None)
        self._booking.settle()

    def take_checked(self, outcome: Outcome, inspection: Inspection | None, now_s: float) -> None:
        """What the checks found, or that nobody looked: that resolves the request too."""
        last = len(outcome.attempts)
        for number, attempt in enumerate(outcome.attempts, start=1):
            pool = self._pools.get(attempt.pool)
            if pool is None:
                continue
            # Only the last attempt's answer was looked at. What the client cancelled is torn, by no fault of the pool.
            found = inspection if number == last and worth.attempt_value(outcome, attempt) == 0.0 else None
            for one in self._by_source.get(Source.CHECKS, ()):
                self._book_answer(one, pool, worth.check_value(one.guard, found), outcome, now_s)
                if one.shape is Shape.SESSION:  # its block waits for the conversation now, if that counts
                    self._book_plain(one, pool, int(outcome.at), None)
            for one in self._by_source.get(Source.HARD_ANSWERS, ()):
                self._book(one, pool, int(outcome.at), worth.hard_answer_value(found), outcome)
        self._booking.settle()

    def take_consequence(self, found: Consequence, bad: float, now_s: float) -> None:
        """Feedback is its own guard; a failed or repeated tool call is one more bad turn of its conversation."""
        subject = found.subject
        if not self._is_mine(subject.pool):
            return
        if found.kind is ConsequenceKind.FEEDBACK:
            mine = self._by_source.get(Source.FEEDBACK, [])
        elif found.kind in _TOOL_KINDS:
            checked = self._by_source.get(Source.CHECKS, ())
            mine = [one for one in checked if one.guard.metric == _TOOLS and one.by_conversation]
        else:
            mine = []
        for one in mine:
            self._book_answer(one, subject.pool, bad, subject, now_s)
        self._booking.settle()

    def take_pair(
        self, pair: Pair, loss: PairLoss | None, baseline: Inspection | None = None, candidate: Inspection | None = None
    ) -> None:
        """A compared pair of shadow traffic, with what the checks found in both answers."""
        if self._pairs.is_mine(pair):
            self._pairs.take_pair(pair, loss)
            if self.shadowing:
                self._pairs.take_legs(pair, baseline, candidate)

    def take_gap(self, pair: Pair, mean_nats: float) -> None:
        """A pair whose answers were scored by likelihood."""
        if self._pairs.is_mine(pair):
            self._pairs.take_gap(pair, mean_nats)

    def advance(self, now_s: float) -> None:
        """Hand on the conversations that are over and the margins whose blocks are complete."""
        self._sessions.advance(now_s)
        self._booking.settle()
        for one in self.wanted:
            if one.shape is Shape.MARGIN:
                for complete_s, loss, count in self._margins[one.name].ripe(now_s):
                    self._judge.accept(self.key(one, self.plan.candidate), complete_s, loss, count)

    def start_stage(self, at_s: float, *, shadowing: bool) -> None:
        """What was in the air belongs to the stage before."""
        self.shadowing = shadowing
        self.seen.clear()
        for margins in self._margins.values():
            margins.skip(at_s)

    # what survives

    def shift(self, was_s: float, now_s: float) -> None:
        """The clock was set from one moment to another: what is open moves along."""
        self.turns.shift(was_s, now_s)
        self._shares.shift(was_s, now_s)
        self._sessions.shift(was_s, now_s)
        for latencies in (self._latencies, self._pairs.latencies):
            latencies.shift(was_s, now_s)
        for margins in self._margins.values():
            margins.shift(was_s, now_s)

    @property
    def conversations(self) -> int:
        """How many are remembered."""
        return len(self._sessions) + len(self._shares)

    def state(self, every: int = 1) -> OpenState:
        """What must survive a reload and a restart, of every so-many'th conversation."""
        return OpenState(
            {one.name: one.meaning for one in self.wanted},
            dict(self.seen),
            {name: tuple(ids) for name, ids in self.culprits.items()},
            self._sessions.state(every),
            {name: margins.state() for name, margins in self._margins.items()},
            self._shares.state(every),
            self._latencies.state(),
            self._pairs.latencies.state(),
        )

    def restore(self, state: OpenState) -> None:
        """Go on from there with the series that ask the same now."""
        same = {one.name: one for one in self.wanted if state.meanings.get(one.name) == one.meaning}
        self.seen = {pool: number for pool, number in state.seen.items() if self._is_mine(pool)}
        self.culprits = {n: deque(ids, maxlen=CULPRITS_MOST) for n, ids in state.culprits.items() if n in same}
        self._sessions.restore(same, self.bucket, state.sessions)
        for name, margins in self._margins.items():
            if name in same and name in state.margins:
                margins.restore(state.margins[name])
        self._shares.restore(same, state.failed)
        self._latencies.restore(same, state.latencies)
        self._pairs.latencies.restore(same, state.shadow_latencies)

    # booking

    def _is_mine(self, pool: str) -> bool:
        return pool in self._pools

    def _book_answer(
        self, one: Wanted, pool: str, value: float | None, answer: Outcome | Subject, now_s: float
    ) -> None:
        """What is known of an answer itself: by its conversation where those vote, else by itself."""
        second = int(answer.at)
        if not one.by_conversation:
            self._book(one, pool, second, value, answer)
        elif value is not None:
            conversation = answer.conversation or answer.request_id
            self._sessions.turn(one, self.key(one, pool), conversation, second, value=value, now_s=now_s)
            self._blame(one, value, pool, answer.request_id)

    def _book(self, one: Wanted, pool: str, second: int, value: float | None, answer: Outcome | Subject) -> None:
        if one.plain:
            self._book_plain(one, pool, second, value, answer.request_id)
            return
        if value is None:
            return
        if one.shape is Shape.SHARE:
            conversation = answer.conversation or answer.request_id
            self._shares.take(one, pool, second, bad=value > 0.0, conversation=conversation)
        else:
            self._margins[one.name].add(second, value, candidate=pool == self.plan.candidate)
        self._blame(one, value, pool, answer.request_id)

    def _book_plain(
        self, one: Wanted, pool: str, second: int, value: float | None, request_id: str = "", *, number: int = 1
    ) -> None:
        """Count outcomes that are alike; ``request_id`` is the one to blame if they are bad."""
        if not one.twin and pool != self.plan.candidate:
            return
        if value is not None or one.spec.announced:
            self._booking.count(one.name, pool, second, value, lane=one.lane, number=number)
        if value:
            self._blame(one, value, pool, request_id)

    def _book_latency(self, one: Wanted, pool: str, second: int, outcome: Outcome, attempt: Attempt) -> None:
        metric, candidate = one.guard.metric, pool == self.plan.candidate
        latency = worth.latency_of(metric, outcome, attempt)
        late = latency is None and worth.late(metric, attempt.failure)
        value = self._latencies.value(one, second, latency, candidate=candidate, timed_out=late)
        self._book(one, pool, second, value, outcome)

    def _blame(self, one: Wanted, value: float, pool: str, request_id: str) -> None:
        if value > 0.0 and pool == self.plan.candidate:
            self.culprits.setdefault(one.name, deque(maxlen=CULPRITS_MOST)).append(request_id)


def _measuring(spec: SeriesSpec) -> SeriesSpec:
    """A baseline's series: what it measures of dependence is used for all pools."""
    return msgspec.structs.replace(spec, measures_dependence=True)
