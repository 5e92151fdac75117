"""The rehearsal drives the production engine: bad pools leave, bad platforms hold, health stays."""

import random

import pytest

from gateway.control.rehearsal import (
    Fault,
    default_faults,
    read_fault,
    recorded_levels,
    run_months,
    run_scenario,
    warnings_of,
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


def test_a_healthy_pool_is_at_a_third_of_its_limits_unless_told_otherwise() -> None:
    """Given levels win; a limit near the healthy level is warned about."""
    assert LEVELS["errors"] == pytest.approx(0.02 / 3)
    assert healthy_levels(TABLE, {"errors": 0.015})["errors"] == 0.015
    assert warnings_of(TABLE, LEVELS) == []
    (warning,) = warnings_of(TABLE, {**LEVELS, "errors": 0.015})
    assert "errors" in warning
    assert "1.500%" in warning


def test_recorded_traffic_tells_the_healthy_level_where_there_is_enough_of_it() -> None:
    """Errors, failed checks and slow answers; clients' own faults do not count."""
    fine = {
        "result": "ok",
        "failures": "",
        "ttft_s": 0.2,
        "first_to_last_s": 1.0,
        "completion_tokens": 11,
        "total_s": 1,
        "longest_gap_s": 0,
    }
    rows = [fine] * 294 + [fine | {"result": "upstream_error"}] * 6 + [fine | {"result": "client_error"}] * 50
    rows += [fine | {"failures": ",format_error,"}] * 6 + [fine | {"ttft_s": 3.0}] * 3
    found = recorded_levels(TABLE, rows)
    assert found["errors"] == pytest.approx(6 / 309)
    assert found["json"] == pytest.approx(6 / 303)
    assert found["ttft"] == pytest.approx(3 / 303)
    assert recorded_levels(TABLE, rows[:100]) == {}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("json=100%", Fault("json", 1.0)),
        ("errors=2.5", Fault("errors", 0.025)),
        ("platform:errors=30%", Fault("errors", 0.3, everywhere=True)),
    ],
)
def test_faults_are_read_as_people_write_them(text: str, fault: Fault) -> None:
    """And written the same way."""
    assert read_fault(text, TABLE) == fault
    assert read_fault(fault.name, TABLE) == fault


@pytest.mark.parametrize("text", ["json", "nothing=3%", "json=0%", "json=101%", "x:json=1%"])
def test_other_faults_are_refused_with_the_mend(text: str) -> None:
    """The guards there are, or how to write it."""
    with pytest.raises(ValueError, match=r"no fault|guard|share"):
        read_fault(text, TABLE)


def test_the_default_set_strikes_every_guard_and_the_platform() -> None:
    """Three levels each, and one incident everywhere."""
    found = list(default_faults(TABLE))
    assert {fault.guard for fault in found} == {"errors", "json", "ttft"}
    assert [fault.everywhere for fault in found].count(True) == 1


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
