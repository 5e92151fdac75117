"""Promises of the twin rule."""

import pytest

from gateway.core.evidence.twin import Response, TwinStanding, decide_trip

NOW = 10_000.0


@pytest.mark.parametrize(
    ("twin", "response"),
    [
        (None, Response.ROLL_BACK),
        (TwinStanding(0.0, None), Response.ROLL_BACK),
        (TwinStanding(9.9e-4, None), Response.ROLL_BACK),
        (TwinStanding(1e-3, None), Response.HOLD),
        (TwinStanding(0.0, NOW), Response.HOLD),
        (TwinStanding(0.0, NOW - 3600.0), Response.HOLD),
        (TwinStanding(0.0, NOW - 3601.0), Response.ROLL_BACK),
    ],
)
def test_an_absolute_trip_asks_the_baseline(twin, response):
    """Roll back only if the baseline has been quiet for an hour and stands below 1e-3; else it is an incident."""
    assert decide_trip(relative=False, twin=twin, now_s=NOW).response is response


def test_a_relative_trip_decides_alone():
    """Pairs and shares compare with the baseline already; its own incident changes nothing."""
    decision = decide_trip(relative=True, twin=TwinStanding(0.5, NOW), now_s=NOW)
    assert decision.response is Response.ROLL_BACK


def test_reasons_are_words_for_the_person_who_is_paged():
    """The decision says what the baseline did."""
    assert "tripped 60 s ago" in decide_trip(relative=False, twin=TwinStanding(0.0, NOW - 60), now_s=NOW).reason
    assert "suspicion is 0.02" in decide_trip(relative=False, twin=TwinStanding(0.02, None), now_s=NOW).reason
