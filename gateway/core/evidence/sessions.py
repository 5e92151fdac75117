"""Session votes: one share of bad turns per finished conversation.

Owns when a conversation is finished (idle, long enough, or old enough) and what it then votes. For guards whose
outcomes cluster in conversations (tools, JSON, refusals), where turns are not independent evidence but conversations
are. Called by control with every resolved turn; must not know meters. A vote is booked under the dispatch of the turn
that OPENED it: booked under its end, conversations that break off early because they failed would be seen before the
healthy ones. It is never moved back to a turn that was dispatched before and became known later: the block that waits
for the vote is the one that was told of it, and an older one may be closed.
"""

from collections.abc import Hashable, Iterable, Iterator

import msgspec

from gateway.core.evidence.turns import is_kept

IDLE_S = 60.0
MOST_TURNS = 20


class SessionVote(msgspec.Struct, frozen=True):
    """Share of bad turns of one conversation, to be accepted at ``started_s`` (dispatch of the turn that opened it)."""

    conversation: Hashable
    share: float
    turns: int
    started_s: float
    ended_s: float


class OpenConversation(msgspec.Struct, frozen=True, array_like=True):
    """A conversation that has not voted yet, as it is stored."""

    conversation: str
    started_s: float
    last_s: float
    turns: int
    bad: int


class _Turns:
    __slots__ = ("bad", "last_s", "started_s", "turns")

    def __init__(self, started_s: float, last_s: float, turns: int = 0, bad: int = 0) -> None:
        self.started_s = started_s
        self.last_s = last_s
        self.turns = turns
        self.bad = bad


class SessionVotes:
    """Open conversations of one series.

    A conversation votes after ``idle_s`` without a turn, at ``most_turns`` turns, or ``longest_s`` after its first
    turn; later turns open a new one. So a series over these votes needs a deadline of ``longest_s`` plus the time a
    turn takes, unless its conversations are announced. At most ``most_open`` are held; beyond that the longest idle
    one votes at once.
    """

    __slots__ = ("_open", "idle_s", "longest_s", "most_open", "most_turns")

    def __init__(
        self,
        idle_s: float = IDLE_S,
        most_turns: int = MOST_TURNS,
        longest_s: float = 600.0,
        most_open: int = 65_536,
    ) -> None:
        if idle_s <= 0.0 or most_turns < 1 or longest_s <= 0.0 or most_open < 1:
            raise ValueError("idle_s, most_turns, longest_s and most_open must all be positive")
        self._open: dict[Hashable, _Turns] = {}
        self.idle_s = idle_s
        self.most_turns = most_turns
        self.longest_s = longest_s
        self.most_open = most_open

    def __len__(self) -> int:
        return len(self._open)

    def __contains__(self, conversation: Hashable) -> bool:
        return conversation in self._open

    def turn(self, conversation: Hashable, dispatched_s: float, bad: bool, now_s: float) -> list[SessionVote]:
        """Count one resolved turn; returns the votes that it completes."""
        votes = []
        turns = self._open.pop(conversation, None)
        if turns is not None and self._is_over(turns, dispatched_s):
            votes.append(_vote(conversation, turns))
            turns = None
        if turns is None:
            turns = _Turns(dispatched_s, dispatched_s)
        turns.turns += 1
        turns.bad += bad
        turns.last_s = max(turns.last_s, now_s)
        if turns.turns >= self.most_turns:
            votes.append(_vote(conversation, turns))
            return votes
        self._open[conversation] = turns  # at the end of the dict: order of last turn
        if len(self._open) > self.most_open:
            oldest = next(iter(self._open))
            votes.append(_vote(oldest, self._open.pop(oldest)))
        return votes

    def finished(self, now_s: float) -> Iterator[SessionVote]:
        """Close and yield the conversations that are over at ``now_s``; consume it fully."""
        over = [conversation for conversation, turns in self._open.items() if self._is_over(turns, now_s)]
        for conversation in over:
            yield _vote(conversation, self._open.pop(conversation))

    def shift(self, seconds: float) -> None:
        """The clock was set by that much."""
        for turns in self._open.values():
            turns.started_s += seconds
            turns.last_s += seconds

    def state(self, every: int = 1) -> tuple[OpenConversation, ...]:
        """What must survive a restart, in the order of last turns; of every so-many'th conversation, by its name."""
        return tuple(
            OpenConversation(str(name), turns.started_s, turns.last_s, turns.turns, turns.bad)
            for name, turns in self._open.items()
            if is_kept(str(name), every)
        )

    def restore(self, stored: Iterable[OpenConversation]) -> None:
        """Go on from what was stored."""
        self._open = {one.conversation: _Turns(one.started_s, one.last_s, one.turns, one.bad) for one in stored}

    def _is_over(self, turns: _Turns, now_s: float) -> bool:
        return now_s - turns.last_s >= self.idle_s or now_s - turns.started_s >= self.longest_s


def _vote(conversation: Hashable, turns: _Turns) -> SessionVote:
    return SessionVote(conversation, turns.bad / turns.turns, turns.turns, turns.started_s, turns.last_s)
