"""The judge: every series of the fleet, one budget, and answers to "what must leave, what may advance".

Owns registration against the budget's slots, the routing of outcomes into slices, the lumps' ledger, the twin rule's
lookup and the state that survives a restart. Decides and returns values; the rollout engine obeys. Time is an
argument. Must not know stages' order, persistence or metrics.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import msgspec

from gateway.core.evidence.blocks import ONLY_LANE, BlockRecord
from gateway.core.evidence.budget import Budget, Ledger, LedgerState
from gateway.core.evidence.promotion import PromotionRule, Verdict, decide_promotion
from gateway.core.evidence.readings import Form
from gateway.core.evidence.series import Series
from gateway.core.evidence.twin import TripDecision, TwinStanding, decide_trip
from gateway.core.evidence.values import FedBlock, SeriesKey, SeriesSpec, SeriesState, Trip


class TooManySeriesError(ValueError):
    """More series than the budget has slots: a silent overdraft otherwise."""


class UnknownSeriesError(KeyError):
    """A series was used that is not registered."""


class SeriesTrip(msgspec.Struct, frozen=True):
    """A trip and whose it is."""

    key: SeriesKey
    trip: Trip


class Discarded(msgspec.Struct, frozen=True):
    """A stored series that was not taken over, and why."""

    key: SeriesKey
    reason: str


class KeyedState(msgspec.Struct, frozen=True):
    """State of one registered series."""

    key: SeriesKey
    series: SeriesState


class KeyedBlock(NamedTuple):
    """A closed block and whose it is."""

    key: SeriesKey
    record: BlockRecord


class JudgeState(msgspec.Struct, frozen=True):
    """Everything needed to continue identically after a restart, sorted by key."""

    series: tuple[KeyedState, ...]
    ledger: LedgerState


class Judge:
    """Registered series and their budget."""

    __slots__ = ("_ledger", "_series", "_slices", "budget")

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self._ledger = Ledger(budget.lumps_per_year)
        self._series: dict[SeriesKey, Series] = {}
        self._slices: dict[SeriesKey, tuple[SeriesKey, ...]] = {}

    def register(self, key: SeriesKey, spec: SeriesSpec, start_s: float, slices: Iterable[SeriesKey] = ()) -> Series:
        """Watch a series from ``start_s`` on; its outcomes also go to ``slices``, registered before, under its limit.

        Registering a known key again keeps its evidence as long as the null hypothesis is the same (limit, form, feed,
        ratio). Raises TooManySeriesError beyond the budget's slots.
        """
        wider = tuple(slices)
        for slice_key in wider:
            if self.series(slice_key).spec.form is not Form.SLICE:
                raise ValueError(f"{slice_key} is no slice: register it with Form.SLICE first")
        if wider and spec.form not in (Form.RATE, Form.SESSION):
            raise ValueError(f"{key}: only rates and session votes can go to slices, not a {spec.form} guard")
        known = self._series.get(key)
        if known is not None and known.spec == spec:
            self._slices[key] = wider
            return known
        if known is None and len(self._series) >= self.budget.slots:
            raise TooManySeriesError(
                f"{key} would be series {len(self._series) + 1} of at most {self.budget.slots}: watch fewer buckets or "
                "guards, or raise the budget's slots (every series then gets a smaller drip)"
            )
        series = Series(spec, self.budget.drip_per_s, start_s)
        if known is not None and known.spec.same_stakes(spec):
            series.restore(known.state())
        self._series[key] = series
        self._slices[key] = wider
        return series

    def forget(self, key: SeriesKey) -> None:
        """Stop watching a series and free its slot."""
        self._series.pop(key, None)
        self._slices.pop(key, None)

    def series(self, key: SeriesKey) -> Series:
        """The registered series; raises UnknownSeriesError."""
        try:
            return self._series[key]
        except KeyError:
            raise UnknownSeriesError(f"no series {key}: register it first") from None

    def keys(self) -> tuple[SeriesKey, ...]:
        """Registered series, sorted."""
        return tuple(sorted(self._series))

    def announce(self, key: SeriesKey, dispatched_s: float, count: int = 1, lane: float = ONLY_LANE) -> None:
        """Report dispatched requests to a series and its slices."""
        series = self.series(key)
        series.announce(dispatched_s, count, lane)
        for slice_series in self._slices_of(key):
            slice_series.announce(dispatched_s, count, series.spec.limit)

    def accept(
        self, key: SeriesKey, dispatched_s: float, value: float, count: int = 1, lane: float = ONLY_LANE
    ) -> bool:
        """Count outcomes by dispatch time, for a series and its slices; False if the series' block is closed."""
        series = self.series(key)
        in_time = series.accept(dispatched_s, value, count, lane)
        for slice_series in self._slices_of(key):
            slice_series.accept(dispatched_s, value, count, series.spec.limit)
        return in_time

    def accept_unscored(self, key: SeriesKey, dispatched_s: float, count: int = 1, lane: float = ONLY_LANE) -> bool:
        """Count requests that were announced and say nothing (cancelled, say), for a series and its slices.

        A slice that was not told would wait for them until its deadline, and then count them as its guard says of
        what hangs: as good ones, of errors.
        """
        series = self.series(key)
        in_time = series.accept_unscored(dispatched_s, count, lane)
        for slice_series in self._slices_of(key):
            slice_series.accept_unscored(dispatched_s, count, series.spec.limit)
        return in_time

    def absorb(self, key: SeriesKey, record: BlockRecord) -> bool:
        """Add a whole block record to a series and its slices (of the same block length)."""
        series = self.series(key)
        in_time, limit = series.absorb(record), series.spec.limit
        for slice_series in self._slices_of(key):
            slice_series.absorb(
                BlockRecord(
                    number=record.number,
                    cells=tuple((limit, value, count) for _, value, count in record.cells),
                    announced=tuple((limit, count) for _, count in record.announced),
                    unscored=record.unscored,
                    unscored_lanes=((limit, record.unscored),) if record.unscored else (),
                )
            )
        return in_time

    def _slices_of(self, key: SeriesKey) -> list[Series]:
        keys = self._slices.get(key, ())
        return [self._series[wide] for wide in keys if wide in self._series]

    def advance(self, now_s: float, observe: Callable[[SeriesKey, FedBlock], None] | None = None) -> list[SeriesTrip]:
        """Feed all blocks that are ripe at ``now_s``; returns the trips, to be answered by ``decide``.

        All series advance before any trip is returned, so a twin has seen the same moment. ``observe`` sees every fed
        block (the audit trail's history of the meters).
        """
        trips = []
        for key, series in self._series.items():
            if not series.timeline.pending:
                series.advance(now_s)
                continue
            trip = series.advance(now_s, None if observe is None else _bind(observe, key))
            if trip is not None:
                trips.append(SeriesTrip(key, trip))
        return trips

    def collect(self, now_s: float) -> list[KeyedBlock]:
        """Close all blocks that are ripe at ``now_s`` without feeding them: what this process has seen of them."""
        return [KeyedBlock(key, record) for key, series in self._series.items() for record in series.collect(now_s)]

    def held(self, now_s: float) -> dict[SeriesKey, int]:
        """Series that are behind what the time alone would have closed, with the first block that is still open."""
        found = {}
        for key, series in self._series.items():
            timeline = series.timeline
            if timeline.next_block < timeline.number_at(now_s - series.spec.lag_s):
                found[key] = timeline.next_block
        return found

    def feed(
        self,
        blocks: Iterable[KeyedBlock],
        now_s: float,
        observe: Callable[[SeriesKey, FedBlock], None] | None = None,
    ) -> list[SeriesTrip]:
        """Feed closed blocks, as all processes together have seen them, in their order; unknown series are skipped."""
        trips: dict[SeriesKey, SeriesTrip] = {}
        for key, record in blocks:
            series = self._series.get(key)
            if series is not None:
                trip = series.feed(record, now_s, None if observe is None else _bind(observe, key))
                if trip is not None:
                    trips.setdefault(key, SeriesTrip(key, trip))
        return list(trips.values())

    def decide(self, key: SeriesKey, baseline_pool: str, now_s: float) -> TripDecision:
        """Response to a trip of ``key``: roll back, or hold because the baseline is no better."""
        series = self.series(key)
        twin = self._series.get(SeriesKey(key.guard, key.bucket, baseline_pool)) if baseline_pool != key.pool else None
        standing = None if twin is None else TwinStanding(twin.total_at(now_s), twin.meter.last_trip_s)
        return decide_trip(relative=series.spec.form.relative, twin=standing, now_s=now_s)

    def start_stage(
        self, key: SeriesKey, at_s: float, lump: float, *, keep_evidence: bool = False, new_pool: bool = False
    ) -> float:
        """Begin a stage: grant the lump (the ledger may shrink it; returned), clear the trip, restart the evidence.

        ``keep_evidence`` for pairs, whose evidence does not depend on load. ``new_pool`` at shadow start, after a
        change of the pool's configuration and at re-entry: money and open blocks of the old pool are forgotten too.
        """
        series = self.series(key)
        if new_pool:
            series.reset(at_s)
        else:
            series.start_stage(at_s, keep_evidence=keep_evidence)
        granted = self._ledger.grant(lump, at_s)
        series.grant(at_s, granted)
        return granted

    def acknowledge(self, key: SeriesKey) -> None:
        """Clear a latched trip that was answered by holding; stage, evidence and money stay."""
        self.series(key).trip = None

    def verdict(self, key: SeriesKey, now_s: float, rule: PromotionRule) -> Verdict:
        """Fail, pass or not enough for the stage that began at the last ``start_stage``, with reasons."""
        series = self.series(key)
        return decide_promotion(
            tripped=series.trip is not None,
            log_evidence=series.evidence.log_value,
            number=series.evidence.number,
            stage_s=now_s - series.stage_s,
            total=series.total_at(now_s),
            rule=rule,
        )

    def lumps_granted(self, now_s: float) -> float:
        """The ledger: lumps of this year, at most half of the budget."""
        return self._ledger.granted_this_year(now_s)

    def shift(self, was_s: float, now_s: float, *, meters: bool = True) -> None:
        """The clock was set from one moment to another; see ``Series.shift``."""
        self._ledger.shift(was_s, now_s if meters else was_s)
        for series in self._series.values():
            series.shift(was_s, now_s, meter=meters)

    def state(self) -> JudgeState:
        """Everything needed to continue identically."""
        return JudgeState(
            series=tuple(KeyedState(key, series.state()) for key, series in sorted(self._series.items())),
            ledger=self._ledger.state(),
        )

    def go_back(self, state: JudgeState) -> None:
        """Forget what was fed since ``state``, for it comes again as a part of the whole; what is open here stays.

        A series that has tripped or begun a stage since then stays as it is: that was acted upon.
        """
        for kept in state.series:
            series = self._series.get(kept.key)
            if series is not None and series.only_fed_since(kept.series):
                series.restore(kept.series, foreign=True)

    def restore(self, state: JudgeState, *, foreign: bool = False) -> tuple[Discarded, ...]:
        """Take over a stored state into the series registered now; returns what could not be taken over.

        ``foreign``: it is another process's, see ``Series.restore``.
        """
        self._ledger.restore(state.ledger)
        discarded = []
        for kept in state.series:
            series = self._series.get(kept.key)
            if series is None:
                discarded.append(Discarded(kept.key, "not watched any more"))
            elif not series.spec.same_stakes(kept.series.spec):
                discarded.append(Discarded(kept.key, "limit, form, feed or ratio changed: the meter starts anew"))
            else:
                series.restore(kept.series, foreign=foreign)
        return tuple(discarded)


def _bind(observe: Callable[[SeriesKey, FedBlock], None], key: SeriesKey) -> Callable[[FedBlock], None]:
    return lambda fed: observe(key, fed)
