"""Conversations of one (rollout, bucket): from turns to votes of the series that count by conversation.

Owns the open conversations, and that the judge waits for each where its series is announced. A vote is booked at the
second of the turn that opened the conversation here, for that is the block that waits; so a turn whose own block is
closed opens none, and counts for a conversation that is open. Called by ``rollouts_feeds``.
"""

from collections.abc import Iterable, Mapping

import msgspec

from gateway.control import guards
from gateway.control.guards import Shape, Wanted
from gateway.control.rollouts_booking import Booking
from gateway.control.rollouts_margins import Margins
from gateway.core.evidence import Judge, SeriesKey
from gateway.core.evidence.sessions import OpenConversation, SessionVote, SessionVotes
from gateway.core.evidence.timeline import Timeline


class SessionsState(msgspec.Struct, frozen=True):
    """The open conversations of one series, which is ``guard``'s on ``pool``."""

    guard: str
    pool: str
    conversations: tuple[OpenConversation, ...]


class Sessions:
    """Open conversations by series. ``margins`` are those of the bucket by series' names, ``candidate`` the pool's."""

    def __init__(self, judge: Judge, booking: Booking, margins: Mapping[str, Margins], candidate: str) -> None:
        self._judge = judge
        self._booking = booking
        self._margins = margins
        self._candidate = candidate
        self._open: dict[SeriesKey, SessionVotes] = {}

    def turn(self, one: Wanted, key: SeriesKey, conversation: str, second: int, *, value: float, now_s: float) -> None:
        """One resolved turn of a conversation with the key's pool, of a request that arrived at ``second``."""
        if not one.twin and one.shape is not Shape.MARGIN and key.pool != self._candidate:
            return
        sessions = self._sessions(one, key)
        timeline = self._timeline(key)
        if conversation not in sessions and timeline.is_closed(second):
            # It would take along what is said of the conversation's newer answers.
            timeline.late += 1
            return
        held = len(sessions)
        votes = sessions.turn(conversation, second, value > 0.0, now_s)
        # A new conversation is open now unless it voted at once; the block waits for its vote.
        opened = len(sessions) + len(votes) - held
        if opened > 0 and one.shape is Shape.SESSION and one.spec.announced:
            self._judge.announce(key, second, opened)
        for vote in votes:
            self._vote(key, vote)

    def advance(self, now_s: float) -> None:
        """Let the conversations vote that are over."""
        for key, sessions in self._open.items():
            for vote in sessions.finished(now_s):
                self._vote(key, vote)

    def __len__(self) -> int:
        return sum(map(len, self._open.values()))

    def state(self, every: int = 1) -> tuple[SessionsState, ...]:
        """What must survive a restart, of every so-many'th conversation."""
        return tuple(
            SessionsState(key.guard, key.pool, sessions.state(every))
            for key, sessions in self._open.items()
            if len(sessions)
        )

    def restore(self, wanted: Mapping[str, Wanted], bucket: str, stored: Iterable[SessionsState]) -> None:
        """Go on from what was stored of the ``wanted`` series, by name."""
        for state in stored:
            one = wanted.get(state.guard)
            if one is not None and one.by_conversation:
                self._sessions(one, SeriesKey(state.guard, bucket, state.pool)).restore(state.conversations)

    def shift(self, was_s: float, now_s: float) -> None:
        """The clock was set: conversations move along with the blocks that wait for them."""
        for key, sessions in self._open.items():
            timeline = self._timeline(key)
            sessions.shift((timeline.number_at(now_s) - timeline.number_at(was_s)) * timeline.block_s)

    def _timeline(self, key: SeriesKey) -> Timeline:
        margins = self._margins.get(key.guard)
        return margins.timeline if margins is not None else self._judge.series(key).timeline

    def _sessions(self, one: Wanted, key: SeriesKey) -> SessionVotes:
        sessions = self._open.get(key)
        if sessions is None:
            longest_s = guards.conversation_s(one.guard)
            sessions = self._open[key] = SessionVotes(guards.idle_s(one.guard), longest_s=longest_s)
        return sessions

    def _vote(self, key: SeriesKey, vote: SessionVote) -> None:
        margins = self._margins.get(key.guard)
        if margins is None:
            self._booking.count(key.guard, key.pool, vote.started_s, vote.share)
        else:
            margins.add(int(vote.started_s), vote.share, candidate=key.pool == self._candidate)
