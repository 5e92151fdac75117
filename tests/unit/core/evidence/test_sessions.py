"""Promises of session votes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.evidence.sessions import SessionVotes


def test_an_idle_conversation_votes_its_share():
    """One vote per conversation, booked under the dispatch that opened it."""
    votes = SessionVotes(idle_s=60.0)
    assert votes.turn("a", 100.0, False, 101.0) == []
    assert votes.turn("a", 110.0, True, 112.0) == []
    assert list(votes.finished(171.9)) == []
    (vote,) = votes.finished(172.0)
    assert (vote.conversation, vote.share, vote.turns, vote.started_s, vote.ended_s) == ("a", 0.5, 2, 100.0, 112.0)
    assert len(votes) == 0


def test_a_long_conversation_votes_every_twenty_turns():
    """The twentieth turn closes the vote; the next one opens another."""
    votes = SessionVotes(most_turns=20)
    cast = [vote for turn in range(45) for vote in votes.turn("a", float(turn), turn < 20, float(turn))]
    assert [(vote.share, vote.turns, vote.started_s) for vote in cast] == [(1.0, 20, 0.0), (0.0, 20, 20.0)]
    assert [vote.turns for vote in votes.finished(1000.0)] == [5]


def test_a_turn_after_a_pause_begins_another_vote():
    """Nobody has to poll: a turn after more than the idle time closes the old vote itself."""
    votes = SessionVotes(idle_s=60.0)
    votes.turn("a", 0.0, True, 1.0)
    (vote,) = votes.turn("a", 100.0, False, 101.0)
    assert (vote.share, vote.turns) == (1.0, 1)


def test_no_vote_waits_longer_than_the_longest_conversation():
    """A conversation that never pauses is closed, so that its block can ripen."""
    votes = SessionVotes(idle_s=60.0, most_turns=10_000, longest_s=600.0)
    cast = [vote for second in range(0, 2000, 10) for vote in votes.turn("a", float(second), False, float(second))]
    assert [vote.ended_s - vote.started_s for vote in cast] == [590.0, 590.0, 590.0]


def test_open_conversations_are_bounded():
    """Beyond the bound the conversation with the oldest turn votes at once: evidence is kept, memory is not."""
    votes = SessionVotes(most_open=2)
    votes.turn("a", 0.0, True, 0.0)
    votes.turn("b", 1.0, False, 1.0)
    votes.turn("a", 2.0, True, 2.0)
    (vote,) = votes.turn("c", 3.0, False, 3.0)
    assert vote.conversation == "b"
    assert len(votes) == 2


def test_a_vote_stays_where_its_conversation_was_opened():
    """A turn that was dispatched before and answered later is a turn of it; the block that waits is the first one's."""
    votes = SessionVotes(idle_s=60.0)
    votes.turn("a", 110.0, False, 111.0)
    assert "a" in votes
    votes.turn("a", 100.0, True, 150.0)
    (vote,) = votes.finished(210.0)
    assert (vote.share, vote.started_s, vote.ended_s) == (0.5, 110.0, 150.0)
    assert "a" not in votes


@given(st.lists(st.tuples(st.integers(0, 4), st.floats(0, 300), st.booleans()), max_size=120))
def test_every_turn_is_in_exactly_one_vote(turns):
    """No turn is lost or counted twice, whatever the interleaving."""
    votes = SessionVotes(most_turns=7, most_open=3)
    cast, now_s = [], 0.0
    for conversation, pause_s, bad in turns:
        now_s += pause_s
        cast += votes.turn(conversation, now_s, bad, now_s)
        cast += votes.finished(now_s)
    cast += votes.finished(now_s + 1e6)
    assert sum(vote.turns for vote in cast) == len(turns)
    assert sum(vote.share * vote.turns for vote in cast) == pytest.approx(sum(bad for _, _, bad in turns))
    assert all(0.0 <= vote.share <= 1.0 and 1 <= vote.turns <= 7 for vote in cast)


def test_times_must_be_positive():
    """A conversation that ends before it begins makes no vote."""
    with pytest.raises(ValueError, match="positive"):
        SessionVotes(idle_s=0.0)


@given(
    st.lists(st.tuples(st.integers(0, 5), st.booleans(), st.integers(0, 40)), max_size=60),
    st.integers(0, 60),
)
def test_a_restart_at_any_moment_changes_no_vote(turns, restart):
    """The same votes in the same order, whatever was open."""
    whole, again, now_s = SessionVotes(30.0, 5, 100.0, 3), SessionVotes(30.0, 5, 100.0, 3), 0.0
    for number, (name, bad, pause_s) in enumerate(turns):
        if number == restart:
            stored, again = again.state(), SessionVotes(30.0, 5, 100.0, 3)
            again.restore(stored)
        now_s += pause_s
        assert whole.turn(f"c{name}", now_s, bad, now_s) == again.turn(f"c{name}", now_s, bad, now_s)
        assert list(whole.finished(now_s)) == list(again.finished(now_s))


def test_of_too_many_every_second_conversation_is_stored_by_its_name():
    """Whether one is stored does not depend on its turns."""
    votes = SessionVotes()
    for number in range(1_000):
        votes.turn(f"c{number}", 0.0, number % 3 == 0, 0.0)
    kept = {one.conversation for one in votes.state(2)}
    assert 400 < len(kept) < 600
    other = SessionVotes()
    for number in range(1_000):
        other.turn(f"c{number}", 5.0, number % 5 == 0, 5.0)
    assert kept == {one.conversation for one in other.state(2)}
