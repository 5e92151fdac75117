"""Promotion evidence and the three verdicts: fail, pass, not enough.

Owns the evidence that a pool is BETTER than its limit (evidence.md 6), the rule by which a guard passes a stage,
and the reasons in words. No data is never a pass. Promotion counts every outcome by itself (product); clustering is
paid for by the design effect. Called by series and by the rollout engine; must not know stages, clocks or meters
beyond their total.
"""

from collections.abc import Sequence
from enum import StrEnum
from math import exp, log

import msgspec

from gateway.core.evidence.feeds import Feed, Group, count_of, log_factors, log_mean_exp
from gateway.core.evidence.meter import OVERFLOW_LOG

ALPHA = 0.05
"""Chance of promoting a bucket that has a truly bad guard; all guards must pass, so it is not divided among them."""
LEAST_REQUESTS = 300
CALM_BELOW = 1e-2
"""A pool whose suspicion meter stands higher is not advanced, whatever its evidence."""


_TRIPPED: tuple[str, ...] = ("the suspicion meter tripped",)


class Outcome(StrEnum):
    """Verdict of one guard on one pool in one bucket."""

    FAIL = "fail"
    PASS = "pass"  # noqa: S105 - a verdict, not a secret
    NOT_ENOUGH = "not_enough"


class EvidenceState(msgspec.Struct, frozen=True):
    """Log wealth per bet and number of outcomes since the evidence was last restarted."""

    logs: tuple[float, ...]
    number: int = 0


class PromotionRule(msgspec.Struct, frozen=True):
    """What a guard asks for before a stage advances."""

    alpha: float = ALPHA
    least_outcomes: int = LEAST_REQUESTS
    least_s: float = 0.0
    design_effect: float = 1.0

    def __post_init__(self) -> None:
        if not 0.0 < self.alpha < 1.0 or self.design_effect < 1.0:
            raise ValueError(
                f"need 0 < alpha < 1 and design_effect >= 1, got {self.alpha!r} and {self.design_effect!r}: "
                "a design effect below 1 would make dependent data stronger than independent ones"
            )

    @property
    def needed_log(self) -> float:
        """Log evidence that is enough."""
        return self.design_effect * log(1.0 / self.alpha)


class Verdict(msgspec.Struct, frozen=True):
    """Verdict with its reasons, in words, and the numbers behind it."""

    outcome: Outcome
    reasons: tuple[str, ...]
    log_evidence: float
    needed_log_evidence: float
    number: int
    stage_s: float
    total: float
    by_slice: bool = False


class Evidence:
    """Running promotion evidence of one series."""

    __slots__ = ("logs", "number")

    def __init__(self, rungs: int) -> None:
        self.logs = [0.0] * rungs
        self.number = 0

    def add(self, groups: Sequence[Group]) -> None:
        """Count a block's outcomes; their ladders must be promotion ladders."""
        steps = log_factors(tuple(groups), Feed.PRODUCT)
        if steps is not None:
            self.logs = [wealth + step for wealth, step in zip(self.logs, steps, strict=True)]
            self.number += count_of(groups)

    def restart(self) -> None:
        """Forget everything: evidence of one load says nothing about another."""
        self.logs = [0.0] * len(self.logs)
        self.number = 0

    @property
    def log_value(self) -> float:
        """Natural log of the e-value, the mean of the bets' wealths; 0 without data."""
        return log_mean_exp(self.logs)

    @property
    def value(self) -> float:
        """The e-value; clamped where a float ends, so decide by ``log_value``."""
        return exp(min(self.log_value, OVERFLOW_LOG))

    def state(self) -> EvidenceState:
        """What must survive a restart."""
        return EvidenceState(tuple(self.logs), self.number)

    def restore(self, state: EvidenceState) -> None:
        """Continue from a stored state with the same number of bets."""
        if len(state.logs) != len(self.logs):
            raise ValueError(f"stored evidence has {len(state.logs)} bets, this series {len(self.logs)}")
        self.logs = list(state.logs)
        self.number = state.number


def decide_promotion(
    *, tripped: bool, log_evidence: float, number: int, stage_s: float, total: float, rule: PromotionRule
) -> Verdict:
    """Verdict from the numbers alone; ``total`` is the meter's money, ``number`` the outcomes behind the evidence."""
    missing = _missing(log_evidence, number, stage_s, total, rule)
    if tripped:
        outcome, reasons = Outcome.FAIL, _TRIPPED
    elif missing:
        outcome, reasons = Outcome.NOT_ENOUGH, missing
    else:
        outcome, reasons = Outcome.PASS, (f"evidence {_e_value(log_evidence)} from {number} outcomes is enough",)
    return Verdict(outcome, reasons, log_evidence, rule.needed_log, number, stage_s, total)


def release_by_slice(own: Verdict, slice_verdict: Verdict) -> Verdict:
    """Verdict of a thin bucket that has not enough, released by its slice's pass if its own meter is calm."""
    if own.outcome is not Outcome.NOT_ENOUGH or slice_verdict.outcome is not Outcome.PASS or own.total >= CALM_BELOW:
        return own
    reasons = (f"by slice: {slice_verdict.reasons[0]}", *own.reasons)
    return msgspec.structs.replace(own, outcome=Outcome.PASS, reasons=reasons, by_slice=True)


def alpha_after_reentries(alpha: float, reentries: int) -> float:
    """Promotion error level of a deployment record that was rolled back before: each entry is a new lottery ticket."""
    return alpha / 2.0**reentries


def conversation_design_effect(mean_turns: float, correlation: float) -> float:
    """Design effect of geometric conversations with ``correlation`` between outcomes of the same one."""
    return 1.0 + 2.0 * max(0.0, mean_turns - 1.0) * max(0.0, correlation)


def _missing(log_evidence: float, number: int, stage_s: float, total: float, rule: PromotionRule) -> tuple[str, ...]:
    reasons = []
    if number <= 0:
        reasons.append("no data")
    if number < rule.least_outcomes:
        reasons.append(f"{number} of at least {rule.least_outcomes} outcomes")
    if stage_s < rule.least_s:
        reasons.append(f"stage runs {stage_s:.0f} s of at least {rule.least_s:.0f} s")
    if log_evidence < rule.needed_log:
        effect = f" (design effect {rule.design_effect:g})" if rule.design_effect > 1.0 else ""
        reasons.append(f"evidence {_e_value(log_evidence)} of {_e_value(rule.needed_log)} needed{effect}")
    if total >= CALM_BELOW:
        reasons.append(f"suspicion {total:.2g} is not below {CALM_BELOW:g}")
    return tuple(reasons)


def _e_value(log_evidence: float) -> str:
    return f"{exp(log_evidence):.3g}" if log_evidence < OVERFLOW_LOG else f"e^{log_evidence:.0f}"
