"""What one outcome is worth to a guard: 1 = bad, 0 = good, None = it says nothing about the pool.

Pure and without state. The client's own errors, cancelled requests and the gateway's own refusals say nothing. Called
by the feeds.
"""

from gateway.core.quality import Inspection
from gateway.core.quality.finding import CLASS_OF, Check, FailureClass, Verdict
from gateway.core.retry import MEANINGS
from gateway.model.enums import Failure, Result
from gateway.model.outcome import Attempt, Outcome
from gateway.model.proving import Guard

_CLASSES = {
    "format_error_rate": FailureClass.FORMAT_ERROR,
    "tool_failure_rate": FailureClass.TOOL_FAILURE,
    "refusal_rate": FailureClass.REFUSAL,
    "degenerate_rate": FailureClass.DEGENERATE,
}
_HARD = frozenset(
    {
        FailureClass.UPSTREAM_ERROR,
        FailureClass.EMPTY,
        FailureClass.FORMAT_ERROR,
        FailureClass.TOOL_FAILURE,
        FailureClass.DEGENERATE,
    }
)


_LATE = frozenset({Failure.FIRST_BYTE_TIMEOUT.value, Failure.TOTAL_TIMEOUT.value, "timeout"})  # the last: a leg's


def attempt_value(outcome: Outcome, attempt: Attempt) -> float | None:
    """1 = the pool failed, 0 = it answered, None = it says nothing about the pool (client's fault, busy, cancelled)."""
    if attempt.failure:
        return 1.0 if _blames(attempt.failure) else None
    return 0.0 if outcome.kind.result == Result.OK else None


def leg_value(failure: str) -> float | None:
    """The same for a shadow leg: legs that never ran are missing, not failed."""
    if not failure:
        return 0.0
    return 1.0 if _blames(failure) or failure == "timeout" else None


def _blames(failure: str) -> bool:
    try:
        return MEANINGS[Failure(failure)].blame
    except ValueError:
        return False


def latency_of(metric: str, outcome: Outcome, attempt: Attempt) -> float | None:
    """Seconds of one answered attempt; None = not measured. First tokens and totals count from the attempt's start."""
    if attempt.failure or outcome.kind.result != Result.OK:
        return None
    if metric == "ttft":
        return outcome.ttft_s - attempt.started_s if outcome.ttft_s >= 0.0 else None
    if metric == "total":
        return attempt.took_s if attempt.took_s >= 0.0 else None
    if metric == "token_gap":
        return outcome.longest_gap_s if outcome.longest_gap_s >= 0.0 else None
    return per_token_s(outcome.first_to_last_s, outcome.completion_tokens)


def per_token_s(first_to_last_s: float, completion_tokens: int) -> float | None:
    """Seconds per output token after the first; None for answers too short to say."""
    if first_to_last_s < 0.0 or completion_tokens < 2:
        return None
    return first_to_last_s / (completion_tokens - 1)


def late(metric: str, failure: str) -> bool:
    """Whether a failure is slower than any limit: what came too late says nothing of the pace of its tokens."""
    return metric in ("ttft", "total") and failure in _LATE


def check_value(guard: Guard, inspection: Inspection | None) -> float | None:
    """1 = the check failed, 0 = it held, None = nobody looked, or there was nothing to look at."""
    if inspection is None:
        return None
    if guard.metric == "check":
        return _verdict_value([inspection.verdict(Check(guard.check))]) if guard.check in set(Check) else None
    wanted = _CLASSES[guard.metric]
    if wanted in inspection.failures:
        return 1.0
    return _verdict_value([inspection.verdict(check) for check, kind in CLASS_OF.items() if kind is wanted])


def hard_answer_value(inspection: Inspection | None) -> float | None:
    """1 = the answer is of no use to anybody, 0 = it was looked at and is not, None = nobody looked."""
    if inspection is None:
        return None
    return float(any(failure in _HARD for failure in inspection.failures))


def _verdict_value(verdicts: list[Verdict]) -> float | None:
    if Verdict.FAIL in verdicts:
        return 1.0
    return 0.0 if Verdict.PASS in verdicts else None
