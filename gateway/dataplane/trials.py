"""Which requests a rollout's candidate is tried with although its endpoints are ejected.

Ejection spares clients a pool that fails, and would spare the pool its verdict: without attempts there is no evidence,
and a candidate that answers nothing would keep its share for as long as nobody asks it. So a request of its own share
goes to it now and then all the same. Such an attempt counts for the guards as any other; it moves no breaker, is none
of the request's attempts, and its failover is on nobody's account, for without the trial the same pool would have had
the request. Called by ``forward``.
"""

from typing import Final

from gateway.dataplane.exchange import Exchange
from gateway.dataplane.fleet import PoolView

EVERY_S: Final = 1.0  # one bucket's trials in one worker: two prove a total failure in a quarter of a minute
ROOM_LEAST: Final = 2.0  # places left in the pool that would serve instead, which gets the request after all
MOST: Final = 4_096
CANDIDATE: Final = "candidate"


class Trials:
    """When each (pool, bucket) is tried next, by this worker's monotonic clock. ``every_s``: seconds between two."""

    __slots__ = ("_due", "_every_s")

    def __init__(self, every_s: float = EVERY_S) -> None:
        self._every_s = every_s
        self._due: dict[tuple[str, str], float] = {}

    def take(self, exchange: Exchange, instead: PoolView, now: float) -> PoolView | None:
        """The candidate to try, once it is due; ``instead`` is the pool that would serve this request.

        Only endpoints that failed requests of clients are tried. A pool that its health checks withdrew before it
        failed one is being drained, or has never been up: that says nothing of its answers.
        """
        decision, profile = exchange.decision, exchange.profile
        if decision is None or profile is None or decision.arm != CANDIDATE or instead.name == decision.pools[0]:
            return None
        rollout = exchange.generation.rollouts.get(decision.rollout or "")
        if rollout is None or rollout.candidate != decision.pools[0]:
            return None  # a tool loop has left it
        candidate = exchange.generation.pools[rollout.candidate]
        if exchange.tried or exchange.attempts_most < 2 or instead.room() < ROOM_LEAST or candidate.full():
            return None
        if candidate.healthy(now, ()) or not candidate.failing():
            return None
        return candidate if self._is_due((candidate.name, profile.bucket), now) else None

    def _is_due(self, key: tuple[str, str], now: float) -> bool:
        due = self._due.get(key, now)
        if now < due:
            return False
        if len(self._due) >= MOST:
            self._due.clear()
        self._due[key] = now + self._every_s
        return True
