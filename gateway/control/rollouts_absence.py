"""Candidates that are to get traffic and serve none of it: people hear of that once, and once when it is over.

Such a bucket is neither bad nor well: its baseline serves, its meters hear nothing, and its share is only on paper. A
restart is no news, so it takes a while. Called beside ``rollouts_world``'s edges, once a second.
"""

from collections.abc import Iterator

from gateway.control.rollouts import Engine
from gateway.control.webhooks import Message

TELL_AFTER = 30
"""Looks in a row, a second apart. A candidate that failed requests is mostly rolled back by then."""


class Absences:
    """Looks at the engine's buckets; ``news`` is what changed for people."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._looks: dict[tuple[str, str], int] = {}

    def news(self, now_s: float) -> Iterator[Message]:
        """Look once more: candidates that have been away for long now, and those that were and are back."""
        found = self._away()
        before, self._looks = self._looks, {at: self._looks.get(at, 0) + 1 for at in found}
        for at, (buckets, words) in sorted(found.items()):
            if self._looks[at] == TELL_AFTER:
                yield _message(at, now_s, f"does not serve its part of {buckets} bucket(s): {words}", resolved=False)
        for at, looks in sorted(before.items()):
            if at not in found and looks >= TELL_AFTER:
                yield _message(at, now_s, "serves again, or is to serve nothing", resolved=True)

    def _away(self) -> dict[tuple[str, str], tuple[int, str]]:
        """(rollout, candidate) -> in how many buckets evidence is waited for, and why none comes."""
        found: dict[tuple[str, str], tuple[int, str]] = {}
        for standing, words in self._engine.awaited():
            at = (standing.rollout, standing.candidate)
            found[at] = (found.get(at, (0, ""))[0] + 1, words)
        return found


def _message(at: tuple[str, str], now_s: float, words: str, *, resolved: bool) -> Message:
    rollout, pool = at
    rest = "" if resolved else ". The baseline does, and nothing advances"
    return Message("hold", now_s, f"{pool} {words}{rest}.", {"rollout": rollout, "pool": pool}, resolved=resolved)
