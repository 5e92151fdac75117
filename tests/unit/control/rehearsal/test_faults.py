"""Faults as people write them, and the set that is tried by default."""

import pytest

from gateway.control.rehearsal import (
    Fault,
    default_faults,
    read_fault,
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
