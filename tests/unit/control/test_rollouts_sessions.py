"""Votes of conversations reach the blocks that wait for them, however slow answers are."""

from collections.abc import Callable

from gateway.control.guards import series_of
from gateway.control.rollouts_feeds import BucketFeed
from gateway.core.consequence import Consequence, Kind, Subject
from gateway.core.evidence import Budget, Judge, SeriesKey
from gateway.core.evidence.series import Series
from gateway.model.outcome import Attempt, Outcome
from gateway.model.proving import Guard
from tests.unit.control.conftest import outcome
from tests.unit.control.rollout_rig import inspection, rollout_policy

PLAN = rollout_policy().rollouts[0]
AT = 1_000.0
JSON = Guard("json", "format_error_rate", limit=0.01, feed="session", block_s=10.0)

Event = tuple[float, Callable[[float], None]]


class Fed:
    """A feed of one guard over a judge of its own, a turn each second."""

    def __init__(self, guard: Guard = JSON) -> None:
        self.judge = Judge(Budget())
        self.name = guard.name
        wanted = series_of(guard)
        self.feed = BucketFeed(self.judge, PLAN, "b", wanted, AT)
        for one in wanted:
            for key, spec in self.feed.keys(one):
                self.judge.register(key, spec, AT)

    def series(self, pool: str = "int4") -> Series:
        """The guard's own."""
        return self.judge.series(SeriesKey(self.name, "b", pool))

    def run(self, until: float, events: list[Event], since: float = AT) -> None:
        """What happens, each at its second, and what the judge makes of it; ``until`` and they count from ``AT``."""
        for second in range(int(since), int(AT + until)):
            for at, happen in events:
                if second <= AT + at < second + 1:
                    happen(second + 1.0)
            self.feed.advance(second + 1.0)
            self.judge.advance(second + 1.0)

    def answer(self, at: float, conversation: str, took: float, *, good: bool = False) -> list[Event]:
        """A request that is announced, and checked when it is answered."""
        asked = asked_at(at, conversation)

        def check(now_s: float) -> None:
            self.feed.take_checked(asked, inspection(json=good), now_s)

        return [(at, lambda _: self.feed.start(int(AT + at), "int4", 1, set())), (at + took, check)]

    def counted(self) -> tuple[int, float, int]:
        """Votes, their sum, and what was lost."""
        series = self.series()
        return series.evidence.number, round(series.bad, 4), series.timeline.late


def asked_at(at: float, conversation: str, pool: str = "int4") -> Outcome:
    """A request, by seconds since ``AT``."""
    return outcome(
        at=AT + at,
        bucket="b",
        rollout=PLAN.name,
        pool=pool,
        request_id=f"{conversation}/{at}",
        conversation=conversation,
        attempts=(Attempt(pool, f"{pool}/0", 200, "", 0.0, 0.3),),
    )


def test_a_conversation_counts_however_long_its_first_answer_takes() -> None:
    """Garbage that runs to the token limit is what such a guard is there for."""
    fed = Fed()
    events = [*fed.answer(1, "quick", 2, good=True), *fed.answer(2, "slow", 100), *fed.answer(3, "slower", 500)]
    fed.run(400, events)
    assert fed.counted() == (0, 0.0, 0), "the block waits"
    fed.run(600, events, AT + 400)
    assert fed.counted() == (3, 2.0, 0)


def test_an_answer_that_nobody_looks_at_holds_no_block_up() -> None:
    """It says nothing, whether it has a text or not, of either pool."""
    fed = Fed()
    fed.feed.start(int(AT), "bf16", 2, set())
    unseen = asked_at(0.0, "unseen", "bf16")
    fed.feed.take_unchecked([unseen])
    fed.feed.take_checked(unseen, None, AT + 1)
    block = fed.series("bf16").timeline.pending[100]
    assert (sum(block.announced.values()), block.unscored, block.open_requests()) == (2, 2, {})


def test_a_lost_announcement_closes_no_block_before_its_conversations_vote() -> None:
    """Control was away for long: a resolved request that nobody announced is no conversation's vote."""
    fed = Fed()
    fed.run(200, [event for at in range(5) for event in fed.answer(at, "talk", 40 + at)[1:]])
    assert fed.counted() == (1, 1.0, 0)


def test_an_older_turn_does_not_draw_its_conversations_vote_into_a_closed_block() -> None:
    """Of two requests at once the later one answers first; the block of the other has nobody else to wait for."""
    fed = Fed()
    first, second = fed.answer(8, "talk", 65), fed.answer(12, "talk", 30, good=True)
    fed.run(300, [*first, *second])
    assert fed.counted() == (1, 0.5, 0)
    assert fed.series().timeline.next_block > 101


def said(at: float, told: float, fed: Fed, conversation: str = "talk") -> Event:
    """A bad word about an answer."""
    subject = Subject(f"{conversation}/{at}", AT + at, "t", "b", "int4", conversation)
    return told, lambda now_s: fed.feed.take_consequence(Consequence(Kind.FEEDBACK, subject), 1.0, now_s)


def test_a_word_that_comes_too_late_takes_no_other_along() -> None:
    """Alone it is late; of a conversation that is open it is one more word."""
    words = Guard("words", "feedback_rate", limit=0.1, margin=0.1, feed="session", block_s=10.0, deadline_s=100.0)
    fed = Fed(words)
    fed.run(600, [said(0, 300, fed), said(290, 301, fed), said(100, 302, fed), said(500, 510, fed, "other")])
    assert fed.counted() == (1, 1.0, 1)
    fed.run(900, [], AT + 600)
    assert fed.counted() == (2, 2.0, 1)


def test_a_failure_of_a_closed_block_opens_no_conversation() -> None:
    """A tool that ran for long failed, and only then its conversation goes on: the new answers count."""
    fed = Fed(Guard("tools", "tool_failure_rate", limit=0.01, feed="session", block_s=10.0))
    subject = Subject("talk/1", AT + 1, "t", "b", "int4", "talk")
    other = Subject("talk/180", AT + 180, "t", "b", "int4", "talk")

    def tell(which: Subject) -> Callable[[float], None]:
        return lambda now_s: fed.feed.take_consequence(Consequence(Kind.TOOL_ERROR, which), 1.0, now_s)

    fed.run(400, [(170, tell(subject)), (190, tell(other))])
    assert fed.counted() == (1, 1.0, 1)
