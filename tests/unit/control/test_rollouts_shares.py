"""Conversations that have failed count once, also after a restart."""

from gateway.control.guards import series_of
from gateway.control.rollouts_booking import Booking
from gateway.control.rollouts_shares import Shares
from gateway.core.evidence import Budget, Judge, SeriesKey
from gateway.model.proving import Guard

(ONE,) = series_of(Guard("tools", "tool_failure_rate", ratio=1.1))


def test_a_conversation_that_failed_stays_out_over_a_restart() -> None:
    """Its next failure is the same event."""
    judge = Judge(Budget())
    judge.register(SeriesKey(ONE.name, "b", "int4"), ONE.spec, 1_000.0)
    booking = Booking(judge, "b")
    shares = Shares(booking, (ONE,), "int4")
    shares.take(ONE, "int4", 1_001, bad=True, conversation="a")
    again = Shares(booking, (ONE,), "int4")
    again.restore((), shares.state())
    assert not len(again)
    again.restore((ONE.name,), shares.state())
    assert len(again) == len(shares) == 1
    for pool, conversation in (("int4", "a"), ("bf16", "b")):
        again.take(ONE, pool, 1_002, bad=True, conversation=conversation)
    booking.settle()
    (block,) = judge.series(SeriesKey(ONE.name, "b", "int4")).timeline.pending.values()
    assert block.cells == {(0.0, 1.0): 1, (1.0, 1.0): 1}
