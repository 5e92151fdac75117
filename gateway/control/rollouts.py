"""The rollout engine: evidence in, proposals of transitions out. One object, synchronous, time as an argument.

Owns the judge, the buckets that run, and the order of one turn: feed what is ripe, answer trips (twin rule, critical
guards, brake), then ask what may advance. It proposes; a proposal takes effect here only once its caller has stored it
(``accept``). The service around it (``rollouts_service``) does storing, telling workers and people; the rehearsal
drives the same engine with simulated outcomes.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial

import structlog

from gateway.control.rollouts_buckets import Buckets
from gateway.control.rollouts_clock import STEP_S, fed_until
from gateway.control.rollouts_due import Moment, due_events
from gateway.control.rollouts_intake import Intake
from gateway.control.rollouts_record import evidence_of, packed
from gateway.control.rollouts_runs import Run, observer
from gateway.control.rollouts_trips import answer_trips
from gateway.control.rollouts_values import (
    EngineState,
    Key,
    Proposal,
    Surroundings,
    fingerprint_of,
    guarded,
    guards_of,
    share_of_requests,
)
from gateway.control.series import Counter
from gateway.core.evidence import Budget, Judge, JudgeState, KeyedBlock
from gateway.core.rollout import (
    Brake,
    Event,
    EventKind,
    Standing,
    StartStage,
    State,
    Stepped,
    step,
)
from gateway.model.table import Table

_OUT = (State.ROLLED_BACK, State.PAUSED)  # nothing is wanted of the candidate

_log = structlog.get_logger("control.rollouts")


class Engine:
    """Every running bucket of every rollout. Keys are (rollout identity, bucket)."""

    def __init__(self, surroundings: Surroundings) -> None:
        self.judge = Judge(Budget())
        self.brake = Brake()
        self.buckets = Buckets()
        self.policy = ""
        self.salt = ""
        self.restored = False
        self.metered_s = 0.0
        self.was_ahead = False
        self.faults = Counter(
            "quantgate_rollout_faults_total", "Buckets' turns that failed; see the log.", ("rollout",)
        )
        self._surroundings = surroundings
        self._fingerprint = b""
        self._intake = intake = Intake(self.buckets, lambda: self.judge, lambda: self.restored)
        self.take_starts, self.take_outcomes = intake.take_starts, intake.take_outcomes
        self.take_unchecked, self.take_scored = intake.take_unchecked, intake.take_scored
        self.take_consequence, self.take_pair, self.take_gap = (
            intake.take_consequence,
            intake.take_pair,
            intake.take_gap,
        )

    @property
    def standings(self) -> dict[Key, Standing]:
        """Where every bucket stands, also of rollouts that the policy has no more."""
        return self.buckets.standings

    @property
    def runs(self) -> dict[Key, Run]:
        """The buckets that are watched."""
        return self.buckets.runs

    def absence(self, standing: Standing) -> str:
        """Why the candidate serves nothing of a bucket; empty if it does, or is not to."""
        return "" if standing.state in _OUT else self._surroundings.absence(standing.candidate)

    def awaited(self) -> Iterator[tuple[Standing, str]]:
        """The buckets that wait for evidence of a candidate that serves nothing, each with why. Of many buckets with
        one candidate, its endpoints are looked at once."""
        found = {plan.candidate: self._surroundings.absence(plan.candidate) for plan in self.buckets.plans.values()}
        for standing in self.buckets.in_force():
            words = found.get(standing.candidate, "")
            if words and standing.watched and standing.state not in _OUT:
                yield standing, words

    # what comes into force

    def apply(self, table: Table, budget: Budget, records: Mapping[str, str], now_s: float) -> None:
        """A policy came into force; ``records`` are the deployment records' hashes by pool."""
        self.policy = table.digest
        self.buckets.apply(table, records)
        fingerprint = fingerprint_of(table, budget)
        if fingerprint != self._fingerprint:
            self._fingerprint = fingerprint
            self.salt = guards_of(table)
            self._rebuild(budget, now_s)

    def restore(self, standings: Iterable[Standing], state: EngineState | None, now_s: float) -> None:
        """Take up what was stored. Nothing begins before."""
        self.standings.update({(one.identity, one.bucket): one for one in standings})
        self.restored = True
        self._rebuild(self.judge.budget, now_s, state.judge if state is not None else None)
        if state is not None:
            self.metered_s = state.at_s
            self.buckets.restore_turns(state.turns)
            self.buckets.restore_open(state.open)
            self.buckets.begin_stages_since(state.stages, state.at_s, now_s)
        if self.metered_s > now_s + STEP_S:
            _log.warning("clock_was_ahead", by_s=round(self.metered_s - now_s, 3))
            self.was_ahead = True
            # Beside gateways whose clocks were right, meters were fed no further than theirs.
            self.shift(self.metered_s, now_s, meters=fed_until(self.judge.state()) > now_s)
        frozen = [run.since(now_s)[0] for run in self.runs.values() if run.standing.state is State.FROZEN]
        self.brake.engaged_s = max(frozen, default=None)

    def shift(self, was_s: float, now_s: float, *, meters: bool = True) -> None:
        """The clock was set from one moment to another: all that holds moments moves along.

        Without ``meters`` they count by other gateways' clocks too.
        """
        self._intake.announce()  # dispatches of before belong to the blocks that move
        self._intake.stamps.stepped(was_s, now_s)
        self.judge.shift(was_s, now_s, meters=meters)
        self.brake.shift(was_s, now_s)
        self.metered_s += now_s - was_s
        for run in self.runs.values():
            run.shift(was_s, now_s)

    def adopt(self, standing: Standing, now_s: float) -> None:
        """Another gateway changed it: its word holds."""
        self.buckets.adopt(self.judge, standing, now_s)

    def take_over(self, state: EngineState, now_s: float) -> None:
        """Another gateway's meters are newer than what was found here: go on from them."""
        _log.info("meters_taken_over", of=state.at_s, had=self.metered_s)
        self.metered_s = state.at_s
        self.judge.restore(state.judge, foreign=True)
        self.buckets.restore_turns(state.turns)
        self.buckets.begin_stages_since(state.stages, state.at_s, now_s)

    def _rebuild(self, budget: Budget, now_s: float, stored: JudgeState | None = None) -> None:
        """All series anew under the policy in force; money stays wherever the question is the same."""
        state = stored or self.judge.state()
        self.judge = Judge(budget)
        self.buckets.rebuild(self.judge, now_s)
        self.judge.restore(state)

    # one turn

    def collect(self, now_s: float) -> list[KeyedBlock]:
        """Blocks that are ripe here, for a turn that feeds what all gateways saw of them."""
        self._intake.announce()
        for run in self.runs.values():
            guarded(self.faults, run, partial(run.feed.advance, now_s))
        return self.judge.collect(now_s)

    def turn(self, now_s: float, blocks: Iterable[KeyedBlock] | None = None) -> list[Proposal]:
        """Feed what is ripe, or ``blocks``, and propose what follows; rollbacks come first. About once a second."""
        fed = self.collect(now_s) if blocks is None else blocks
        trips = self.judge.feed(fed, now_s, observer(self.runs.values()))
        answers = answer_trips(self.judge, self.brake, self.runs, trips, now_s)
        for at, event in answers.items():
            if event.kind in (EventKind.INCIDENT, EventKind.BESIDE):
                self.runs[at].incident_s = now_s
        proposals = [found for at, event in answers.items() if (found := self.propose(at, event)) is not None]
        taken = {proposal.key for proposal in proposals}
        self._intake.stamps.see(now_s)
        calm, braked = self.brake.over(now_s), self.brake.engaged_s is not None
        candidates = {run.plan.candidate for run in self.runs.values()}
        serving = {name for name in candidates if not self._surroundings.absence(name)}
        for at, run in self.runs.items():
            if at in taken:
                continue
            serves = run.plan.candidate in serving
            routine = partial(self._routine, at, run, now_s, serves=serves, braked=braked, calm=calm)
            found = guarded(self.faults, run, routine)
            if found is not None:
                proposals.append(found)
        return sorted(proposals, key=lambda proposal: proposal.stepped.standing.state is not State.ROLLED_BACK)

    def _routine(self, at: Key, run: Run, now_s: float, *, serves: bool, braked: bool, calm: bool) -> Proposal | None:
        """What follows for one bucket that did not trip."""
        candidate = run.plan.candidate
        moment = Moment(
            now_s,
            self.buckets.records.get(candidate, run.standing.record),
            run.incident_s,
            ready=self._surroundings.ready(candidate),
            serves=serves,
            braked=braked,
            calm=calm,
        )
        for event in due_events(run, moment):
            found = self.propose(at, event)
            if found is not None:
                return found
        return None

    # proposals

    def restage(self, now_s: float, asked: Iterable[Key] = ()) -> list[Proposal]:
        """Where buckets go on in stages that a reload changed; ``asked`` also where another gateway's differ."""
        event = Event(EventKind.RELOADED, now_s, "the policy's stages changed")
        found = {at: self.propose(at, event) for at in sorted(self.buckets.unplaced.union(asked))}
        self.buckets.unplaced = {at for at, proposal in found.items() if proposal is not None}
        return [proposal for proposal in found.values() if proposal is not None]

    def command(self, at: Key, event: Event) -> Proposal | str:
        """What a person asks for: a proposal, or why not."""
        standing = self.standings.get(at)
        plan = self.buckets.plans.get(at[0])
        if standing is None or plan is None:
            return "no such bucket of that rollout is known"
        stepped = step(standing, event, plan)
        if not stepped.effects:
            return stepped.refusal or stepped.why
        return self._proposal(at, stepped, event)

    def propose(self, at: Key, event: Event) -> Proposal | None:
        """What an event leads to; None if to nothing."""
        if at[0] not in self.buckets.plans:
            return None
        stepped = step(self.standings[at], event, self.buckets.plans[at[0]])
        return self._proposal(at, stepped, event) if stepped.effects else None

    def _proposal(self, at: Key, stepped: Stepped, event: Event) -> Proposal:
        run = self.runs.get(at)
        if run is None:
            return Proposal(at, stepped, event, packed({}))
        room = None
        if run.standing.live and stepped.standing.share_bp < run.standing.share_bp:
            room = self._surroundings.headroom(run.plan, share_of_requests(run, self.runs.values()))
        evidence = evidence_of(run, event.at_s, room.words if room is not None else "")
        return Proposal(at, stepped, event, packed(evidence))

    def accept(self, proposal: Proposal) -> None:
        """It is stored: it holds here as well."""
        standing = proposal.stepped.standing
        self.standings[proposal.key] = standing
        if proposal.event.kind is EventKind.RELOADED:
            self.buckets.unplaced.discard(proposal.key)
        if (run := self.runs.get(proposal.key)) is None:
            return
        at_s = self._intake.stamps.moment(proposal.event.at_s)  # the clock may have been set while it was stored
        run.accept(standing, proposal.event.at_s, at_s)
        if standing.state in (State.ROLLED_BACK, State.PENDING):
            run.leave_slices(at_s)
        for effect in proposal.stepped.effects:
            if isinstance(effect, StartStage):
                run.start_stage(effect, at_s)

    def state(self, now_s: float, *, whole: bool = True) -> EngineState:
        """To be stored now and then, and at the end; not ``whole``: without what is open here alone."""
        self._intake.announce()
        self.metered_s = now_s
        found = self.buckets
        return EngineState(self.judge.state(), now_s, found.turns(), found.open() if whole else {}, found.stages())
