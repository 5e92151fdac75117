"""Months of health in counts: promoted, not rolled back."""

import random

from gateway.control.rehearsal import (
    run_months,
)
from gateway.control.rehearsal.levels import healthy_levels
from gateway.control.rehearsal.months import _binomial, _poisson
from gateway.core.evidence import Budget
from tests.unit.control.rollout_rig import rollout_policy

TABLE = rollout_policy(
    stages="[{weight: 50%, at_least: {time: 1h}}, {weight: 100%, at_least: {time: 1h}}]",
    guards="""
  errors: {metric: error_rate, limit: 2%, block: 10s}
  json: {metric: format_error_rate, limit: 2%, feed: product, block: 1s}
  ttft: {metric: ttft, quantile: 95%, limit: 2s, block: 5s}
""",
    names="errors, json, ttft",
)
PLAN = TABLE.rollouts[0]
LEVELS = healthy_levels(TABLE, {})


def test_months_of_health_promote_and_do_not_cry_wolf() -> None:
    """A day and a half at a request a second: promoted by evidence, no rollback, and little of the budget used."""
    report = run_months(TABLE, Budget(), PLAN, LEVELS, months=0.05, seed=1, rate=1.0)
    assert report.false_rollbacks == 0
    assert len(report.promoted_after_s) == 1
    assert report.promised < 0.01


def test_a_pool_far_over_its_limit_is_found_in_months_as_well() -> None:
    """The counts reach the same meters."""
    report = run_months(TABLE, Budget(), PLAN, {**LEVELS, "json": 0.2}, months=0.02, seed=1, rate=2.0)
    assert report.promoted_after_s == ()
    assert report.incidents + report.false_rollbacks > 0


def test_counts_are_drawn_with_the_right_means() -> None:
    """Within five standard deviations."""
    rand = random.Random(4)
    for number, share in ((1_000, 0.003), (50, 0.4), (50, 0.9), (10, 0.0), (10, 1.0)):
        total = sum(_binomial(number, share, rand) for _ in range(2_000))
        spread = (2_000 * number * share * (1 - share)) ** 0.5
        assert abs(total - 2_000 * number * share) <= 5 * spread
    assert _binomial(0, 0.5, rand) == 0
    for mean in (0.3, 7.0, 500.0):
        total = sum(_poisson(mean, rand) for _ in range(2_000))
        assert abs(total - 2_000 * mean) <= 5 * (2_000 * mean) ** 0.5


def test_a_shadow_stage_is_passed_on_counts_of_pairs_as_well() -> None:
    """Errors, checks and agreement of mirrored answers."""
    table = rollout_policy(
        stages="[{shadow: 10%, at_least: {time: 1h, pairs: 200}}, {weight: 50%, at_least: {time: 1h}}]",
        guards="""
  errors: {metric: error_rate, limit: 2%}
  json: {metric: format_error_rate, limit: 2%, margin_to_baseline: 2%, feed: product}
  quality: {metric: agreement, margin_to_baseline: 5%}
""",
        names="errors, json, quality",
    )
    levels = healthy_levels(table, {})
    report = run_months(table, Budget(), table.rollouts[0], levels, months=0.03, seed=2, rate=2.0, pairs=2.0)
    assert len(report.promoted_after_s) == 1
    assert report.false_rollbacks == 0
