"""The buckets of the rollouts in force: what is stored of each, and the run that watches it.

Owns standings, runs and their lookup, across reloads of the policy, restarts, and changes that other gateways made.
Knows no evidence and makes no decision. Part of the engine, which is its only caller.
"""

from collections.abc import Iterable, Iterator, Mapping

import structlog

from gateway.control.rollouts_open import OpenState, thinned
from gateway.control.rollouts_runs import NoSlotError, Run
from gateway.control.rollouts_values import Key
from gateway.core.evidence import Judge
from gateway.core.evidence.turns import Turns, TurnsState
from gateway.core.rollout import Standing, begin_standing
from gateway.model.outcome import Outcome
from gateway.model.proving import Guard, Rollout
from gateway.model.table import Table

BUCKETS_MOST = 2_000

_log = structlog.get_logger("control.rollouts")


class Buckets:
    """Every bucket that was met. Keys are (rollout identity, bucket).

    ``unplaced``: the policy around them changed, and their standing may still name a stage of the one before.
    """

    def __init__(self) -> None:
        self.runs: dict[Key, Run] = {}
        self.standings: dict[Key, Standing] = {}
        self.unplaced: set[Key] = set()
        self.refused: dict[Key, str] = {}
        self.plans: dict[str, Rollout] = {}
        self.identities: dict[str, str] = {}
        self.records: Mapping[str, str] = {}
        self._guards: Mapping[str, Guard] = {}
        self._by_bucket: dict[str, list[Run]] = {}

    def apply(self, table: Table, records: Mapping[str, str]) -> None:
        """The rollouts of a policy; ``records`` are the deployment records' hashes by pool."""
        self.records = records
        self.plans = {plan.identity: plan for plan in table.rollouts}
        self.identities = {plan.name: plan.identity for plan in table.rollouts}
        self._guards = table.guards

    def rebuild(self, judge: Judge, now_s: float) -> None:
        """All runs anew in a fresh judge; what is open of the same questions stays."""
        before = self.runs
        self.runs, self._by_bucket, self.refused = {}, {}, {}
        for standing in sorted(self.standings.values(), key=lambda one: (one.identity, one.bucket)):
            self._add(judge, standing, now_s)
        self.unplaced = {(one.identity, one.bucket) for one in self.in_force()}
        for key, run in self.runs.items():
            if (old := before.get(key)) is not None:
                run.continue_from(old)

    def turns(self) -> dict[str, TurnsState]:
        """How long conversations are, by bucket; to be stored."""
        return {_word(key): run.feed.turns.state() for key, run in self.runs.items()}

    def restore_turns(self, stored: Mapping[str, TurnsState]) -> None:
        """Go on from what was stored."""
        for key, run in self.runs.items():
            if (state := stored.get(_word(key))) is not None:
                run.feed.turns = Turns(state)

    def open(self) -> dict[str, OpenState]:
        """What is not in the meters, by bucket; to be stored with the meters of the same moment."""
        every = thinned(sum(run.feed.conversations for run in self.runs.values()))
        return {_word(key): run.state(every) for key, run in self.runs.items()}

    def restore_open(self, stored: Mapping[str, OpenState]) -> None:
        """Go on from what was stored."""
        for key, run in self.runs.items():
            if (state := stored.get(_word(key))) is not None:
                run.restore(state)

    def stages(self) -> dict[str, float]:
        """When the stages began that the meters speak of, by bucket; to be stored with them."""
        return {_word(key): run.standing.stage_since_s for key, run in self.runs.items()}

    def begin_stages_since(self, stages: Mapping[str, float], at_s: float, now_s: float) -> None:
        """Begin the stages that those meters, of ``at_s``, do not speak of: evidence of another must not pass them.

        By the stages themselves, for the clocks of gateways differ; an earlier release does not say them.
        """
        for key, run in self.runs.items():
            stage_s, spoken_s = run.standing.stage_since_s, stages.get(_word(key))
            if 0.0 < at_s < stage_s if spoken_s is None else spoken_s != stage_s:
                run.adopt(None, run.standing, now_s)

    def adopt(self, judge: Judge, standing: Standing, now_s: float) -> None:
        """Another gateway changed it: its word holds."""
        key = (standing.identity, standing.bucket)
        before = self.standings.get(key)
        self.standings[key] = standing
        run = self.runs.get(key) or self._add(judge, standing, now_s)
        if run is not None:
            run.adopt(before, standing, now_s)

    def known(self, outcome: Outcome) -> Run | None:
        """The run of a request that took part in a rollout."""
        return self.named(outcome.kind.rollout, outcome.kind.bucket)

    def named(self, rollout: str, bucket: str) -> Run | None:
        """The run of a rollout, by its name in the policy in force, in a bucket."""
        identity = self.identities.get(rollout)
        return self.runs.get((identity, bucket)) if identity is not None else None

    def met(self, judge: Judge, outcome: Outcome, now_s: float) -> Run | None:
        """The same; a new bucket is met here."""
        run = self.known(outcome)
        identity = self.identities.get(outcome.kind.rollout)
        if run is not None or identity is None or len(self.standings) >= BUCKETS_MOST:
            return run
        key = (identity, outcome.kind.bucket)
        if key not in self.standings:
            plan = self.plans[identity]
            slices = (f"task={outcome.kind.task}", f"length={outcome.kind.length}")
            record = self.records.get(plan.candidate, "")
            self.standings[key] = begin_standing(plan, outcome.kind.bucket, record, now_s, slices)
            return self._add(judge, self.standings[key], now_s)
        return None

    def of(self, bucket: str) -> Iterable[Run]:
        """The runs of all rollouts in a bucket."""
        return self._by_bucket.get(bucket, ())

    def shares(self) -> dict[str, dict[str, int]]:
        """What workers must obey: rollout identity → bucket → share."""
        found: dict[str, dict[str, int]] = {}
        for standing in self.in_force():
            found.setdefault(standing.identity, {})[standing.bucket] = standing.share_bp
        return found

    def in_force(self) -> Iterator[Standing]:
        """Standings of rollouts of the policy."""
        return (standing for (identity, _), standing in self.standings.items() if identity in self.plans)

    def _add(self, judge: Judge, standing: Standing, now_s: float) -> Run | None:
        plan = self.plans.get(standing.identity)
        if plan is None:
            return None
        key = (standing.identity, standing.bucket)
        try:
            run = Run(judge, plan, standing, dict(self._guards), now_s)
        except NoSlotError as error:
            self.refused[key] = str(error)
            _log.error("no_slots", rollout=plan.name, bucket=standing.bucket, why=str(error))
            return None
        self.runs[key] = run
        self._by_bucket.setdefault(standing.bucket, []).append(run)
        return run


def _word(key: Key) -> str:
    return "/".join(key)
