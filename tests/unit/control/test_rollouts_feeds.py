"""From outcomes to series: booked by arrival, resolved exactly, attempts of several pools apart."""

import msgspec
import pytest

from gateway.control.guards import implicit_series, series_of
from gateway.control.rollouts_feeds import BucketFeed
from gateway.core.consequence import Consequence, Kind, Subject
from gateway.core.evidence import Budget, Judge, SeriesKey
from gateway.core.quality import Inspection
from gateway.core.quality.finding import Check, passed
from gateway.model.outcome import Attempt
from gateway.model.proving import Guard
from tests.unit.control.conftest import outcome
from tests.unit.control.rollout_rig import inspection, rollout_policy
from tests.unit.dataplane.outcome_values import with_fields

PLAN = rollout_policy().rollouts[0]
AT = 1_000.0
GUARDS = (
    Guard("errors", "error_rate", limit=0.01, ratio=1.5, feed="vote", block_s=10.0, deadline_s=30.0),
    Guard("json", "format_error_rate", limit=0.01, feed="session", block_s=10.0),
    Guard("same", "format_error_rate", margin=0.01, feed="product", block_s=10.0, deadline_s=20.0),
    Guard("ttft", "ttft", limit=2.0, quantile=0.9, or_ratio=1.5, feed="vote", block_s=30.0),
    Guard("feedback", "feedback_rate", limit=0.1, feed="product", block_s=10.0),
)


class Fed:
    """A feed over a judge of its own."""

    def __init__(self, guards: tuple[Guard, ...] = GUARDS) -> None:
        self.judge = Judge(Budget())
        wanted = [one for guard in guards for one in series_of(guard)] + list(implicit_series())
        self.feed = BucketFeed(self.judge, PLAN, "b", wanted, AT)
        for one in wanted:
            for key, spec in self.feed.keys(one):
                self.judge.register(key, spec, AT)

    def counts(self, name: str, pool: str = "int4", second: float = AT) -> dict[float, int]:
        """Values and their counts in the open block of a second; -1 = resolved without a value."""
        timeline = self.judge.series(SeriesKey(name, "b", pool)).timeline
        block = timeline.pending.get(timeline.number_at(second))
        if block is None:
            return {}
        found: dict[float, int] = {}
        for (_, value), count in block.cells.items():
            found[value] = found.get(value, 0) + count
        return found | ({-1.0: block.unscored} if block.unscored else {})

    def open_requests(self, name: str, pool: str = "int4") -> int:
        """Announced requests without an outcome."""
        timeline = self.judge.series(SeriesKey(name, "b", pool)).timeline
        block = timeline.pending.get(timeline.number_at(AT))
        return sum(block.open_requests().values()) if block is not None else 0


@pytest.fixture
def fed() -> Fed:
    """Fresh."""
    return Fed()


def request(pool: str = "int4", **fields: object):  # type: ignore[no-untyped-def]
    attempts = fields.pop("attempts", (Attempt(pool, f"{pool}/0", 200, "", 0.0, 0.3),))
    return outcome(at=AT + 0.7, bucket="b", rollout=PLAN.name, pool=pool, attempts=attempts, ttft_s=0.1, **fields)


def called() -> Inspection:
    """An answer with a good tool call."""
    return Inspection("chat", True, 1, 10, (passed(Check.TOOL_NAMES, "the call is good"),), (), 1.0)


def test_announcements_and_outcomes_meet_in_the_second_of_arrival(fed: Fed) -> None:
    """A block waits for exactly what was dispatched."""
    fed.feed.start(int(AT), "int4", 2, set())
    assert fed.open_requests("errors") == 2
    fed.feed.take_outcomes([request()])
    assert fed.open_requests("errors") == 1
    fed.feed.take_outcomes([request(result="client_cancelled")])
    assert fed.open_requests("errors") == 0
    assert fed.counts("errors") == {0.0: 1, -1.0: 1}
    assert fed.feed.seen == {"int4": 2}


def test_each_attempt_counts_for_its_own_pool(fed: Fed) -> None:
    """The candidate failed and the baseline answered: one bad, one good."""
    attempts = (
        Attempt("int4", "int4/0", 502, "status_5xx", 0.0, 0.1),
        Attempt("bf16", "bf16/0", 200, "", 0.2, 0.3),
    )
    retried = request("bf16", attempts=attempts)
    fed.feed.take_outcomes([retried])
    fed.feed.take_checked(retried, inspection(json=False), AT + 1)
    assert fed.counts("errors") == {1.0: 1}
    assert fed.counts("errors", "bf16") == {0.0: 1}
    # The answer that was looked at is the baseline's; the candidate's attempt is resolved without a value.
    assert fed.counts("hard_answers", "bf16") == {1.0: 1}
    assert fed.counts("hard_answers") == {-1.0: 1}
    assert fed.feed.culprits["errors"][0] == "req-1"
    assert "hard_answers" not in fed.feed.culprits


def test_pools_outside_the_rollout_are_not_counted(fed: Fed) -> None:
    """A third pool in the route is nobody's evidence."""
    fed.feed.take_outcomes([request("fp8")])
    fed.feed.start(int(AT), "fp8", 1, set())
    assert fed.feed.seen == {}
    assert fed.counts("errors") == {}


def test_a_conversation_votes_once_with_its_share_of_bad_turns(fed: Fed) -> None:
    """Announced at its first turn, booked there when it is over."""
    for turn, good in enumerate((True, False)):
        fed.feed.take_checked(request(conversation="c1"), inspection(json=good), AT + turn)
    assert fed.open_requests("json") == 1
    assert fed.counts("json") == {}
    fed.feed.advance(AT + 100)
    assert fed.counts("json") == {0.5: 1}
    assert fed.open_requests("json") == 0


def test_only_a_conversations_first_failure_counts_in_a_share(fed: Fed) -> None:
    """And its later requests not at all."""
    bad = {"result": "upstream_error", "attempts": (Attempt("int4", "int4/0", 502, "status_5xx", 0.0, 0.1),)}
    for _ in range(3):
        fed.feed.take_outcomes([request(conversation="c1", **bad)])
    fed.feed.take_outcomes([request("bf16", conversation="c2")])
    assert fed.counts("errors.ratio") == {1.0: 1, 0.0: 1}


def test_margins_become_differences_once_their_block_is_complete(fed: Fed) -> None:
    """Both arms' outcomes of the block."""
    fed.feed.take_checked(request("int4", request_id="a"), inspection(json=False), AT)
    fed.feed.take_checked(request("bf16", request_id="b"), inspection(), AT)
    fed.feed.advance(AT + 60)
    assert fed.counts("same.margin", second=AT + 60) == {1.0: 1}


def test_a_latency_within_the_baselines_multiple_passes_too(fed: Fed) -> None:
    """The baseline's quantile of earlier blocks, once it is known."""
    for number in range(200):
        slow = msgspec.structs.replace(request("bf16", request_id=f"s{number}"), ttft_s=2.0)
        fed.feed.take_outcomes([slow])
    later = msgspec.structs.replace(request("int4"), at=AT + 40, ttft_s=2.9)
    fed.feed.take_outcomes([later])
    assert fed.counts("ttft", second=AT + 40) == {0.0: 1}
    fed.feed.take_outcomes([msgspec.structs.replace(later, ttft_s=3.2)])
    assert fed.counts("ttft", second=AT + 40) == {0.0: 1, 1.0: 1}
    timed_out = (Attempt("int4", "int4/0", 504, "first_byte_timeout", 0.0, 60.0),)
    fed.feed.take_outcomes([with_fields(later, ttft_s=-1.0, result="upstream_timeout", attempts=timed_out)])
    assert fed.counts("ttft", second=AT + 40) == {0.0: 1, 1.0: 2}


def test_feedback_counts_at_the_answers_second(fed: Fed) -> None:
    """For the pool that answered."""
    subject = Subject("r1", AT + 0.3, "t", "b", "int4")
    fed.feed.take_consequence(Consequence(Kind.FEEDBACK, subject), 1.0, AT + 500)
    fed.feed.take_consequence(Consequence(Kind.FEEDBACK, subject), 0.0, AT + 500)
    assert fed.counts("feedback") == {1.0: 1, 0.0: 1}
    stranger = Subject("r1", AT, "t", "b", "fp8")
    fed.feed.take_consequence(Consequence(Kind.FEEDBACK, stranger), 1.0, AT)
    assert fed.counts("feedback") == {1.0: 1, 0.0: 1}


def test_a_failed_tool_is_one_more_bad_turn_of_its_conversation() -> None:
    """Of four answers and one result that failed, one in five is bad: absolute, and as a difference to the baseline."""
    tools = Guard("tools", "tool_failure_rate", limit=0.01, margin=0.01, feed="session", block_s=10.0)
    fed = Fed((tools,))
    for pool in ("int4", "bf16"):
        for number in range(4):
            answered = request(pool, request_id=f"{pool}{number}", conversation=f"talk-{pool}")
            fed.feed.take_checked(answered, called(), AT + 1)
    subject = Subject("int40", AT + 0.7, "t", "b", "int4", "talk-int4")
    fed.feed.take_consequence(Consequence(Kind.TOOL_ERROR, subject), 1.0, AT + 2)
    fed.feed.advance(AT + 100)
    assert fed.counts("tools") == {0.2: 1}
    assert fed.counts("tools", "bf16") == {0.0: 1}
    fed.feed.advance(AT + 700)
    assert fed.counts("tools.margin", second=AT + 700) == {0.2: 1}
    assert list(fed.feed.culprits) == ["tools", "tools.margin"]


def test_the_length_of_conversations_is_counted(fed: Fed) -> None:
    """Over both pools; a request without one is its own."""
    for number in range(300):
        fed.feed.take_outcomes([request("bf16" if number % 2 else "int4", conversation=f"c{number // 3}")])
    assert fed.feed.turns.mean() == pytest.approx(3.0)


def test_a_stage_start_forgets_what_was_in_the_air(fed: Fed) -> None:
    """Traffic seen, and differences of the stage before."""
    fed.feed.take_outcomes([request()])
    fed.feed.take_checked(request("int4", request_id="a"), inspection(json=False), AT)
    fed.feed.take_checked(request("bf16", request_id="b"), inspection(), AT)
    fed.feed.start_stage(AT + 20, shadowing=False)
    fed.feed.advance(AT + 60)
    assert fed.feed.seen == {}
    assert fed.counts("same.margin", second=AT + 60) == {}
