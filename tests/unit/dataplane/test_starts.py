"""Dispatches are counted per second, bucket and pool, within a bound."""

from gateway.dataplane.starts import MOST, StartCounts
from gateway.model.messages import Start, Starts


def test_attempts_of_one_second_are_one_count() -> None:
    """Once taken, they are told."""
    counts = StartCounts()
    assert counts.take(3) is None
    for at in (10.1, 10.9, 11.0):
        counts.note(at, "b", "int4")
    counts.note(10.5, "b", "bf16")
    assert counts.take(3) == Starts(
        3, [Start(10, "b", "int4", 2), Start(11, "b", "int4", 1), Start(10, "b", "bf16", 1)]
    )
    assert counts.take(3) is None


def test_with_control_away_the_oldest_knowledge_goes_first() -> None:
    """Memory stays bounded."""
    counts = StartCounts()
    for second in range(MOST + 10):
        counts.note(float(second), "b", "int4")
    message = counts.take(0)
    assert message is not None
    assert len(message.counts) == MOST
    assert message.counts[0].second == 10
