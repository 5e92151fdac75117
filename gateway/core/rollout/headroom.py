"""What the baseline can take when a bucket comes back to it: the head-room rule.

Owns the arithmetic and the words. A rollback never waits for room: leaving a bad pool in the bucket is the worse
harm. What the baseline's limits do not admit waits and is then refused by admission (429, Retry-After), lower tiers
first; this rule says beforehand how much that will be, so that whoever is paged knows. Pure; called by the engine.
"""

import msgspec


class Headroom(msgspec.Struct, frozen=True):
    """``moved`` requests in flight come to a pool with ``used`` of ``limit`` in flight; ``limit`` None = none set."""

    baseline: str
    moved: float
    used: float
    limit: int | None

    @property
    def free(self) -> float | None:
        """Room left; None if nothing limits the pool."""
        return None if self.limit is None else max(0.0, self.limit - self.used)

    @property
    def overflow(self) -> float:
        """What it cannot take."""
        return 0.0 if self.free is None else max(0.0, self.moved - self.free)

    @property
    def words(self) -> str:
        """For the notice and the record."""
        if self.free is None:
            return (
                f"{self.baseline} takes about {self.moved:.0f} requests in flight; it has no limits.inflight, "
                "so nothing keeps it from being overrun: set one"
            )
        if not self.overflow:
            return f"{self.baseline} takes about {self.moved:.0f} requests in flight and has room for {self.free:.0f}"
        return (
            f"{self.baseline} has room for {self.free:.0f} of about {self.moved:.0f} requests in flight: about "
            f"{self.overflow:.0f} will wait or be refused with 429, lower tiers first"
        )


def measure_headroom(
    baseline: str, *, candidate_inflight: float, bucket_share: float, used: float, limit: int | None
) -> Headroom:
    """From what runs now: ``bucket_share`` is the bucket's part of the candidate's requests, 0 to 1."""
    return Headroom(baseline, candidate_inflight * min(1.0, max(0.0, bucket_share)), used, limit)
