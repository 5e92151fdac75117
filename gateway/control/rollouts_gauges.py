"""Rollouts as metrics: states, shares, suspicion, evidence, verdicts, budget, and what could not be stored.

Owns names and meanings, reads the engine at the moment of a scrape. Series are bounded by the budget's slots.
"""

from collections.abc import Iterable

from gateway.control.rollouts import Engine
from gateway.control.rollouts_keeping import Keeper
from gateway.control.rollouts_sharing import Sharing
from gateway.control.series import Family, Key, gauge
from gateway.core.evidence import Outcome, suspicion_of
from gateway.core.rollout import State

_BUCKET = ("rollout", "bucket", "pool")
_SERIES = (*_BUCKET, "series")


def rollout_families(engine: Engine, keeper: Keeper, now_s: float, sharing: Sharing | None = None) -> Iterable[Family]:
    """Everything of this moment."""
    yield from _states(engine)
    yield from _series(engine, now_s)
    yield from _budget(engine, keeper, now_s)
    if sharing is not None:
        yield from _sharing(sharing)


def _sharing(sharing: Sharing) -> Iterable[Family]:
    values = {
        (
            "quantgate_rollout_gateways",
            "Gateways on the database that judge together, this one included; 0 = it shares with nobody.",
        ): float(sharing.merger.alive if sharing.shared else 0),
        (
            "quantgate_rollout_alone",
            "1 while the shared database does not answer and this gateway judges what it sees alone.",
        ): float(sharing.alone),
        (
            "quantgate_rollout_clocks_apart_seconds",
            "How far the clocks of the gateways that judge together are apart: they wait for the slowest.",
        ): sharing.merger.behind_s if sharing.shared else 0.0,
        (
            "quantgate_rollout_reports_late",
            "Outcomes that other gateways reported after their block was judged.",
        ): float(sharing.merger.late),
    }
    for (name, words), value in values.items():
        yield gauge(name, words, (), {(): value})


def _states(engine: Engine) -> Iterable[Family]:
    states: dict[Key, float] = {}
    shares: dict[Key, float] = {}
    stages: dict[Key, float] = {}
    since: dict[Key, float] = {}
    buckets: dict[Key, float] = {}
    absent: dict[Key, float] = {(plan.name, plan.candidate): 0.0 for plan in engine.buckets.plans.values()}
    absent.update({(standing.rollout, standing.candidate): 1.0 for standing, _ in engine.awaited()})
    for at, standing in engine.standings.items():
        if engine.buckets.plans.get(at[0]) is None:
            continue
        key = (standing.rollout, standing.bucket, standing.candidate)
        states.update({(*key, state.value): float(standing.state is state) for state in State})
        shares[key] = max(0.0, standing.share_bp / 10_000)
        stages[key] = float(standing.stage)
        since[key] = standing.since_s
        buckets[standing.rollout,] = buckets.get((standing.rollout,), 0.0) + 1.0
    for plan in engine.buckets.plans.values():
        buckets.setdefault((plan.name,), 0.0)
    yield gauge("quantgate_rollout_state", "1 for the state of the bucket.", (*_BUCKET, "state"), states)
    yield gauge("quantgate_rollout_share", "Share of live traffic that the candidate may get, 0 to 1.", _BUCKET, shares)
    yield gauge("quantgate_rollout_stage", "Stage of the bucket, from 0.", _BUCKET, stages)
    yield gauge(
        "quantgate_rollout_since_timestamp_seconds", "Unix time in seconds since the state holds.", _BUCKET, since
    )
    words = "1 while no endpoint of the candidate serves its part of the traffic; the baseline does."
    yield gauge("quantgate_rollout_candidate_absent", words, ("rollout", "pool"), absent)
    yield gauge("quantgate_rollout_buckets", "Buckets that a rollout has met.", ("rollout",), buckets)


def _series(engine: Engine, now_s: float) -> Iterable[Family]:
    suspicion: dict[Key, float] = {}
    baseline: dict[Key, float] = {}
    evidence: dict[Key, float] = {}
    outcomes: dict[Key, float] = {}
    late: dict[Key, float] = {}
    correlation: dict[Key, float] = {}
    verdicts: dict[Key, float] = {}
    silent: dict[Key, float] = {}
    for run in engine.runs.values():
        standing = run.standing
        for judged in run.judged(now_s):
            key = (standing.rollout, standing.bucket, standing.candidate, judged.one.name)
            series = engine.judge.series(judged.key)
            suspicion[key] = suspicion_of(judged.verdict.total)
            outcomes[key] = float(judged.verdict.number)
            late[key] = float(series.timeline.late)
            if judged.asked:
                needed = judged.verdict.needed_log_evidence
                evidence[key] = judged.verdict.log_evidence / needed if needed else 0.0
                verdicts.update({(*key, one.value): float(judged.verdict.outcome is one) for one in Outcome})
            if judged.one.twin:
                twin = engine.judge.series(run.feed.key(judged.one, run.plan.baseline))
                baseline[key] = suspicion_of(twin.total_at(now_s))
                measured = twin.dispersion.lag_correlation() if twin.dispersion is not None else None
                if measured is not None:
                    correlation[key] = measured
        for name in run.silent(now_s):
            silent[standing.rollout, standing.bucket, standing.candidate, name] = 1.0
    yield gauge("quantgate_suspicion", "log10 of the suspicion meter, -10 to 0; at 0 it trips.", _SERIES, suspicion)
    yield gauge("quantgate_suspicion_baseline", "The same meter on the baseline pool.", _SERIES, baseline)
    yield gauge(
        "quantgate_evidence_ratio", "Evidence for advancing over what is needed; 1 = enough.", _SERIES, evidence
    )
    yield gauge("quantgate_evidence_outcomes", "Outcomes behind the evidence of the stage.", _SERIES, outcomes)
    yield gauge("quantgate_outcomes_late", "Outcomes that came after their block was judged.", _SERIES, late)
    words = "Lag-1 correlation of the baseline's block votes beyond what chance may explain; keep it under 0.05."
    yield gauge("quantgate_vote_correlation", words, _SERIES, correlation)
    yield gauge("quantgate_verdict", "1 for the verdict of the series.", (*_SERIES, "verdict"), verdicts)
    yield gauge("quantgate_guard_silent", "1 if a guard gets nothing although the pool serves.", _SERIES, silent)


def _budget(engine: Engine, keeper: Keeper, now_s: float) -> Iterable[Family]:
    budget = engine.judge.budget
    values = {
        ("quantgate_rollout_slots", "Series that the budget is divided over."): float(budget.slots),
        ("quantgate_rollout_slots_used", "Series that are watched."): float(len(engine.judge.keys())),
        (
            "quantgate_rollout_lumps_granted",
            "False rollbacks that this year's stage starts have been granted.",
        ): engine.judge.lumps_granted(now_s),
        ("quantgate_rollout_lumps_budget", "The most they may be granted in a year."): budget.lumps_per_year,
        ("quantgate_rollout_brake", "1 while the brake keeps everything from advancing."): float(
            engine.brake.engaged_s is not None
        ),
        ("quantgate_rollout_refused_buckets", "Buckets that have no slot in the budget."): float(
            len(engine.buckets.refused)
        ),
        ("quantgate_rollout_restored", "1 once the stored standings are known; nothing begins before."): float(
            engine.restored
        ),
        ("quantgate_rollout_owed_changes", "Decisions that the database has not got yet."): float(keeper.owed),
        ("quantgate_rollout_store_failures", "Attempts to store a decision that failed."): float(keeper.failures),
    }
    for (name, words), value in values.items():
        yield gauge(name, words, (), {(): value})
