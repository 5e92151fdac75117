"""What one outcome is worth to a guard."""

import pytest

from gateway.control import worth
from gateway.core.quality import Inspection
from gateway.core.quality.finding import Check, FailureClass, failed, passed, skipped
from gateway.model.outcome import Attempt
from gateway.model.proving import Guard
from tests.unit.control.conftest import outcome
from tests.unit.control.rollout_rig import inspection


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
    assert worth.attempt_value(outcome(result=result), attempt) == value


def test_a_leg_that_never_ran_says_nothing() -> None:
    """Shed by the gateway is not failed by the pool."""
    assert worth.leg_value("") == 0.0
    assert worth.leg_value("status_5xx") == worth.leg_value("timeout") == 1.0
    assert worth.leg_value("shed") is None


def test_latencies_count_from_the_attempts_own_start() -> None:
    """What an earlier attempt elsewhere took is not this pool's."""
    attempt = Attempt("int4", "int4/0", 200, "", 2.0, 1.5)
    request = outcome(ttft_s=2.3, first_to_last_s=1.0, completion_tokens=11, longest_gap_s=0.2)
    assert worth.latency_of("ttft", request, attempt) == pytest.approx(0.3)
    assert worth.latency_of("tpot", request, attempt) == pytest.approx(0.1)
    assert worth.latency_of("total", request, attempt) == 1.5
    assert worth.latency_of("token_gap", request, attempt) == 0.2
    assert worth.latency_of("ttft", outcome(ttft_s=-1.0), attempt) is None
    assert worth.latency_of("tpot", outcome(completion_tokens=1), attempt) is None
    failed_one = Attempt("int4", "int4/0", 504, "first_byte_timeout", 0.0, 60.0)
    assert worth.latency_of("ttft", request, failed_one) is None
    assert [worth.late(metric, failed_one.failure) for metric in ("ttft", "total", "tpot", "token_gap")] == [
        True,
        True,
        False,
        False,
    ]
    assert worth.late("ttft", "timeout")
    assert not worth.late("ttft", "connect")


def test_checks_have_a_value_only_where_they_applied() -> None:
    """Not looked at, not applicable and skipped are no values."""
    guard = Guard("json", "format_error_rate", limit=0.01)
    assert worth.check_value(guard, None) is None
    assert worth.check_value(guard, inspection()) == 0.0
    assert worth.check_value(guard, inspection(json=False)) == 1.0
    nothing = Inspection("chat", True, 1, 5, (skipped(Check.JSON, "cut"),), (), 1.0)
    assert worth.check_value(guard, nothing) is None
    named = Guard("numbers", "check", limit=0.01, check="numbers")
    assert worth.check_value(named, inspection()) is None
    wrong = Inspection("chat", True, 1, 5, (failed(Check.NUMBERS, "x"),), (FailureClass.UNGROUNDED,), 0.5)
    assert worth.check_value(named, wrong) == 1.0
    assert worth.check_value(Guard("x", "check", limit=0.01, check="no-such"), wrong) is None


def test_an_answer_of_no_use_is_hard_and_a_small_fault_is_not() -> None:
    """Broken format is; an ungrounded number is another guard's business."""
    assert worth.hard_answer_value(None) is None
    assert worth.hard_answer_value(inspection(json=False)) == 1.0
    assert worth.hard_answer_value(inspection()) == 0.0
    mild = Inspection("chat", True, 1, 5, (passed(Check.JSON, "x"),), (FailureClass.UNGROUNDED,), 0.5)
    assert worth.hard_answer_value(mild) == 0.0
