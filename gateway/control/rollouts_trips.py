"""What trips lead to: the twin rule, critical guards, slices, and the brake when many buckets trip together.

Owns the answer to every latched trip as an event per bucket. A trip stays latched in its series until it is answered,
so that one that could not be stored is answered again. Called by the engine, once a turn.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from gateway.control.rollouts_effect import EVERYTHING
from gateway.control.rollouts_runs import Run
from gateway.core.evidence import STAGE_LUMP, Judge, Response, Series, SeriesKey, SeriesTrip
from gateway.core.evidence.twin import TripDecision
from gateway.core.rollout import Assessment, Brake, Event, EventKind, State, Tripped

Key = tuple[str, str]

GAINED = 2.0
"""So many times the money that a bucket's meter was given, by one lump at least: its own outcomes speak against it."""

BESIDE = "held beside a slice"
"""How the reason of such a hold begins."""


class Blame(NamedTuple):
    """The trip that decides for a bucket, in words; ``others`` tripped with it."""

    key: SeriesKey
    decision: TripDecision
    critical: bool
    words: str
    others: tuple[SeriesKey, ...] = ()


def answer_trips(
    judge: Judge, brake: Brake, runs: Mapping[Key, Run], trips: Sequence[SeriesTrip], now_s: float
) -> dict[Key, Event]:
    """One event for each bucket that tripped, and for all others if the brake goes on."""
    blamed = _blamed(judge, brake, runs, trips, now_s)
    if not blamed:
        return {}
    assessment = brake.assess(now_s, sum(run.standing.watched for run in runs.values()))
    answers: dict[Key, Event] = {}
    for at, blame in blamed.items():
        why = _innocent(judge, blame, assessment)
        if why is None:
            answers[at] = Event(EventKind.FAIL, now_s, f"{blame.words}; {blame.decision.reason}")
        else:
            answers[at] = Event(EventKind.INCIDENT, now_s, f"{blame.words}; {why}")
            # All of them: one left latched would be asked again when the baseline's trip is an hour ago.
            for key in (blame.key, *blame.others):
                judge.acknowledge(key)
    _hold_beside_slices(runs, blamed, answers, now_s)
    if assessment.engaged:
        for at in runs:
            answers.setdefault(at, Event(EventKind.BRAKE, now_s, assessment.reason))
    return answers


def _blamed(
    judge: Judge, brake: Brake, runs: Mapping[Key, Run], trips: Sequence[SeriesTrip], now_s: float
) -> dict[Key, Blame]:
    blamed: dict[Key, Blame] = {}
    for at, key, critical in _tripped(judge, runs, trips, now_s):
        decision = judge.decide(key, runs[at].plan.baseline, now_s)
        hold = decision.response is Response.HOLD
        known = blamed.get(at)
        # The first that blames the pool is named: later ones of the same turn say the same less directly.
        undecided = known is None or (known.decision.response is Response.HOLD and not known.critical)
        if known is None or (undecided and (not hold or critical)):
            others = () if known is None else (*known.others, known.key)
            blamed[at] = Blame(key, decision, critical, _describe(judge, key), others)
        else:
            blamed[at] = known._replace(others=(*known.others, key))
        brake.note(Tripped(now_s, *at, hold))
    return blamed


def _innocent(judge: Judge, blame: Blame, assessment: Assessment) -> str | None:
    """Why the pool is not to blame; None if it is. Critical and relative guards decide alone."""
    if blame.critical:
        return None
    if blame.decision.response is Response.HOLD:
        return blame.decision.reason
    if assessment.platform and not judge.series(blame.key).spec.form.relative:
        return assessment.reason
    return None


def _tripped(
    judge: Judge, runs: Mapping[Key, Run], trips: Sequence[SeriesTrip], now_s: float
) -> Iterator[tuple[Key, SeriesKey, bool]]:
    """Every latched trip of a candidate, and of slices its buckets are in. Baselines' trips only inform twins."""
    for trip in trips:
        yield from _slice_trip(judge, runs, trip.key, now_s)
    for at, run in runs.items():
        for one, key in run.series_keys():
            if judge.series(key).trip is None:
                continue
            if key.pool != run.plan.candidate or run.standing.state is State.PENDING:
                judge.acknowledge(key)  # a pool that has no traffic yet did not earn it: it was the one before
            elif run.standing.state is not State.ROLLED_BACK:
                yield at, key, one.guard.critical


def _slice_trip(
    judge: Judge, runs: Mapping[Key, Run], key: SeriesKey, now_s: float
) -> Iterator[tuple[Key, SeriesKey, bool]]:
    """The buckets of a tripped slice that lost by themselves as well; all of them if none stands out.

    A bucket that tripped alone explains its slice: then the others are not touched.
    """
    if not _is_slice(key):
        return
    members = {
        at: run
        for at, run in runs.items()
        if run.plan.candidate == key.pool and run.in_slice(key.bucket) and run.standing.watched
    }
    if not any(run.tripped() for run in members.values()):
        own = {at: SeriesKey(key.guard, run.standing.bucket, key.pool) for at, run in members.items()}
        suspect = [at for at in members if _gained(judge.series(own[at]), now_s)]
        for at in suspect or members:
            yield at, key, False
    judge.acknowledge(key)


def _gained(series: Series, now_s: float) -> bool:
    given = max(STAGE_LUMP, series.unearned_at(now_s))
    return series.total_at(now_s) > GAINED * given


def _hold_beside_slices(
    runs: Mapping[Key, Run], blamed: Mapping[Key, Blame], answers: dict[Key, Event], now_s: float
) -> None:
    """A slice that is rolled back holds the pool's other buckets, in it and beside it, until somebody looks."""
    slices: Iterable[Blame] = [
        blame for at, blame in blamed.items() if _is_slice(blame.key) and answers[at].kind is EventKind.FAIL
    ]
    for blame in slices:
        for at, run in runs.items():
            if run.plan.candidate == blame.key.pool and at not in answers:
                answers[at] = Event(EventKind.BESIDE, now_s, f"{BESIDE}: {blame.words}")


def _is_slice(key: SeriesKey) -> bool:
    return key.bucket == EVERYTHING or key.bucket.startswith(("task=", "length="))


def _describe(judge: Judge, key: SeriesKey) -> str:
    series = judge.series(key)
    limit = f", limit {series.spec.limit:.3g}" if series.spec.limit else ""
    trip = series.trip
    reached = f"; the meter reached {trip.total:.3g}" if trip is not None else ""
    return f"{key} tripped: {series.bad:g} bad of {series.evidence.number} since its evidence began{limit}{reached}"
