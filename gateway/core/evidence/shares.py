"""Failure shares: is the candidate to blame for more of the failures than its part of the traffic?

Owns the limit of a share from realised counts (evidence.md 4.2) and the rule that only a conversation's FIRST
failure counts, and only requests of conversations that have not failed yet: repeated failures of one conversation are
one event. Never use that rule for absolute limits, where it hides failures. Called by readings and by control, which
sees the conversations.
"""

from collections.abc import Hashable, Iterable

from gateway.core.evidence.setting import moved
from gateway.core.evidence.turns import is_kept


def share_limit(candidate: int, baseline: int, tolerated_ratio: float = 1.0) -> float | None:
    """Largest tolerable part of the candidate in all failures, given dispatched requests of both arms.

    ``tolerated_ratio`` is the tolerated ratio of failure rates (1 = no worse). None if an arm had no traffic: then
    failures say nothing about either.
    """
    if tolerated_ratio <= 0.0:
        raise ValueError(f"a tolerated ratio must be positive, got {tolerated_ratio!r}")
    if candidate <= 0 or baseline <= 0:
        return None
    weighted = tolerated_ratio * candidate
    return weighted / (weighted + baseline)


class FirstFailures:
    """Remembers conversations that have failed, the latest ``most`` of them, each for ``forget_s`` after its last
    sign of life.

    Requests without a conversation are conversations of their own: do not ask about them.
    """

    __slots__ = ("_failed", "forget_s", "most")

    def __init__(self, most: int = 65_536, forget_s: float = 3600.0) -> None:
        self._failed: dict[Hashable, float] = {}
        self.most = most
        self.forget_s = forget_s

    def __len__(self) -> int:
        return len(self._failed)

    def counts(self, conversation: Hashable, now_s: float) -> bool:
        """Whether a request of this conversation, dispatched now, belongs into the arm's count."""
        seen_s = self._failed.get(conversation)
        if seen_s is None:
            return True
        if now_s - seen_s > self.forget_s:
            del self._failed[conversation]
            return True
        self._touch(conversation, now_s)
        return False

    def failed(self, conversation: Hashable, now_s: float) -> bool:
        """Note a failure; True if it is the conversation's first and therefore counts."""
        first = self.counts(conversation, now_s)
        self._touch(conversation, now_s)
        if len(self._failed) > self.most:
            del self._failed[next(iter(self._failed))]
        return first

    def shift(self, was_s: float, now_s: float) -> None:
        """The clock was set from one moment to another."""
        self._failed = {name: moved(seen_s, was_s, now_s) for name, seen_s in self._failed.items()}

    def state(self, every: int = 1) -> tuple[tuple[str, float], ...]:
        """What must survive a restart, oldest sign of life first; of every so-many'th conversation, by its name."""
        return tuple((str(name), seen_s) for name, seen_s in self._failed.items() if is_kept(str(name), every))

    def restore(self, stored: Iterable[tuple[str, float]]) -> None:
        """Go on from what was stored."""
        self._failed = dict(stored)

    def _touch(self, conversation: Hashable, now_s: float) -> None:
        # Re-inserting keeps the dict in order of last sign of life, so the oldest is always first.
        self._failed.pop(conversation, None)
        self._failed[conversation] = now_s
