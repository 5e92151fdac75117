"""What goes on record of a bucket with each transition: counts, money, intervals, the meters' steps, the bad requests.

Owns the shape of that evidence; the API shows the same. Reads a run and changes nothing.
"""

from typing import Any

import msgspec
import orjson

from gateway.control.guards import Wanted
from gateway.control.rollouts_runs import Judged, Run
from gateway.core.evidence import Feed, Series, suspicion_of
from gateway.core.evidence.dispersion import longer_block_s


def evidence_of(run: Run, now_s: float, headroom: str = "") -> dict[str, Any]:
    """Counts, money, intervals, recent steps of the meters and the last bad requests."""
    return {
        "series": [_series(run, judged, now_s) for judged in run.judged(now_s)],
        "requests": {name: list(ids) for name, ids in run.feed.culprits.items()},
        "headroom": headroom,
        "entries": run.standing.entries,
        "record": run.standing.record,
        "votes": msgspec.to_builtins(run.standing.votes),
    }


def _series(run: Run, judged: Judged, now_s: float) -> dict[str, Any]:
    one, key, verdict, asked = judged
    series = run.judge.series(key)
    interval = series.interval() if verdict.number else None
    found: dict[str, Any] = {
        "series": key.guard,
        "guard": one.guard.name,
        "metric": one.guard.metric,
        "form": one.spec.form.value,
        "limit": one.spec.limit,
        "asked": asked,
        "verdict": verdict.outcome.value,
        "reasons": list(verdict.reasons),
        "outcomes": verdict.number,
        "bad": series.bad,
        "suspicion": suspicion_of(verdict.total),
        "log_evidence": verdict.log_evidence,
        "needed_log_evidence": verdict.needed_log_evidence,
        "interval": [interval.lower, interval.upper] if interval is not None else None,
        "late": series.timeline.late,
        "trip": msgspec.to_builtins(series.trip) if series.trip is not None else None,
    }
    found["history"] = [list(line) for line in run.history.get(key, ())]
    if one.twin:
        twin = run.judge.series(run.feed.key(one, run.plan.baseline))
        found["baseline"] = {
            "outcomes": twin.evidence.number,
            "bad": twin.bad,
            "suspicion": suspicion_of(twin.total_at(now_s)),
        }
        found["reasons"] += _advice(one, twin)
    return found


def _advice(one: Wanted, twin: Series) -> list[str]:
    """What the baseline's votes say of the guard's blocks: votes that repeat each other are no separate evidence."""
    correlation = twin.dispersion.lag_correlation() if twin.dispersion is not None else None
    wanted_s = longer_block_s(one.spec.block_s, correlation)
    if correlation is None or wanted_s <= one.spec.block_s or one.spec.feed is not Feed.VOTE:
        return []
    return [f"neighbouring blocks depend on each other ({correlation:.2f}): give the guard block: {wanted_s:g}s"]


def packed(evidence: dict[str, Any]) -> str:
    """Evidence as it is stored."""
    return orjson.dumps(evidence).decode()
