"""How often things go wrong in a healthy pool, per guard: as given, as recorded, or a third of the limit.

Owns the warning that a limit sits at the healthy level: then false trips approach the budget and promotion never
passes. Pure; rows of records are arguments.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from gateway.control import guards as guarding
from gateway.control import worth
from gateway.core.attempted import attempts_of
from gateway.core.evidence.latency import exceedance_limit
from gateway.model.proving import Guard
from gateway.model.table import Table

HEALTHY = 1.0 / 3.0
TOO_NEAR = 0.5
LEAST_RECORDED = 300
DEFAULT_LOSS = 0.0
DISCORDANT = 0.1
"""Part of shadow pairs that differ at all; half of them either way for equal pools."""

COLUMNS = (
    "result",
    "failures",
    "ttft_s",
    "first_to_last_s",
    "completion_tokens",
    "total_s",
    "longest_gap_s",
    "attempts",
)
_CLASSES = {
    "format_error_rate": "format_error",
    "tool_failure_rate": "tool_failure",
    "refusal_rate": "refusal",
    "degenerate_rate": "degenerate",
}

Levels = Mapping[str, float]
"""Guard name → share of bad outcomes in a healthy pool (for pairs: mean loss)."""


def bound_of(guard: Guard) -> float:
    """The share of bad outcomes that the guard tolerates."""
    if guard.metric in guarding.LATENCIES:
        return exceedance_limit(guard.quantile or 0.99)
    return guard.limit if guard.limit is not None else guard.margin or 0.01


def healthy_levels(table: Table, given: Levels) -> dict[str, float]:
    """For every guard of a rollout: as given, else a third of its bound; pairs of equal pools lose nothing."""
    found = {}
    for name in sorted({name for plan in table.rollouts for name in plan.guards}):
        guard = table.guards[name]
        usual = DEFAULT_LOSS if guard.metric in guarding.PAIRS else bound_of(guard) * HEALTHY
        found[name] = given.get(name, usual)
    return found


def warnings_of(table: Table, levels: Levels) -> list[str]:
    """Limits that sit at the healthy level."""
    found = []
    for name, level in sorted(levels.items()):
        guard = table.guards[name]
        bound = bound_of(guard)
        if guard.metric not in guarding.PAIRS and level >= bound * TOO_NEAR:
            found.append(
                f"{name}: a healthy pool is at {level:.3%}, the limit at {bound:.3%}. Keep limits two to three times "
                "above: nearer, false rollbacks approach the budget and promotion hardly ever passes."
            )
    return found


def recorded_levels(table: Table, rows: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """What recorded requests of a baseline say about each guard; only where there are enough of them."""
    counts: dict[str, list[int]] = {}
    for row in rows:
        for name in {name for plan in table.rollouts for name in plan.guards}:
            value = _recorded(table.guards[name], row)
            if value is not None:
                seen = counts.setdefault(name, [0, 0])
                seen[0] += 1
                seen[1] += value
    return {name: bad / number for name, (number, bad) in counts.items() if number >= LEAST_RECORDED}


def _recorded(guard: Guard, row: Mapping[str, Any]) -> bool | None:
    result = row["result"]
    if guard.metric == "error_rate":
        return None if result in ("client_error", "client_cancelled", "shed") else result != "ok"
    if result != "ok":
        return None
    if guard.metric in _CLASSES:
        return f",{_CLASSES[guard.metric]}," in row["failures"]
    if guard.metric in guarding.LATENCIES and guard.limit is not None:
        seconds = _seconds(guard.metric, row)
        return None if seconds is None else seconds > guard.limit
    return None


def _seconds(metric: str, row: Mapping[str, Any]) -> float | None:
    if metric == "tpot":
        return worth.per_token_s(row["first_to_last_s"], row["completion_tokens"])
    value: float = row[{"ttft": "ttft_s", "total": "total_s", "token_gap": "longest_gap_s"}[metric]]
    if value < 0.0:
        return None
    # As for the guard itself: neither the wait for room nor what failed before is the pool's.
    return value if metric == "token_gap" else value - attempts_of(row["attempts"])[-1].started_s
