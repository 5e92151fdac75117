"""One fault, second by second: bad pools leave, bad platforms hold, health stays."""

import pytest

from gateway.control.rehearsal import (
    Fault,
    run_scenario,
)
from gateway.control.rehearsal.levels import healthy_levels
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


@pytest.mark.parametrize(
    ("fault", "state", "most_s"),
    [
        (Fault("json", 1.0), "rolled_back", 60),
        (Fault("errors", 0.3), "rolled_back", 200),
        (Fault("ttft", 0.8), "rolled_back", 300),
        (Fault("errors", 0.4, everywhere=True), "holding", 300),
    ],
)
def test_a_fault_is_answered_as_it_should_be(fault: Fault, state: str, most_s: int) -> None:
    """Only its own bucket leaves; the report counts whom it hurt."""
    report = run_scenario(
        TABLE, Budget(), PLAN, fault, LEVELS, stage=0, seed=3, rate=4, buckets=2, before_s=60, most_s=900
    )
    assert report.state == state or (fault.everywhere and report.state == "frozen")
    assert report.after_s is not None
    assert report.after_s <= most_s
    assert report.elsewhere == 0
    assert 0 < report.hurt <= report.served
    assert report.kept == 0.5


def test_the_same_seed_is_the_same_rehearsal_and_no_fault_is_not_noticed() -> None:
    """Reproducible; health is left alone until the time is up."""
    quiet = Fault("json", LEVELS["json"])
    runs = [
        run_scenario(TABLE, Budget(), PLAN, quiet, LEVELS, stage=1, seed=5, rate=2, buckets=1, before_s=10, most_s=120)
        for _ in range(2)
    ]
    assert runs[0] == runs[1]
    assert (runs[0].after_s, runs[0].reason) == (None, "not noticed in time")


def test_a_fault_that_shows_in_shadow_is_answered_before_anybody_is_served() -> None:
    """Mirrored answers are checked as well."""
    table = rollout_policy(
        stages="[{shadow: 10%, at_least: {time: 1h}}, {weight: 50%}]",
        guards="\n  json: {metric: format_error_rate, limit: 2%, margin_to_baseline: 2%, block: 1s}\n",
        names="json",
    )
    plan = table.rollouts[0]
    levels = healthy_levels(table, {})
    report = run_scenario(
        table, Budget(), plan, Fault("json", 1.0), levels, stage=0, seed=3, rate=2, buckets=1, before_s=30, most_s=900
    )
    assert (report.state, report.hurt, report.kept) == ("rolled_back", 0, 0.0)
