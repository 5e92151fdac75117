"""Which design effect a guard must pay for: measured where it can be, by the length of conversations where not."""

import msgspec
import pytest

from gateway.control.rollouts_effect import ASSUMED_CORRELATION, UNMEASURED_EFFECT, design_effect
from gateway.control.rollouts_runs import Run
from gateway.core.evidence import Budget, Judge, SeriesKey
from gateway.core.evidence.turns import Turns, TurnsState
from gateway.core.rollout import State, begin_standing
from tests.unit.control.rollout_rig import rollout_policy

AT = 1_000.0
GUARDS = """
  errors: {metric: error_rate, limit: 1%, margin_to_baseline: 1%, block: 10s}
  json: {metric: format_error_rate, limit: 1%, margin_to_baseline: 1%, ratio_to_baseline: 1.5}
  quality: {metric: agreement, margin_to_baseline: 2%}
"""
TABLE = rollout_policy(guards=GUARDS, names="errors, json, quality")
PLAN = TABLE.rollouts[0]


@pytest.fixture
def judge() -> Judge:
    """Of an ordinary budget."""
    return Judge(Budget())


def made(judge: Judge, bucket: str = "b") -> Run:
    """A bucket whose stage runs."""
    pending = begin_standing(PLAN, bucket, "r", AT)
    standing = msgspec.structs.replace(pending, state=State.STEPPING, below=State.STEPPING)
    return Run(judge, PLAN, standing, dict(TABLE.guards), AT)


def effects(judge: Judge, run: Run) -> dict[str, float]:
    """By series."""
    return {one.name: design_effect(judge, run.feed, one) for one in run.feed.wanted}


def clustered(judge: Judge, bucket: str) -> None:
    """A day of errors of the baseline that come ten at a time."""
    key = SeriesKey("errors", bucket, "bf16")
    for block in range(1_000):
        judge.accept(key, AT + 10.0 * block + 1, 0.0, 90)
        if block % 10 == 0:
            judge.accept(key, AT + 10.0 * block + 1, 1.0, 10)
    judge.advance(AT + 20_000.0)


def test_what_is_counted_by_conversation_or_pair_pays_nothing(judge: Judge) -> None:
    """One vote a conversation, one loss a prompt, first failures only: these are independent."""
    found = effects(judge, made(judge))
    assert {name for name, effect in found.items() if effect == 1.0} >= {
        "json",
        "json.margin",
        "json.ratio",
        "quality",
        "quality.missing",
    }
    assert found["errors"] == found["errors.margin"] == found["hard_errors"] == UNMEASURED_EFFECT


def test_the_buckets_own_baseline_is_believed_first(judge: Judge) -> None:
    """Also for the margin of the same guard, whose differences cluster as its outcomes do."""
    run = made(judge)
    clustered(judge, "b")
    found = effects(judge, run)
    assert found["errors"] == found["errors.margin"] == pytest.approx(9.3, rel=0.2)


def test_then_the_baseline_over_all_its_buckets(judge: Judge) -> None:
    """A bucket with little traffic need not guess."""
    run = made(judge)
    made(judge, "busy")
    clustered(judge, "busy")
    assert judge.series(SeriesKey("errors", "b", "bf16")).dispersion is not None
    assert effects(judge, run)["errors"] == pytest.approx(9.3, rel=0.2)


@pytest.mark.parametrize(
    ("turns", "effect"),
    [
        (None, UNMEASURED_EFFECT),
        (TurnsState(200, 200), UNMEASURED_EFFECT),
        (TurnsState(1_000, 200), 1.0 + 2.0 * 4.0 * ASSUMED_CORRELATION),
        (TurnsState(50, 10), UNMEASURED_EFFECT),
    ],
)
def test_without_a_measurement_long_conversations_are_taken_at_their_worst(
    judge: Judge, turns: TurnsState | None, effect: float
) -> None:
    """Short ones, and too few of them, pay the least that everybody pays."""
    run = made(judge)
    run.feed.turns = Turns(turns)
    assert effects(judge, run)["errors"] == pytest.approx(effect)
