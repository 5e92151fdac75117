"""The pair buffer: bounded in bytes, frames of bounded size, counts that are told once."""

from gateway.dataplane.pairs import BATCH_BYTES, PairBuffer
from tests.unit.dataplane.pair_values import make_leg, make_pair


def test_no_room_is_said_and_comes_back() -> None:
    """A pair that does not fit is refused; room comes back when a batch leaves."""
    buffer = PairBuffer(most_bytes=1000)
    pair = make_pair(request=b"q" * 100, baseline=make_leg(answer=b"a" * 300), candidate=make_leg(answer=b"a" * 300))
    assert buffer.add(pair)
    assert not buffer.add(pair)
    taken = buffer.take(3)
    assert taken is not None
    assert (taken.worker, taken.batch) == (3, [pair])
    assert buffer.add(pair)


def test_counts_are_told_once() -> None:
    """Each message holds what happened since the last one, and nothing is sent for nothing."""
    buffer = PairBuffer()
    assert buffer.take(0) is None
    for _ in range(3):
        buffer.count("rule", "bucket", "eligible")
    taken = buffer.take(0)
    assert taken is not None
    assert [(c.rule, c.bucket, c.event, c.number) for c in taken.counts] == [("rule", "bucket", "eligible", 3)]
    assert buffer.take(0) is None


def test_a_message_stays_small() -> None:
    """Long texts go in several messages, in order, so that outcomes behind them do not wait."""
    buffer = PairBuffer()
    pairs = [make_pair(request_id=str(n), request=b"q" * (BATCH_BYTES // 2)) for n in range(5)]
    assert all(map(buffer.add, pairs))
    batches = []
    while (taken := buffer.take(0)) is not None:
        batches.append([pair.request_id for pair in taken.batch])
    assert batches == [["0", "1"], ["2", "3"], ["4"]]
