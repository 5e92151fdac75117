"""Turns: how many requests a conversation makes, which says how much its outcomes may repeat each other.

Owns one running mean in bounded memory. Past ``MOST`` open conversations every second one is left out, by a hash of its
name and never by what becomes of it. Old conversations weigh less and less. Called by whoever feeds outcomes.
"""

from zlib import crc32

import msgspec

from gateway.core.evidence.setting import moved

MOST = 4_096
LEAST_CONVERSATIONS = 100
REMEMBER_MOST = 20_000
IDLE_S = 3_600.0


def is_kept(conversation: str, every: int) -> bool:
    """Whether it is among every so-many'th: drawn by its name, so that nothing depends on what becomes of it."""
    return every <= 1 or crc32(conversation.encode()) % every == 0


class TurnsState(msgspec.Struct, frozen=True):
    """Requests and conversations counted so far."""

    requests: int = 0
    conversations: int = 0


class Turns:
    """The mean number of requests of a conversation."""

    __slots__ = ("_conversations", "_every", "_open", "_requests")

    def __init__(self, state: TurnsState | None = None) -> None:
        self._requests = state.requests if state is not None else 0
        self._conversations = state.conversations if state is not None else 0
        self._open: dict[str, tuple[float, int]] = {}
        self._every = 1

    def see(self, conversation: str, now_s: float) -> None:
        """Count one request."""
        if not is_kept(conversation, self._every):
            return
        last_s, number = self._open.pop(conversation, (-IDLE_S, 0))
        if not number or now_s - last_s > IDLE_S:
            number = 0
            self._conversations += 1
        self._open[conversation] = (now_s, number + 1)  # at the end of the dict: order of last sign of life
        self._requests += 1
        if len(self._open) > MOST:
            self._make_room(now_s)
        if self._conversations > REMEMBER_MOST:
            self._requests -= self._requests // 2
            self._conversations -= self._conversations // 2

    def mean(self) -> float | None:
        """Requests a conversation; None while too few are known."""
        if self._conversations < LEAST_CONVERSATIONS:
            return None
        return max(1.0, self._requests / max(self._conversations, 1))

    def shift(self, was_s: float, now_s: float) -> None:
        """The clock was set from one moment to another."""
        self._open = {name: (moved(last_s, was_s, now_s), number) for name, (last_s, number) in self._open.items()}

    def state(self) -> TurnsState:
        """What must survive a restart."""
        return TurnsState(max(self._requests, self._conversations, 0), max(self._conversations, 0))

    def _make_room(self, now_s: float) -> None:
        while self._open:
            oldest = next(iter(self._open))
            if now_s - self._open[oldest][0] <= IDLE_S:
                break
            del self._open[oldest]
        if len(self._open) > MOST:
            self._every *= 2
            out = [name for name in self._open if not is_kept(name, self._every)]
            for name in out:  # a conversation that is not followed to its end must not count as a short one
                self._requests -= self._open.pop(name)[1]
                self._conversations -= 1
