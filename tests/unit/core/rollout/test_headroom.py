"""What the baseline can take is said beforehand."""

from gateway.core.rollout import measure_headroom


def test_what_fits_and_what_does_not() -> None:
    """Half of 40 in flight come back to a pool with 10 free places."""
    room = measure_headroom("bf16", candidate_inflight=40, bucket_share=0.5, used=90, limit=100)
    assert (room.moved, room.free, room.overflow) == (20.0, 10.0, 10.0)
    assert "429" in room.words
    assert measure_headroom("bf16", candidate_inflight=4, bucket_share=1, used=0, limit=100).overflow == 0.0


def test_a_pool_without_a_limit_is_named_as_a_risk() -> None:
    """Nothing keeps it from being overrun, and the notice says so."""
    room = measure_headroom("bf16", candidate_inflight=4, bucket_share=1, used=0, limit=None)
    assert room.overflow == 0.0
    assert "limits.inflight" in room.words
