"""The outcome buffer: bounded in number and in text, oldest first, every loss counted."""

from gateway.dataplane.outcomes import BATCH, OutcomeBuffer
from gateway.model.outcome import Capture
from tests.unit.dataplane.outcome_values import ended, make_outcome, opened


def test_a_full_buffer_drops_and_counts() -> None:
    """What does not fit is counted with the next batch and never waited for."""
    buffer = OutcomeBuffer(capacity=3)
    for index in range(5):
        buffer.add(ended(make_outcome(request_id=str(index))))
    batch, dropped = buffer.take()
    assert batch.request_id == ["0", "1", "2"]
    assert dropped == 2
    empty, dropped = buffer.take()
    assert (opened(empty), dropped, len(buffer)) == ([], 0, 0)


def test_texts_go_first_when_room_is_short() -> None:
    """Over the bound on captured bytes an outcome is kept without its texts; room comes back when a batch leaves."""
    buffer = OutcomeBuffer(capture_most=100)
    captures = [Capture(b"q" * 30, b"a" * 30, False)] * 2
    for capture in captures:
        buffer.add(ended(make_outcome(capture=capture)))
    batch, _ = buffer.take()
    assert [outcome.capture is None for outcome in opened(batch)] == [False, True]
    assert buffer.captures_dropped == 1
    buffer.add(ended(make_outcome(capture=captures[0])))
    assert opened(buffer.take()[0])[0].capture == captures[0]


def test_batches_are_bounded_in_bytes() -> None:
    """A batch with large texts stays small enough for one frame."""
    buffer = OutcomeBuffer()
    for _ in range(10):
        buffer.add(ended(make_outcome(capture=Capture(b"", b"a" * 1_500_000, True))))
    assert len(buffer.take()[0].kind) == 3
    assert len(buffer) == 7


def test_batches_are_bounded_in_number() -> None:
    """The oldest first, none lost and none twice; what is taken makes room."""
    buffer = OutcomeBuffer(capacity=2 * BATCH + 2)
    for index in range(2 * BATCH + 3):
        buffer.add(ended(make_outcome(request_id=str(index))))
    sizes, ids = [], []
    while len(buffer):
        batch, _ = buffer.take()
        sizes.append(len(batch.kind))
        ids += batch.request_id
    assert (sizes, ids) == ([BATCH, BATCH, 2], [str(index) for index in range(2 * BATCH + 2)])
    buffer.add(ended(make_outcome(request_id="later")))
    assert (buffer.take()[0].request_id, buffer.dropped) == (["later"], 0)


def test_a_kind_travels_once_a_batch() -> None:
    """And each outcome keeps its own."""
    buffer = OutcomeBuffer()
    for model in "abab":
        buffer.add(ended(make_outcome(model=model)))
    batch, _ = buffer.take()
    assert len(batch.kinds) == 2
    assert [outcome.kind.model for outcome in opened(batch)] == ["a", "b", "a", "b"]
