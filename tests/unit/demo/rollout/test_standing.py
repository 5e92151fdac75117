"""What the gateway tells of a rollout is read as is documented, and events have names that a person understands."""

from typing import Any

import pytest

from gateway.demo.rollout.standing import Event, read_buckets, read_events
from tests.unit.demo.rollout.story import guard

SERIES = {
    "series": "wrong",
    "guard": "wrong",
    "limit": 0.15,
    "asked": True,
    "outcomes": 11,
    "bad": 8.0,
    "suspicion": -1.25,
    "log_evidence": -4.0,
    "needed_log_evidence": 4.49,
    "interval": [0.4, 0.95],
    "trip": None,
    "baseline": {"outcomes": 40, "bad": 1.0, "suspicion": -7.0},
}
ROW = {
    "rollout": "q4-json",
    "bucket": "short/free-json/none",
    "state": "stepping",
    "stage": 0,
    "share_bp": 2500,
    "reason": "q4 is ready",
    "stages": [{"kind": "weight"}] * 3,
    "series": [SERIES, {**SERIES, "series": "hard_errors", "asked": False, "interval": None}],
}


def test_a_bucket_with_its_guards() -> None:
    """Those of the policy count; the engine's own fast path does not stand in the table."""
    bucket = read_buckets({"restored": True, "buckets": [ROW]})["short/free-json/none"]
    (wrong,) = bucket.guards
    assert (wrong.bad, wrong.outcomes, wrong.interval) == (8.0, 11, (0.4, 0.95))
    assert (wrong.baseline.bad, wrong.baseline.outcomes) == (1.0, 40)
    assert (bucket.share, bucket.decided) == ("25 %", False)


def test_a_gateway_that_says_nothing() -> None:
    """No bucket and no event, rather than an error: it is asked again."""
    assert read_buckets({}) == {}
    assert read_events({}) == ()


@pytest.mark.parametrize(("suspicion", "against"), [(-9.0, 0.0), (-5.0, 0.0), (-2.5, 0.5), (0.0, 1.0), (0.4, 1.0)])
def test_how_far_a_meter_is(suspicion: float, against: float) -> None:
    """Nothing below where a stage begins, everything where it trips."""
    assert guard(suspicion=suspicion).against == against


@pytest.mark.parametrize(("log_evidence", "proven"), [(-3.0, 0.0), (0.0, 0.0), (2.0, 0.5), (9.0, 1.0)])
def test_how_far_the_evidence_is(log_evidence: float, proven: float) -> None:
    """On its own scale, which is a logarithm."""
    assert guard(log_evidence=log_evidence, needed_log_evidence=4.0).proven == proven


def line(**change: Any) -> dict[str, Any]:
    """A line of the record as the API tells it."""
    fields = {"id": 1, "bucket": "b", "at": 5.0, "event": "pass", "before": "stepping", "after": "stepping", "stage": 1}
    return {**fields, "share_bp": 5000, "reason": "enough", "actor": "quantgate", "evidence": {}, **change}


def test_the_record_is_told_from_its_beginning() -> None:
    """The API has the newest first."""
    assert [event.id for event in read_events({"events": [line(id=3), line(id=2), line(id=1)]})] == [1, 2, 3]


@pytest.mark.parametrize(
    ("change", "title"),
    [
        ({"event": "begin", "before": "pending", "share_bp": 2500}, "enters at 25 %"),
        ({}, "stepped to 50 %"),
        ({"after": "promoted", "share_bp": 10_000}, "promoted"),
        ({"event": "fail", "after": "rolled_back", "share_bp": -1}, "rolled back"),
        ({"event": "incident", "after": "holding"}, "holding (incident)"),
        ({"event": "incident", "before": "promoted", "after": "holding"}, "holding (incident)"),
    ],
)
def test_what_an_event_is_called(change: dict[str, Any], title: str) -> None:
    """In words of what became of the candidate."""
    (event,) = read_events({"events": [line(**change)]})
    assert isinstance(event, Event)
    assert event.title == title
