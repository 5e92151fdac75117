"""One simulated request as workers and scorers would tell of it: announced, finished, checked, paired.

Owns the drawing of what goes wrong, guard by guard; randomness is an argument. The values reach the series through the
production feeds only.
"""

import random
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from gateway.control import guards as guarding
from gateway.control.rehearsal.levels import DISCORDANT
from gateway.control.scoring import Scored
from gateway.core.evidence.pairs import PairLoss
from gateway.core.quality import Inspection
from gateway.core.quality.finding import Check, Finding, failed, failure_classes, passed, score
from gateway.model.outcome import Attempt, Kind, Outcome
from gateway.model.pair import Leg, Pair
from gateway.model.proving import Guard, Rollout

_CHECK_OF = {
    "format_error_rate": Check.JSON,
    "tool_failure_rate": Check.TOOL_ARGUMENTS,
    "refusal_rate": Check.REFUSAL,
    "degenerate_rate": Check.GARBAGE,
}

_KIND = Kind(
    generation=1, worker=0, api="chat", tenant="rehearsal", tier="default", model="", adapter="", bucket="", length="",
    task="", privilege="none", tool_use="none", structured="none", stream=True, rule="", arm="", rollout="", pool="",
    endpoint="", precision="", status=200, result="ok", failure="", error_code="", constraints=(), finish_reason="stop",
    seed=False,
)  # fmt: skip
_TEMPLATE = Outcome(
    kind=_KIND, request_id="", at=0.0, attempts=(), queue_s=0.0, overhead_s=0.0, ttft_s=0.1, first_to_last_s=1.0,
    longest_gap_s=0.02, total_s=1.1, prompt_tokens_estimated=100, prompt_tokens=100, cached_tokens=0,
    completion_tokens=101, events=101, bytes_in=400, bytes_out=4000, temperature=1.0, conversation="",
    capture=None, trace_id="",
)  # fmt: skip


class Drawn(NamedTuple):
    """A request and whether anything about it was bad for its client."""

    scored: Scored
    bad: bool


def draw_request(
    plan: Rollout,
    found: Mapping[str, Guard],
    levels: Mapping[str, float],
    *,
    bucket: "tuple[str, str, str]",
    pool: str,
    at_s: float,
    number: int,
    rand: random.Random,
) -> Drawn:
    """A finished request at ``pool``; ``bucket`` is (label, task, length), ``levels`` the shares of bad ones."""
    label, task, length = bucket
    struck = {name: rand.random() < levels.get(name, 0.0) for name in plan.guards}
    struck |= {name: False for name in plan.guards if found[name].metric in guarding.PAIRS}
    error = any(struck[name] for name in plan.guards if found[name].metric == "error_rate")
    seconds = {"ttft": 0.1, "tpot": 0.01, "token_gap": 0.02, "total": 1.1}
    for name in plan.guards:
        guard = found[name]
        if struck[name] and guard.metric in guarding.LATENCIES:
            seconds[guard.metric] = 2.0 * (guard.limit or 5.0 * seconds[guard.metric])
    seconds["total"] = max(seconds["total"], seconds["ttft"] + 100.0 * seconds["tpot"])
    failure = "status_5xx" if error else ""
    kind = msgspec.structs.replace(
        _KIND,
        bucket=label,
        task=task,
        length=length,
        rollout=plan.name,
        pool=pool,
        result="upstream_error" if error else "ok",
        failure=failure,
    )
    outcome = msgspec.structs.replace(
        _TEMPLATE,
        kind=kind,
        request_id=f"rehearsed-{number}",
        at=at_s,
        conversation=f"conversation-{number}",
        ttft_s=seconds["ttft"],
        first_to_last_s=100.0 * seconds["tpot"],
        longest_gap_s=seconds["token_gap"],
        attempts=(Attempt(pool, f"{pool}/0", 502 if error else 200, failure, 0.0, seconds["total"]),),
    )
    inspection = None if error else inspected(plan, found, struck)
    return Drawn(Scored(outcome, inspection), any(struck.values()))


def inspected(plan: Rollout, found: Mapping[str, Guard], struck: Mapping[str, bool]) -> Inspection | None:
    """What the checks would find in an answer that is bad for the guards that are ``struck``."""
    findings: list[Finding] = []
    for name in plan.guards:
        guard = found[name]
        if guard.metric in _CHECK_OF or guard.metric == "check":
            check = _CHECK_OF[guard.metric] if guard.metric in _CHECK_OF else Check(guard.check or "json")
            findings.append(failed(check, "simulated") if struck[name] else passed(check, "simulated"))
    if not findings:
        return None
    failures = failure_classes(findings)
    return Inspection("chat", True, 1, 100, tuple(findings), failures, score(failures))


def draw_pair(
    plan: Rollout, *, bucket: str, at_s: float, number: int, loss: float, rand: random.Random
) -> tuple[Pair, PairLoss]:
    """A compared shadow pair with mean loss ``loss``: a part differs, half of it either way for equal pools."""
    differs = max(DISCORDANT, abs(loss))
    value = 0.0
    if rand.random() < differs:
        value = 1.0 if rand.random() < 0.5 + loss / (2.0 * differs) else -1.0
    leg = Leg(plan.baseline, f"{plan.baseline}/0", 200, "", b"", 0.1, 1.0, 1.1, 100, 101)
    pair = Pair(
        f"rehearsed-pair-{number}", at_s, "rehearsal", "rehearsal", plan.model, bucket, "", "chat", True,
        f"conversation-{number}", b"", leg, msgspec.structs.replace(leg, pool=plan.candidate), leg,
    )  # fmt: skip
    return pair, PairLoss(trip=value, promotion=value)
