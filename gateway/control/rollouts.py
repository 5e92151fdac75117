"""The rollout engine: evidence in, proposals of transitions out. One object, synchronous, time as an argument.

Owns the judge, the buckets that run, and the order of one turn: feed what is ripe, answer trips (twin rule, critical
guards, brake), then ask what may advance. It proposes; a proposal takes effect here only once its caller has stored it
(``accept``). The service around it (``rollouts_service``) does storing, telling workers and people; the rehearsal
drives the same engine with simulated outcomes.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

import structlog

from gateway.control.rollouts_due import Moment, due_events
from gateway.control.rollouts_runs import NoSlotError, Run, observer, packed
from gateway.control.rollouts_trips import answer_trips
from gateway.control.rollouts_values import (
    EngineState,
    Key,
    Proposal,
    Surroundings,
    fingerprint_of,
    guarded,
    share_of_requests,
)
from gateway.control.scoring import Scored
from gateway.control.series import Counter
from gateway.core.consequence import Consequence
from gateway.core.evidence import Budget, Judge, JudgeState
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
    begin_standing,
    step,
)
from gateway.model.messages import Starts
from gateway.model.outcome import Outcome
from gateway.model.pair import Pair
from gateway.model.proving import Guard, Rollout
from gateway.model.table import Table

BUCKETS_MOST = 2_000

_log = structlog.get_logger("control.rollouts")


class Engine:
    """Every running bucket of every rollout. Keys are (rollout identity, bucket)."""

    def __init__(self, surroundings: Surroundings) -> None:
        self.judge = Judge(Budget())
        self.brake = Brake()
        self.runs: dict[Key, Run] = {}
        self.standings: dict[Key, Standing] = {}
        self.policy = ""
        self.restored = False
        self.refused: dict[Key, str] = {}
        self.faults = Counter(
            "quantgate_rollout_faults_total", "Buckets' turns that failed; see the log.", ("rollout",)
        )
        self._surroundings = surroundings
        self._plans: dict[str, Rollout] = {}
        self._identities: dict[str, str] = {}
        self._guards: Mapping[str, Guard] = {}
        self._records: Mapping[str, str] = {}
        self._fingerprint = b""
        self._by_bucket: dict[str, list[Run]] = {}
        self._waiting: JudgeState | None = None
        self._incidents: dict[Key, float] = {}

    # what comes into force

    def apply(self, table: Table, budget: Budget, records: Mapping[str, str], now_s: float) -> None:
        """A policy came into force; ``records`` are the deployment records' hashes by pool."""
        self.policy = table.digest
        self._records = records
        self._plans = {plan.identity: plan for plan in table.rollouts}
        self._identities = {plan.name: plan.identity for plan in table.rollouts}
        self._guards = table.guards
        fingerprint = fingerprint_of(table, budget)
        if fingerprint != self._fingerprint:
            self._fingerprint = fingerprint
            self._rebuild(budget, now_s)

    def restore(self, standings: Iterable[Standing], state: EngineState | None, now_s: float) -> None:
        """Take up what was stored. Nothing begins before."""
        self.standings.update({(one.identity, one.bucket): one for one in standings})
        self._waiting = state.judge if state is not None else self._waiting
        self.restored = True
        self._rebuild(self.judge.budget, now_s)

    def adopt(self, standing: Standing, now_s: float) -> None:
        """Another replica changed it: its word holds."""
        key = (standing.identity, standing.bucket)
        before = self.standings.get(key)
        self.standings[key] = standing
        run = self.runs.get(key)
        if run is None:
            self._add(standing, now_s)
            return
        run.standing = standing
        if before is not None and standing.stage_since_s != before.stage_since_s and standing.watched:
            run.start_stage(StartStage(new_pool=standing.stage == 0), now_s)

    def _rebuild(self, budget: Budget, now_s: float) -> None:
        """All series anew under the policy in force; money stays wherever the question is the same."""
        state = self._waiting or self.judge.state()
        self.judge = Judge(budget)
        self.runs, self._by_bucket, self.refused = {}, {}, {}
        for standing in sorted(self.standings.values(), key=lambda one: (one.identity, one.bucket)):
            self._add(standing, now_s)
        self.judge.restore(state)
        # Before the standings are known no series is registered, and the stored money must not be lost to that.
        self._waiting = None if self.restored else self._waiting
        for run in self.runs.values():
            run.reloaded = True

    def _add(self, standing: Standing, now_s: float) -> Run | None:
        plan = self._plans.get(standing.identity)
        if plan is None:
            return None
        try:
            run = Run(self.judge, plan, standing, dict(self._guards), now_s)
        except NoSlotError as error:
            self.refused[standing.identity, standing.bucket] = str(error)
            _log.error("no_slots", rollout=plan.name, bucket=standing.bucket, why=str(error))
            return None
        self.runs[standing.identity, standing.bucket] = run
        self._by_bucket.setdefault(standing.bucket, []).append(run)
        return run

    # what happens to requests

    def take_starts(self, message: Starts) -> None:
        """Dispatches that workers announce."""
        for start in message.counts:
            for run in self._by_bucket.get(start.bucket, ()):
                run.feed.start(start.second, start.pool, start.number)

    def take_outcomes(self, batch: Sequence[Outcome], now_s: float) -> None:
        """Finished requests, as they come from the workers."""
        for outcome in batch:
            run = self._run_of(outcome, now_s)
            if run is not None:
                run.feed.take_outcome(outcome)

    def take_scored(self, batch: Sequence[Scored], now_s: float) -> None:
        """The same requests once they were checked, or will not be."""
        for scored in batch:
            run = self._known(scored.outcome)
            if run is not None:
                run.feed.take_checked(scored.outcome, scored.inspection, now_s)

    def take_consequence(self, found: Consequence, bad: float, now_s: float) -> None:
        """What became known of an earlier answer."""
        for run in self._by_bucket.get(found.subject.bucket, ()):
            run.feed.take_consequence(found, bad, now_s)

    def take_pair(
        self, pair: Pair, loss: PairLoss | None, baseline: Inspection | None = None, candidate: Inspection | None = None
    ) -> None:
        """A compared shadow pair, with what the checks found in both answers."""
        for run in self._by_bucket.get(pair.bucket, ()):
            run.feed.take_pair(pair, loss, baseline, candidate)

    def take_gap(self, pair: Pair, mean_nats: float) -> None:
        """A shadow pair scored by likelihood: nats per token that the candidate is worse."""
        for run in self._by_bucket.get(pair.bucket, ()):
            run.feed.take_gap(pair, mean_nats)

    def _known(self, outcome: Outcome) -> Run | None:
        identity = self._identities.get(outcome.rollout)
        return self.runs.get((identity, outcome.bucket)) if identity is not None else None

    def _run_of(self, outcome: Outcome, now_s: float) -> Run | None:
        """The run of a request that took part in a rollout; a new bucket is met here."""
        if not outcome.rollout or not self.restored:
            return None
        run = self._known(outcome)
        identity = self._identities.get(outcome.rollout)
        if run is not None or identity is None or len(self.standings) >= BUCKETS_MOST:
            return run
        key = (identity, outcome.bucket)
        if key not in self.standings:
            plan = self._plans[identity]
            slices = (f"task={outcome.task}", f"length={outcome.length}")
            record = self._records.get(plan.candidate, "")
            self.standings[key] = begin_standing(plan, outcome.bucket, record, now_s, slices)
            return self._add(self.standings[key], now_s)
        return None

    # one turn

    def turn(self, now_s: float) -> list[Proposal]:
        """Feed what is ripe and propose what follows; rollbacks come first. About once a second."""
        for run in self.runs.values():
            guarded(self.faults, run, partial(run.feed.advance, now_s))
        trips = self.judge.advance(now_s, observer(self.runs.values()))
        answers = answer_trips(self.judge, self.brake, self.runs, trips, now_s)
        self._incidents.update({at: now_s for at, event in answers.items() if event.kind is EventKind.INCIDENT})
        proposals = [found for at, event in answers.items() if (found := self._propose(at, event)) is not None]
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
            self._records.get(candidate, run.standing.record),
            self._incidents.get(at, 0.0),
            ready=self._surroundings.ready(candidate),
            braked=braked,
            calm=calm,
        )
        for event in due_events(run, moment):
            found = self._propose(at, event)
            if found is not None:
                return found
        return None

    # proposals

    def command(self, at: Key, event: Event) -> Proposal | str:
        """What a person asks for: a proposal, or why not."""
        standing = self.standings.get(at)
        plan = self._plans.get(at[0])
        if standing is None or plan is None:
            return "no such bucket of that rollout is known"
        stepped = step(standing, event, plan)
        if not stepped.effects:
            return stepped.refusal or stepped.why
        return self._proposal(at, stepped, event)

    def _propose(self, at: Key, event: Event) -> Proposal | None:
        stepped = step(self.standings[at], event, self._plans[at[0]])
        return self._proposal(at, stepped, event) if stepped.effects else None

    def _proposal(self, at: Key, stepped: Stepped, event: Event) -> Proposal:
        run = self.runs.get(at)
        if run is None:
            return Proposal(at, stepped, event, packed({}))
        room = None
        if run.standing.live and stepped.standing.share_bp < run.standing.share_bp:
            room = self._surroundings.headroom(run.plan, share_of_requests(run, self.runs.values()))
        evidence = run.evidence(event.at_s, room.words if room is not None else "")
        return Proposal(at, stepped, event, packed(evidence))

    def accept(self, proposal: Proposal) -> None:
        """It is stored: it holds here as well."""
        standing = proposal.stepped.standing
        self.standings[proposal.key] = standing
        if (run := self.runs.get(proposal.key)) is None:
            return
        run.standing = standing
        if standing.state in (State.ROLLED_BACK, State.PENDING):
            run.leave_slices(proposal.event.at_s)
        for effect in proposal.stepped.effects:
            if isinstance(effect, StartStage):
                run.start_stage(effect, proposal.event.at_s)

    def shares(self) -> dict[str, dict[str, int]]:
        """What workers must obey: rollout identity → bucket → share."""
        found: dict[str, dict[str, int]] = {}
        for (identity, bucket), standing in self.standings.items():
            if identity in self._plans:
                found.setdefault(identity, {})[bucket] = standing.share_bp
        return found

    def plan(self, identity: str) -> Rollout | None:
        """A rollout of the policy in force."""
        return self._plans.get(identity)

    def plans(self) -> Iterable[Rollout]:
        """All rollouts of the policy in force."""
        return self._plans.values()

    def identity(self, rollout: str) -> str | None:
        """By its name in the policy in force."""
        return self._identities.get(rollout)

    def state(self) -> EngineState:
        """To be stored now and then, and at the end."""
        return EngineState(self._waiting or self.judge.state())
