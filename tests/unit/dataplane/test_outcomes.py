"""The outcome buffer: bounded in number and in text, oldest first, every loss counted."""

from gateway.dataplane.outcomes import OutcomeBuffer
from gateway.model.outcome import Capture, Outcome
from tests.unit.dataplane.outcome_values import make_outcome


def test_a_full_buffer_drops_and_counts() -> None:
    """What does not fit is counted with the next batch and never waited for."""
    buffer = OutcomeBuffer(capacity=3)
    for index in range(5):
        buffer.add(make_outcome(request_id=str(index)))
    batch, dropped = buffer.take()
    assert [outcome.request_id for outcome in batch] == ["0", "1", "2"]
    assert dropped == 2
    assert buffer.take() == ([], 0)


def test_texts_go_first_when_room_is_short() -> None:
    """Over the bound on captured bytes an outcome is kept without its texts; room comes back when a batch leaves."""
    buffer = OutcomeBuffer(capture_most=100)
    captures = [Capture(b"q" * 30, b"a" * 30, False)] * 2
    for capture in captures:
        buffer.add(make_outcome(capture=capture))
    batch, _ = buffer.take()
    assert [outcome.capture is None for outcome in batch] == [False, True]
    assert buffer.captures_dropped == 1
    buffer.add(make_outcome(capture=captures[0]))
    kept: list[Outcome] = buffer.take()[0]
    assert kept[0].capture == captures[0]


def test_batches_are_bounded_in_bytes() -> None:
    """A batch with large texts stays small enough for one frame."""
    buffer = OutcomeBuffer()
    for _ in range(10):
        buffer.add(make_outcome(capture=Capture(b"", b"a" * 1_500_000, True)))
    assert len(buffer.take()[0]) == 3
    assert len(buffer) == 7
