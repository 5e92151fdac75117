"""How often things go wrong in a healthy pool, and limits that are too near."""

import pytest

from gateway.control.rehearsal import (
    recorded_levels,
    warnings_of,
)
from gateway.control.rehearsal.levels import healthy_levels
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
        "attempts": '[["bf16","bf16/0",200,"",0.1,0.9]]',
    }
    waited = {"ttft_s": 3.1, "attempts": '[["int4","i",0,"connect",0.1,2.9],["bf16","b",200,"",3.0,0.2]]'}
    rows = [fine] * 294 + [fine | {"result": "upstream_error"}] * 6 + [fine | {"result": "client_error"}] * 50
    rows += [fine | {"failures": ",format_error,"}] * 6 + [fine | {"ttft_s": 3.0}] * 2 + [fine | waited]
    found = recorded_levels(TABLE, rows)
    assert found["errors"] == pytest.approx(6 / 309)
    assert found["json"] == pytest.approx(6 / 303)
    assert found["ttft"] == pytest.approx(2 / 303)  # what another pool took before is not the baseline's
    assert recorded_levels(TABLE, rows[:100]) == {}
