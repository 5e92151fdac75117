"""What a guard of the policy becomes, and what one outcome is worth to it."""

import pytest

from gateway.control import guards
from gateway.control.guards import Shape, Source, series_of
from gateway.core.evidence import Feed, Form, Overdue
from gateway.core.quality import Inspection
from gateway.core.quality.finding import Check, FailureClass, failed, passed, skipped
from gateway.model.outcome import Attempt
from gateway.model.proving import Guard
from tests.unit.control.conftest import outcome
from tests.unit.control.rollout_rig import inspection


def by_name(guard: Guard) -> dict[str, guards.Wanted]:
    return {one.name: one for one in series_of(guard)}


def test_an_error_guard_is_a_vote_by_dispatch_with_a_late_and_a_shadow_series() -> None:
    """What fails after the deadline counts in the late one; mirrored legs in the shadow one, in shadow stages alone."""
    found = by_name(Guard("errors", "error_rate", limit=0.01, feed="vote", block_s=10.0, deadline_s=30.0))
    assert set(found) == {"errors", "errors.late", "errors.shadow"}
    live = found["errors"].spec
    assert (live.form, live.feed, live.deadline_s, live.announced) == (Form.RATE, Feed.VOTE, 30.0, True)
    assert live.overdue is Overdue.GOOD
    assert found["errors.late"].spec.deadline_s == 600.0
    assert not found["errors.late"].asked
    assert (found["errors.shadow"].stages, found["errors.shadow"].spec.announced) == ("shadow", False)


def test_each_bound_of_a_guard_is_a_series() -> None:
    """A limit, a margin and a ratio ask three questions."""
    found = by_name(Guard("json", "format_error_rate", limit=0.02, margin=0.005, ratio=1.0, feed="product"))
    assert {name: one.shape for name, one in found.items()} == {
        "json": Shape.RATE,
        "json.margin": Shape.MARGIN,
        "json.ratio": Shape.SHARE,
    }
    assert found["json.ratio"].calm
    assert not by_name(Guard("json", "format_error_rate", ratio=1.5, feed="product"))["json.ratio"].calm
    assert all(not one.twin for name, one in found.items() if name != "json")


def test_checks_and_tools_vote_by_conversation_and_feedback_by_answer() -> None:
    """Session votes wait for the conversation; feedback for a person."""
    json = by_name(Guard("json", "format_error_rate", limit=0.02, feed="session"))["json"]
    assert (json.shape, json.spec.form, json.spec.deadline_s) == (Shape.SESSION, Form.SESSION, 660.0)
    feedback = by_name(Guard("f", "feedback_rate", limit=0.1, feed="session"))["f"]
    assert (feedback.shape, feedback.source, feedback.spec.announced) == (Shape.RATE, Source.FEEDBACK, False)
    assert feedback.spec.deadline_s == guards.FEEDBACK_D_S


def test_latency_guards_are_exceedances_and_ratios_shares() -> None:
    """P99 becomes 1 %; without a limit, the baseline's quantile is the threshold."""
    found = by_name(Guard("ttft", "ttft", limit=2.0, quantile=0.99, or_ratio=1.2, feed="vote", block_s=30.0))
    assert found["ttft"].spec.limit == 0.01
    assert set(found) == {"ttft", "ttft.shadow"}
    relative = by_name(Guard("ttft", "ttft", quantile=0.99, or_ratio=1.2))
    assert relative["ttft.ratio"].spec.form is Form.SHARE
    assert guards.ratio_of(relative["ttft.ratio"].guard) == 1.2


def test_agreement_is_judged_in_pairs_with_a_guard_on_unscored_ones() -> None:
    """In shadow stages and live ones."""
    found = by_name(Guard("quality", "agreement", margin=0.02))
    assert found["quality"].spec.form is Form.PAIR
    assert found["quality.missing"].spec.limit == guards.MISSING_LIMIT
    assert {one.stages for one in found.values()} == {"both"}


def test_the_fast_path_is_a_meter_of_its_own_within_the_budget() -> None:
    """Half of all, block by block of a second; asked of nobody before a promotion."""
    errors, answers = guards.implicit_series()
    assert (errors.name, answers.name) == (guards.HARD_ERRORS, guards.HARD_ANSWERS)
    assert {(one.spec.limit, one.spec.block_s, one.asked) for one in (errors, answers)} == {(0.5, 1.0, False)}


@pytest.mark.parametrize(
    ("failure", "result", "value"),
    [
        ("", "ok", 0.0),
        ("status_5xx", "upstream_error", 1.0),
        ("connect", "ok", 1.0),  # another pool answered: this one failed all the same
        ("broken_stream", "upstream_truncated", 1.0),
        ("status_4xx", "client_error", None),
        ("busy", "shed", None),
        ("status_429", "upstream_error", None),
        ("", "client_cancelled", None),
        ("", "client_error", None),
        ("new_word", "ok", None),
    ],
)
def test_the_clients_own_errors_count_in_no_guard(failure: str, result: str, value: float | None) -> None:
    """An attempt is bad if its pool is to blame."""
    attempt = Attempt("int4", "int4/0", 200, failure, 0.0, 0.1)
    assert guards.attempt_value(outcome(result=result), attempt) == value


def test_a_leg_that_never_ran_says_nothing() -> None:
    """Shed by the gateway is not failed by the pool."""
    assert guards.leg_value("") == 0.0
    assert guards.leg_value("status_5xx") == guards.leg_value("timeout") == 1.0
    assert guards.leg_value("shed") is None


def test_latencies_count_from_the_attempts_own_start() -> None:
    """What an earlier attempt elsewhere took is not this pool's."""
    attempt = Attempt("int4", "int4/0", 200, "", 2.0, 1.5)
    request = outcome(ttft_s=2.3, first_to_last_s=1.0, completion_tokens=11, longest_gap_s=0.2)
    assert guards.latency_of("ttft", request, attempt) == pytest.approx(0.3)
    assert guards.latency_of("tpot", request, attempt) == pytest.approx(0.1)
    assert guards.latency_of("total", request, attempt) == 1.5
    assert guards.latency_of("token_gap", request, attempt) == 0.2
    assert guards.latency_of("ttft", outcome(ttft_s=-1.0), attempt) is None
    assert guards.latency_of("tpot", outcome(completion_tokens=1), attempt) is None
    failed_one = Attempt("int4", "int4/0", 504, "first_byte_timeout", 0.0, 60.0)
    assert guards.latency_of("ttft", request, failed_one) is None
    assert guards.timed_out(failed_one)


def test_checks_have_a_value_only_where_they_applied() -> None:
    """Not looked at, not applicable and skipped are no values."""
    guard = Guard("json", "format_error_rate", limit=0.01)
    assert guards.check_value(guard, None) is None
    assert guards.check_value(guard, inspection()) == 0.0
    assert guards.check_value(guard, inspection(json=False)) == 1.0
    nothing = Inspection("chat", True, 1, 5, (skipped(Check.JSON, "cut"),), (), 1.0)
    assert guards.check_value(guard, nothing) is None
    named = Guard("numbers", "check", limit=0.01, check="numbers")
    assert guards.check_value(named, inspection()) is None
    wrong = Inspection("chat", True, 1, 5, (failed(Check.NUMBERS, "x"),), (FailureClass.UNGROUNDED,), 0.5)
    assert guards.check_value(named, wrong) == 1.0
    assert guards.check_value(Guard("x", "check", limit=0.01, check="no-such"), wrong) is None


def test_an_answer_of_no_use_is_hard_and_a_small_fault_is_not() -> None:
    """Broken format is; an ungrounded number is another guard's business."""
    assert guards.hard_answer_value(None) is None
    assert guards.hard_answer_value(inspection(json=False)) == 1.0
    assert guards.hard_answer_value(inspection()) == 0.0
    mild = Inspection("chat", True, 1, 5, (passed(Check.JSON, "x"),), (FailureClass.UNGROUNDED,), 0.5)
    assert guards.hard_answer_value(mild) == 0.0
