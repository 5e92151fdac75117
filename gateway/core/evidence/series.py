"""One series: a guard on a pool in a bucket, from outcomes to trips, evidence and intervals.

Owns the way of a block: closed by the timeline, read according to the guard's form, staked by the meter, counted by
the promotion evidence. O(1) per block and outcome. Must not know budgets, twins or stages; the judge does. Time is an
argument.
"""

from collections.abc import Callable

from gateway.core.evidence.blocks import BAD, BASELINE, CANDIDATE, GOOD, ONLY_LANE, BlockRecord, OpenBlock
from gateway.core.evidence.dispersion import Dispersion
from gateway.core.evidence.feeds import log_factors
from gateway.core.evidence.intervals import Interval, MeanInterval, rate_interval
from gateway.core.evidence.meter import NEVER_FED, Meter
from gateway.core.evidence.promotion import Evidence
from gateway.core.evidence.readings import Form, Reading, read_block, rungs_of
from gateway.core.evidence.setting import moved
from gateway.core.evidence.timeline import Timeline
from gateway.core.evidence.values import FedBlock, SeriesSpec, SeriesState, Trip, recut


class Series:
    """State of one series from ``start_s`` on, which is also the start of its first stage."""

    __slots__ = (
        "_bad",
        "_mean",
        "dispersion",
        "evidence",
        "meter",
        "spec",
        "stage_block",
        "stage_s",
        "timeline",
        "trip",
    )

    def __init__(self, spec: SeriesSpec, drip_per_s: float, start_s: float) -> None:
        self.spec = spec
        rungs, promotion_rungs = rungs_of(spec.form)
        self.timeline = Timeline(spec.block_s, spec.deadline_s, start_s, announced=spec.announced, grace_s=spec.grace_s)
        self.meter = Meter(rungs, drip_per_s, self.timeline.next_block * spec.block_s)
        self.evidence = Evidence(promotion_rungs)
        self.dispersion = Dispersion() if spec.measures_dependence else None
        self.trip: Trip | None = None
        self._mean = MeanInterval(spec.interval_alpha)
        self._bad = 0.0
        self.stage_s = start_s
        self.stage_block = self.timeline.next_block

    def announce(self, dispatched_s: float, count: int = 1, lane: float = ONLY_LANE) -> None:
        """Report ``count`` dispatched requests whose outcomes are to come."""
        block = self.timeline.open_at(dispatched_s, 0)
        if block is not None:
            block.announce(count, lane)

    def accept(self, dispatched_s: float, value: float, count: int = 1, lane: float = ONLY_LANE) -> bool:
        """Count outcomes of requests dispatched at ``dispatched_s``; False if they are too late (dropped, counted)."""
        self.spec.form.check(value, lane)
        block = self.timeline.open_at(dispatched_s, count)
        if block is None:
            return False
        block.add(value, count, lane)
        return True

    def accept_share(self, dispatched_s: float, *, candidate: bool, bad: bool, count: int = 1) -> bool:
        """The same for a failure share: one dispatched request of an arm, bad or not."""
        return self.accept(dispatched_s, BAD if bad else GOOD, count, CANDIDATE if candidate else BASELINE)

    def accept_unscored(self, dispatched_s: float, count: int = 1, lane: float = ONLY_LANE) -> bool:
        """Count pairs that could not be scored, or requests that say nothing; False if they are too late."""
        block = self.timeline.open_at(dispatched_s, count)
        if block is None:
            return False
        block.add_unscored(count, lane)
        return True

    def absorb(self, record: BlockRecord) -> bool:
        """Add a whole block record of a worker or replica; False if that block is closed."""
        for lane, value, _ in record.cells:
            self.spec.form.check(value, lane)
        block = self.timeline.open_number(record.number, record.outcomes)
        if block is None:
            return False
        block.absorb(record)
        return True

    def grant(self, at_s: float, amount: float) -> None:
        """Put a lump into the seed of the block that holds ``at_s``, or of the next one that is fed."""
        self.meter.grant(self.timeline.number_at(at_s), amount)

    def advance(self, now_s: float, observe: Callable[[FedBlock], None] | None = None) -> Trip | None:
        """Feed the blocks that are ripe at ``now_s``; the first trip among them. ``observe`` sees every fed block."""
        first: Trip | None = None
        for number, block in self.timeline.take_ripe(now_s):
            block.close(self.spec.overdue)
            trip = self._feed(number, block, now_s, observe)
            first = first or trip
        return first

    def collect(self, now_s: float) -> list[BlockRecord]:
        """Close the blocks that are ripe at ``now_s`` without feeding them: their counts are a part of the whole."""
        records = []
        for number, block in self.timeline.take_ripe(now_s):
            block.close(self.spec.overdue)
            records.append(block.record(number))
        return records

    def feed(self, record: BlockRecord, now_s: float, observe: Callable[[FedBlock], None] | None = None) -> Trip | None:
        """Feed a closed block that was put together elsewhere; dropped as late if it is not newer than the last."""
        if record.number <= self.meter.block or self.timeline.end_of(record.number) < self.meter.end_s:
            self.timeline.late += record.outcomes
            return None
        block = OpenBlock()
        block.absorb(record)
        return self._feed(record.number, block, now_s, observe)

    def _feed(
        self, number: int, block: OpenBlock, now_s: float, observe: Callable[[FedBlock], None] | None
    ) -> Trip | None:
        reading = read_block(self.spec.form, self.spec.limit, self.spec.tolerated_ratio, block)
        step = self.meter.feed(number, self.timeline.end_of(number), log_factors(reading.groups, self.spec.feed))
        if number >= self.stage_block:
            self._count(reading)
        if self.dispersion is not None:
            self.dispersion.add(number, step.end_s, reading.number, round(reading.bad))
        if observe is not None:
            observe(FedBlock(step, reading.number, reading.bad))
        if not step.tripped:
            return None
        trip = Trip(number, step.end_s, now_s, step.total, step.bets, reading.number, reading.bad)
        self.trip = self.trip or trip
        return trip

    def _count(self, reading: Reading) -> None:
        self.evidence.add(reading.promotion_groups)
        self._bad += reading.bad
        if self.spec.form.fractional:
            low = self.spec.form.lowest
            for group in reading.groups:
                for value, count in sorted(group.counts.items()):
                    for _ in range(count):
                        self._mean.add((value - low) / (1.0 - low))

    def total_at(self, at_s: float) -> float:
        """Money at ``at_s``, with the drip since the last fed block."""
        return sum(self.bets_at(at_s))

    def unearned_at(self, at_s: float) -> float:
        """What of that no outcome has won: lumps of all stage starts, and the drip."""
        return self.meter.unearned_by(self.timeline.number_at(at_s) - 1, at_s)

    def bets_at(self, at_s: float) -> tuple[float, ...]:
        """Stakes at ``at_s`` if nothing happened since the last fed block."""
        return self.meter.bets_at(self.timeline.number_at(at_s) - 1, at_s)

    def interval(self) -> Interval | None:
        """Anytime-valid interval since the evidence was restarted: of the rate, the mean vote or the mean loss."""
        if self.spec.form is Form.PAIR:
            return self._mean.loss_interval()
        if self.spec.form is Form.SESSION:
            return self._mean.interval()
        if self.spec.form is Form.RATE:
            return rate_interval(self.evidence.number, round(self._bad), self.spec.interval_alpha)
        return None

    @property
    def bad(self) -> float:
        """Sum of the values counted since the evidence was restarted (bad outcomes, or summed loss)."""
        return self._bad

    def start_stage(self, at_s: float, *, keep_evidence: bool) -> None:
        """A new stage begins: clear the latched trip and, unless told otherwise, the evidence from before.

        Evidence counts from the first whole block of the stage: requests from before say nothing about the new load.
        """
        self.trip = None
        self.stage_s = at_s
        if not keep_evidence:
            self.stage_block = self.timeline.first_whole_block(at_s)
            self.evidence.restart()
            self._mean = MeanInterval(self.spec.interval_alpha)
            self._bad = 0.0

    def reset(self, at_s: float) -> None:
        """The pool is another one (configuration, re-entry): forget money, open blocks, evidence, latched trip."""
        number = self.timeline.number_at(at_s)
        self.timeline.skip_before(number)
        self.meter.empty(number - 1, number * self.spec.block_s)
        self.start_stage(at_s, keep_evidence=False)

    def shift(self, was_s: float, now_s: float, *, meter: bool = True) -> None:
        """The clock was set from one moment to another, at one: everything goes on as if it had always been that.

        Without ``meter`` only what is collected here moves along: the meter counts in seconds of several clocks.
        """
        closed = self.timeline.next_block - 1
        self.timeline.shift(was_s, now_s)
        self.stage_s = moved(self.stage_s, was_s, now_s)
        if meter or self.meter.block == NEVER_FED:
            self.follow(closed, self.timeline.next_block - 1)

    def follow(self, was: int, now: int) -> None:
        """What counts the judged blocks moves along, as the last closed one moved: the next must not lie behind it."""
        self.meter.shift(was, now, self.spec.block_s)
        self.stage_block = moved(self.stage_block, was, now)
        if self.dispersion is not None:
            self.dispersion.shift(was, now, self.spec.block_s)

    def state(self) -> SeriesState:
        """Everything needed to continue identically."""
        return SeriesState(
            spec=self.spec,
            meter=self.meter.state(),
            evidence=self.evidence.state(),
            mean=self._mean.state,
            bad=self._bad,
            pending=tuple(block.record(number) for number, block in sorted(self.timeline.pending.items())),
            next_block=self.timeline.next_block,
            late=self.timeline.late,
            stage_s=self.stage_s,
            stage_block=self.stage_block,
            trip=self.trip,
            dispersion=self.dispersion.state() if self.dispersion else None,
        )

    def only_fed_since(self, state: SeriesState) -> bool:
        """Whether nothing but blocks came since ``state``: no trip, no stage, no other question."""
        now = (self.spec, self.stage_s, self.trip, self.meter.trips)
        return now == (state.spec, state.stage_s, state.trip, state.meter.trips)

    def restore(self, state: SeriesState, *, foreign: bool = False) -> None:
        """Continue from a stored state of the same stakes (see ``SeriesSpec.same_stakes``).

        If blocks have another length now, blocks that were still open cannot be cut anew; their counts are dropped as
        late. ``foreign``: another process collected for that state, so what is open here stays, and what was open
        there does not come along.
        """
        if not self.spec.same_stakes(state.spec):
            raise ValueError("stored under another limit, form, feed or ratio: its money must not bet here")
        if state.spec.block_s != self.spec.block_s:
            state = recut(state, self.spec.block_s)
        self.meter.restore(state.meter)
        self.evidence.restore(state.evidence)
        self._mean.state = state.mean
        self._bad = state.bad
        if not foreign:
            self.timeline.next_block = state.next_block
            self.timeline.late = state.late
            self.timeline.pending = {}
            for record in state.pending:
                self.absorb(record)
        self.stage_s = state.stage_s
        self.stage_block = state.stage_block
        self.trip = state.trip
        if self.dispersion is not None and state.dispersion is not None:
            self.dispersion.restore(state.dispersion)
