"""What is due for a bucket that did not trip: changed records, beginnings, verdicts, time, calm.

Owns the conditions under which the engine itself causes events. Pure but for what it asks of the run. The first event
that moves anything is taken, so the order is the order of importance. Called by the engine, once a turn and bucket.
"""

from collections.abc import Iterator

import msgspec

from gateway.control.rollouts_runs import Judged, Run
from gateway.core.evidence import Outcome
from gateway.core.evidence.twin import TWIN_QUIET_S
from gateway.core.rollout import Cause, Event, EventKind, State
from gateway.core.rollout.brake import CALM_S


class Moment(msgspec.Struct, frozen=True):
    """What holds now. ``incident_s``: when the bucket last tripped without blame. ``serves``: the candidate does."""

    now_s: float
    record: str
    incident_s: float
    ready: bool
    serves: bool
    braked: bool
    calm: bool


def due_events(run: Run, moment: Moment) -> Iterator[Event]:
    """Events in the order of importance; at most one of them will move the bucket."""
    standing, now_s = run.standing, moment.now_s
    since_s, _ = run.since(now_s)
    if moment.record != standing.record:
        yield Event(EventKind.CHANGED, now_s, "the pool's deployment record changed", record=moment.record)
    if standing.state is State.FROZEN:
        # Also where the brake let go unseen: before a restart, or while nothing could be stored.
        if moment.calm or (not moment.braked and now_s - since_s >= CALM_S):
            yield Event(EventKind.CALM, now_s, "no bucket tripped for a quarter of an hour")
    elif standing.state is State.HOLDING and standing.cause is Cause.INCIDENT:
        if now_s - max(moment.incident_s, since_s) > TWIN_QUIET_S:
            yield Event(EventKind.CALM, now_s, "the incident is over: an hour of calm")
    elif not moment.braked:
        yield from _advancing(run, moment)


def _advancing(run: Run, moment: Moment) -> Iterator[Event]:
    standing, plan, now_s = run.standing, run.plan, moment.now_s
    if standing.state is State.PENDING:
        if moment.ready:
            yield Event(EventKind.BEGIN, now_s, f"{plan.candidate} is ready", record=moment.record)
    elif standing.state is State.ROLLED_BACK:
        wait_s = plan.reentry_after_s
        if wait_s is not None and now_s - run.since(now_s)[0] >= wait_s:
            yield Event(EventKind.REENTER, now_s, f"cooled down for {wait_s:.0f} s")
    elif standing.state in (State.SHADOWING, State.STEPPING, State.HOLDING) and standing.below in (
        State.SHADOWING,
        State.STEPPING,
    ):
        yield from _verdict(run, now_s, serves=moment.serves)


def _verdict(run: Run, now_s: float, *, serves: bool) -> Iterator[Event]:
    """Whether the stage is passed, or its time is up. No data is never a pass, and a pool that is away gets no more."""
    late = now_s - run.since(now_s)[1] > run.stage.most_s
    asked: list[Judged] = []
    for judged in run.judged(now_s):
        if judged.asked:
            if judged.verdict.outcome is not Outcome.PASS and not late:
                return  # as nearly always: the first guard that has not seen enough says it for all
            asked.append(judged)
    missing = [judged for judged in asked if judged.verdict.outcome is not Outcome.PASS]
    if asked and not missing:
        if serves:
            yield Event(EventKind.PASS, now_s, _words(asked))
    elif late:
        words = _words(missing) or "no guard of the rollout is fed in this stage"
        yield Event(EventKind.TIMEOUT, now_s, f"not enough evidence after {run.stage.most_s:.0f} s: {words}")


def _words(judged: list[Judged]) -> str:
    return "; ".join(f"{one.one.name}: {one.verdict.reasons[0]}" for one in judged)
