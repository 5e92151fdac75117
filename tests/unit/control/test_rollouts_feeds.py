"""From outcomes to series: booked by arrival, resolved exactly, attempts of several pools apart."""

from itertools import combinations

import msgspec
import pytest
from pydantic import ValidationError

from gateway.control.guards import Shape, Wanted, implicit_series, series_of
from gateway.control.rollouts_feeds import BucketFeed
from gateway.core.consequence import Consequence, Kind, Subject
from gateway.core.evidence import BASELINE, CANDIDATE, Budget, Judge, SeriesKey
from gateway.core.evidence.blocks import ONLY_LANE
from gateway.core.evidence.pairs import PairLoss
from gateway.core.quality import Inspection
from gateway.core.quality.finding import Check, FailureClass, failed, failure_classes, passed
from gateway.model.outcome import Attempt, Outcome
from gateway.model.proving import Guard
from gateway.policy.proving import _guard as compiled_guard
from gateway.policy.schema.proving import LATENCIES, METRICS, PAIRS
from gateway.policy.schema.proving import Guard as WrittenGuard
from tests.unit.control.conftest import outcome
from tests.unit.control.rollout_rig import inspection, rollout_policy
from tests.unit.dataplane.outcome_values import with_fields
from tests.unit.dataplane.pair_values import make_pair

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

    def arms(self, name: str, pool: str = "int4", after: float = AT) -> dict[tuple[float, float], int]:
        """Arms and values with their counts, over all open blocks that end after a second."""
        found: dict[tuple[float, float], int] = {}
        timeline = self.judge.series(SeriesKey(name, "b", pool)).timeline
        for number, block in timeline.pending.items():
            for cell, count in block.cells.items() if timeline.end_of(number) > after else ():
                found[cell] = found.get(cell, 0) + count
        return found

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


@pytest.mark.parametrize("metric", ["total", "tpot"])
def test_an_answer_that_ends_after_the_fast_deadline_is_slow_in_the_late_series(metric: str) -> None:
    """Slow pools answer late: what is dropped as overdue must not be just what the guard asks about."""
    limit = 120.0 if metric == "total" else 0.05
    fed = Fed((Guard("slow", metric, limit=limit, quantile=0.95, feed="product", block_s=10.0),))
    fed.feed.start(int(AT), "int4", 10, set())
    quick = [request(first_to_last_s=9.0, completion_tokens=1_001) for _ in range(7)]
    fed.feed.take_outcomes(quick)
    fed.judge.advance(AT + 170)
    long = (Attempt("int4", "int4/0", 200, "", 0.0, 180.0),)
    fed.feed.take_outcomes([request(attempts=long, first_to_last_s=179.0, completion_tokens=1_001) for _ in range(3)])
    fast, late = (fed.judge.series(SeriesKey(name, "b", "int4")) for name in ("slow", "slow.late"))
    assert (fast.timeline.late, fast.bad) == (3, 0.0)
    assert fed.counts("slow.late") == {0.0: 7, 1.0: 3}
    fed.judge.advance(AT + 190)
    assert (late.timeline.late, late.evidence.number, late.bad) == (0, 10, 3.0)


def test_what_was_found_in_a_cancelled_answer_is_no_evidence(fed: Fed) -> None:
    """It says nothing of the pool that nobody waited for it; the request is resolved all the same."""
    no_byte = failed(Check.ERROR_OBJECT, "no byte")
    nothing = Inspection("chat", True, 0, 0, (no_byte,), (FailureClass.UPSTREAM_ERROR,), 0.0)
    for number, found in enumerate((nothing, inspection(json=False))):
        fed.feed.take_checked(request(result="client_cancelled", request_id=f"r{number}"), found, AT + 1)
    fed.feed.advance(AT + 100)
    assert fed.counts("hard_answers") == fed.counts("json") == {-1.0: 2}
    assert fed.feed.culprits == {}


def test_pools_outside_the_rollout_are_not_counted(fed: Fed) -> None:
    """A third pool in the route is nobody's evidence."""
    fed.feed.take_outcomes([request("fp8")])
    fed.feed.start(int(AT), "fp8", 1, set())
    assert fed.feed.seen == {}
    assert fed.counts("errors") == {}


def test_a_conversation_votes_once_with_its_share_of_bad_turns(fed: Fed) -> None:
    """Its requests are announced, then it is, at its first turn; booked there when it is over."""
    fed.feed.start(int(AT), "int4", 2, set())
    for turn, good in enumerate((True, False)):
        fed.feed.take_checked(request(conversation="c1"), inspection(json=good), AT + turn)
    assert fed.open_requests("json") == 1
    assert fed.counts("json") == {-1.0: 2}
    fed.feed.advance(AT + 100)
    assert fed.counts("json") == {0.5: 1, -1.0: 2}
    assert fed.open_requests("json") == 0


def test_only_a_conversations_first_failure_counts_in_a_share(fed: Fed) -> None:
    """And its later requests not at all."""
    bad = {"result": "upstream_error", "attempts": (Attempt("int4", "int4/0", 502, "status_5xx", 0.0, 0.1),)}
    for _ in range(3):
        fed.feed.take_outcomes([request(conversation="c1", **bad)])
    fed.feed.take_outcomes([request("bf16", conversation="c2")])
    assert fed.counts("errors.ratio") == {1.0: 1, 0.0: 1}


def test_slow_requests_are_to_blame_for_a_share_of_slow_ones_too() -> None:
    """Whoever is paged sees them, and only the candidate's."""
    fed = Fed((Guard("ttft", "ttft", quantile=0.9, ratio=1.5, feed="vote", block_s=30.0),))
    fed.feed.take_outcomes([paced(request("bf16", request_id=f"s{number}"), "bf16", 1.0) for number in range(200)])
    for pool, seconds in (("int4", 9.0), ("int4", 0.1), ("bf16", 9.0)):
        turn = with_fields(request(pool, request_id=f"{pool}-{seconds}"), at=AT + 40)
        fed.feed.take_outcomes([paced(turn, pool, seconds)])
    blamed = {name: list(ids) for name, ids in fed.feed.culprits.items()}
    assert blamed == {"ttft.ratio": ["int4-9.0"], "ttft.ratio.late": ["int4-9.0"]}


def test_margins_become_differences_once_their_block_is_complete(fed: Fed) -> None:
    """Both arms' outcomes of the block."""
    fed.feed.take_checked(request("int4", request_id="a"), inspection(json=False), AT)
    fed.feed.take_checked(request("bf16", request_id="b"), inspection(), AT)
    fed.feed.advance(AT + 60)
    assert fed.counts("same.margin", second=AT + 30) == {1.0: 1}


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


def test_feedback_is_compared_with_the_baselines_by_conversation() -> None:
    """One unhappy person who says so of every answer is one vote, and one failure; the baseline's words count too."""
    fed = Fed((Guard("words", "feedback_rate", limit=0.1, margin=0.1, ratio=1.5, feed="session", block_s=10.0),))
    for pool, words in (("int4", (1.0, 1.0, 0.0, 1.0)), ("bf16", (0.0, 0.0, 0.0, 1.0))):
        for number, bad in enumerate(words):
            subject = Subject(f"{pool}{number}", AT + number, "t", "b", pool, f"talk-{pool}")
            fed.feed.take_consequence(Consequence(Kind.FEEDBACK, subject), bad, AT + 300 * number)
    fed.feed.advance(AT + 1_799)
    assert fed.counts("words") == fed.counts("words.margin", second=AT + 10 + 1_860) == {}
    fed.feed.advance(AT + 1_801)
    assert (fed.counts("words"), fed.counts("words", "bf16")) == ({0.75: 1}, {0.25: 1})
    fed.feed.advance(AT + 1_900)
    assert fed.counts("words.margin", second=AT + 10 + 1_860) == {0.5: 1}
    assert fed.arms("words.ratio") == {(CANDIDATE, 1.0): 1, (BASELINE, 0.0): 3, (BASELINE, 1.0): 1}


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
    assert fed.counts("tools") == {0.2: 1, -1.0: 4}
    assert fed.counts("tools", "bf16") == {0.0: 1, -1.0: 4}
    fed.feed.advance(AT + 700)
    assert fed.counts("tools.margin", second=AT + 10 + 660) == {0.2: 1}
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
    assert fed.counts("same.margin", second=AT + 30) == {}


BOUNDS = ("limit", "margin_to_baseline", "ratio_to_baseline", "or_ratio_to_baseline")
CHECKED = {
    "format_error_rate": Check.JSON,
    "tool_failure_rate": Check.TOOL_SCHEMA,
    "refusal_rate": Check.REFUSAL,
    "degenerate_rate": Check.GARBAGE,
    "check": Check.CITATIONS,
}


def written(metric: str, bounds: tuple[str, ...], feed: str | None) -> Guard | None:
    """The guard that a policy with these bounds gets; None = it is refused, with what to do."""
    latency = metric in LATENCIES
    values = {"limit": 2.0 if latency else 0.01, "margin_to_baseline": 0.01, "ratio_to_baseline": 1.5}
    fields = {name: values.get(name, 1.2) for name in bounds} | ({"quantile": 0.9} if latency else {})
    fields |= {"feed": feed} if feed else {}
    fields |= {"check": CHECKED[metric].value} if metric == "check" else {}
    try:
        return compiled_guard("g", WrittenGuard.model_validate({"metric": metric, **fields}))
    except ValidationError as refusal:
        assert len(refusal.errors()) == 1
        return None


def play(fed: Fed, metric: str, at: float) -> None:
    """A good and then a bad turn of one conversation at each pool, told in whatever way that metric is told."""
    for pool in ("int4", "bf16"):
        for bad in (False, True):
            turn = with_fields(request(pool, request_id=f"{pool}{bad}", conversation=f"talk-{pool}"), at=at)
            if metric in CHECKED:
                finding = (failed if bad else passed)(CHECKED[metric], "so it is")
                found = Inspection("chat", True, 1, 10, (finding,), failure_classes([finding]), 1.0)
                fed.feed.take_checked(turn, found, at)
            elif metric == "feedback_rate":
                subject = Subject(turn.request_id, at, "t", "b", pool, turn.conversation)
                fed.feed.take_consequence(Consequence(Kind.FEEDBACK, subject), float(bad), at)
            elif metric == "error_rate":
                attempt = Attempt(pool, f"{pool}/0", 200, "connect" if bad else "", 0.0, 0.3)
                fed.feed.take_outcomes([with_fields(turn, attempts=(attempt,))])
            elif metric in LATENCIES:
                fed.feed.take_outcomes([paced(turn, pool, 9.0 if bad else 0.1)])


def paced(turn: Outcome, pool: str, seconds: float) -> Outcome:
    """A request of which every time is that long."""
    attempt = Attempt(pool, f"{pool}/0", 200, "", 0.0, seconds)
    return with_fields(
        turn,
        attempts=(attempt,),
        ttft_s=seconds,
        longest_gap_s=seconds,
        first_to_last_s=9 * seconds,
        completion_tokens=10,
    )


def shapes_of(guard: Guard, metric: str, bounds: tuple[str, ...]) -> set[Shape]:
    """What bounds mean, whatever the code makes of them."""
    meant = set()
    if "limit" in bounds:
        meant.add(Shape.SESSION if guard.feed == "session" else Shape.RATE)
    if "margin_to_baseline" in bounds:
        meant.add(Shape.PAIR if metric in PAIRS else Shape.MARGIN)
    if "ratio_to_baseline" in bounds or ("or_ratio_to_baseline" in bounds and "limit" not in bounds):
        meant.add(Shape.SHARE)
    return meant


def booked(fed: Fed, one: Wanted) -> None:
    """Hold what a series got against its shape."""
    mine, twin = fed.arms(one.name, after=AT + 60), fed.arms(one.name, "bf16", AT + 60) if one.twin else None
    match one.shape:
        case Shape.RATE:
            assert mine == twin == {(ONLY_LANE, 0.0): 1, (ONLY_LANE, 1.0): 1}
        case Shape.SESSION:
            assert mine == twin == {(ONLY_LANE, 0.5): 1}
        case Shape.SHARE:
            assert mine == {(lane, value): 1 for lane in (CANDIDATE, BASELINE) for value in (0.0, 1.0)}
        case Shape.MARGIN:
            assert sum(value * count for (_, value), count in mine.items()) == 0.0, "both arms are as bad"
            assert sum(mine.values()) == (1 if one.guard.feed == "session" else 2)
        case Shape.PAIR:
            assert mine == {(ONLY_LANE, 0.0): 1}


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("feed", [None, "product", "vote", "session"])
def test_every_bound_of_every_metric_is_booked_by_its_shape_or_refused(metric: str, feed: str | None) -> None:
    """A comparison that is counted as a plain rate would roll a good candidate back for what its baseline does too; a
    bound without a series would never be held against anything."""
    taken = 0
    for bounds in (chosen for size in (1, 2, 3, 4) for chosen in combinations(BOUNDS, size)):
        guard = written(metric, bounds, feed)
        if guard is None:
            continue
        taken += 1
        fed = Fed((guard,))
        live = [one for one in series_of(guard) if one.stages != "shadow" and not one.name.endswith(".missing")]
        assert {one.shape for one in live} == shapes_of(guard, metric, bounds), (metric, bounds, feed)
        if metric in PAIRS:
            fed.feed.take_pair(make_pair(at=AT + 60), PairLoss(0.0, 0.0))
            fed.feed.take_gap(make_pair(at=AT + 60), 0.0)
        elif metric in LATENCIES:
            quick = [paced(request("bf16", request_id=f"q{number}"), "bf16", 1.0) for number in range(100)]
            fed.feed.take_outcomes(quick)
            for one in live:  # what the baseline has shown before is for later blocks
                for pool in ("int4", "bf16") if one.twin else ("int4",):
                    fed.judge.series(SeriesKey(one.name, "b", pool)).timeline.skip_before(2)
        play(fed, metric, AT + 60)
        fed.feed.advance(AT + 5_000)
        for one in live:
            booked(fed, one)
    assert taken or (metric, feed) in {
        *(("error_rate", "session"), ("agreement", "vote"), ("agreement", "session")),
        *(("likelihood_gap", "vote"), ("likelihood_gap", "session")),
        *((latency, "session") for latency in LATENCIES),
    }
