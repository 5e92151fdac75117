"""The rollout engine: evidence in, proposals of transitions out. One object, synchronous, time as an argument.

Owns the judge, the buckets that run, and the order of one turn: feed what is ripe, answer trips (twin rule, critical
guards, brake), then ask what may advance. It proposes; a proposal takes effect here only once its caller has stored it
(``accept``). The service around it (``rollouts_service``) does storing, telling workers and people; the rehearsal
drives the same engine with simulated outcomes.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

import structlog

from gateway.control.rollouts_buckets import Buckets
from gateway.control.rollouts_due import Moment, due_events
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
from gateway.control.scoring import Scored
from gateway.control.series import Counter
from gateway.core.consequence import Consequence
from gateway.core.evidence import Budget, Judge, JudgeState, KeyedBlock, SeriesKey
from gateway.core.evidence.pairs import PairLoss
from gateway.core.quality import Inspection
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
from gateway.model.messages import Starts
from gateway.model.outcome import Outcome
from gateway.model.pair import Pair
from gateway.model.table import Table

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
        self.faults = Counter(
            "quantgate_rollout_faults_total", "Buckets' turns that failed; see the log.", ("rollout",)
        )
        self._surroundings = surroundings
        self._fingerprint = b""
        self._waiting: JudgeState | None = None
        self._starts: dict[tuple[str, str, int], int] = {}
        self._incidents: dict[Key, float] = {}

    @property
    def standings(self) -> dict[Key, Standing]:
        """Where every bucket stands, also of rollouts that the policy has no more."""
        return self.buckets.standings

    @property
    def runs(self) -> dict[Key, Run]:
        """The buckets that are watched."""
        return self.buckets.runs

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
        if state is not None:
            self._waiting, self.metered_s = state.judge, state.at_s
        self.restored = True
        self._rebuild(self.judge.budget, now_s)
        self.buckets.restore_turns(state.turns if state is not None else {})
        self._begin_stages_since(self.metered_s)

    def adopt(self, standing: Standing, now_s: float) -> None:
        """Another gateway changed it: its word holds."""
        self.buckets.adopt(self.judge, standing, now_s)

    def take_over(self, state: EngineState) -> None:
        """Another gateway's meters are newer than what was found here: go on from them."""
        _log.info("meters_taken_over", of=state.at_s, had=self.metered_s)
        self.metered_s = state.at_s
        self.judge.restore(state.judge, foreign=True)
        self.buckets.restore_turns(state.turns)
        self._begin_stages_since(state.at_s)

    def _begin_stages_since(self, at_s: float) -> None:
        """Stages that are younger than the meters: evidence of the stage before must not pass for theirs."""
        for run in self.runs.values():
            if 0.0 < at_s < run.standing.stage_since_s:
                run.adopt(None, run.standing)

    def _rebuild(self, budget: Budget, now_s: float) -> None:
        """All series anew under the policy in force; money stays wherever the question is the same."""
        state = self._waiting or self.judge.state()
        self.judge = Judge(budget)
        self.buckets.rebuild(self.judge, now_s)
        self.judge.restore(state)
        # Before the standings are known no series is registered, and the stored money must not be lost to that.
        self._waiting = None if self.restored else self._waiting

    # what happens to requests

    def take_starts(self, message: Starts) -> None:
        """Dispatches that workers announce. They are told to the judge before anything that became of them."""
        for start in message.counts:
            at = (start.bucket, start.pool, start.second)
            self._starts[at] = self._starts.get(at, 0) + start.number

    def _announce(self) -> None:
        starts, self._starts = self._starts, {}
        for (bucket, pool, second), number in starts.items():
            told: set[SeriesKey] = set()  # two rollouts of a bucket may have one baseline
            for run in self.buckets.of(bucket):
                run.feed.start(second, pool, number, told)

    def take_outcomes(self, batch: Sequence[Outcome], now_s: float) -> None:
        """Finished requests, as they come from the workers."""
        self._announce()
        by_run: dict[Run, list[Outcome]] = {}
        for outcome in batch if self.restored else ():
            run = self.buckets.met(self.judge, outcome, now_s) if outcome.kind.rollout else None
            if run is not None:
                by_run.setdefault(run, []).append(outcome)
        for run, outcomes in by_run.items():
            run.feed.take_outcomes(outcomes)

    def take_unchecked(self, batch: Sequence[Outcome]) -> None:
        """The same requests, where nobody will look into the answers."""
        by_run: dict[Run, list[Outcome]] = {}
        for outcome in batch:
            run = self.buckets.known(outcome)
            if run is not None:
                by_run.setdefault(run, []).append(outcome)
        for run, outcomes in by_run.items():
            run.feed.take_unchecked(outcomes)

    def take_scored(self, batch: Sequence[Scored], now_s: float) -> None:
        """The same requests, with texts, once they were checked or will not be."""
        for scored in batch:
            run = self.buckets.known(scored.outcome)
            if run is not None:
                run.feed.take_checked(scored.outcome, scored.inspection, now_s)

    def take_consequence(self, found: Consequence, bad: float, now_s: float) -> None:
        """What became known of an earlier answer: like the answer, it speaks of the rollout that it took part in."""
        run = self.buckets.named(found.subject.rollout, found.subject.bucket)
        if run is not None:
            run.feed.take_consequence(found, bad, now_s)

    def take_pair(
        self, pair: Pair, loss: PairLoss | None, baseline: Inspection | None = None, candidate: Inspection | None = None
    ) -> None:
        """A compared shadow pair, with what the checks found in both answers."""
        for run in self.buckets.of(pair.bucket):
            run.feed.take_pair(pair, loss, baseline, candidate)

    def take_gap(self, pair: Pair, mean_nats: float) -> None:
        """A shadow pair scored by likelihood: nats per token that the candidate is worse."""
        for run in self.buckets.of(pair.bucket):
            run.feed.take_gap(pair, mean_nats)

    # one turn

    def collect(self, now_s: float) -> list[KeyedBlock]:
        """Blocks that are ripe here, for a turn that feeds what all gateways saw of them."""
        self._announce()
        for run in self.runs.values():
            guarded(self.faults, run, partial(run.feed.advance, now_s))
        return self.judge.collect(now_s)

    def turn(self, now_s: float, blocks: Iterable[KeyedBlock] | None = None) -> list[Proposal]:
        """Feed what is ripe, or ``blocks``, and propose what follows; rollbacks come first. About once a second."""
        fed = self.collect(now_s) if blocks is None else blocks
        trips = self.judge.feed(fed, now_s, observer(self.runs.values()))
        answers = answer_trips(self.judge, self.brake, self.runs, trips, now_s)
        self._incidents.update({at: now_s for at, event in answers.items() if event.kind is EventKind.INCIDENT})
        proposals = [found for at, event in answers.items() if (found := self.propose(at, event)) is not None]
        taken = {proposal.key for proposal in proposals}
        braked = self.brake.engaged_s is not None
        calm = self.brake.over(now_s)
        for at, run in self.runs.items():
            if at in taken:
                continue
            routine = partial(self._routine, at, run, now_s, braked=braked, calm=calm)
            found = guarded(self.faults, run, routine)
            if found is not None:
                proposals.append(found)
        return sorted(proposals, key=lambda proposal: proposal.stepped.standing.state is not State.ROLLED_BACK)

    def _routine(self, at: Key, run: Run, now_s: float, *, braked: bool, calm: bool) -> Proposal | None:
        """What follows for one bucket that did not trip."""
        candidate = run.plan.candidate
        moment = Moment(
            now_s,
            self.buckets.records.get(candidate, run.standing.record),
            self._incidents.get(at, 0.0),
            ready=self._surroundings.ready(candidate),
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
        run.standing = standing
        if standing.state in (State.ROLLED_BACK, State.PENDING):
            run.leave_slices(proposal.event.at_s)
        for effect in proposal.stepped.effects:
            if isinstance(effect, StartStage):
                run.start_stage(effect, proposal.event.at_s)

    def state(self, now_s: float) -> EngineState:
        """To be stored now and then, and at the end."""
        self.metered_s = now_s
        return EngineState(self._waiting or self.judge.state(), now_s, self.buckets.turns())
