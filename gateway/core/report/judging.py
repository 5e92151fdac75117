"""From counts to an estimate with its interval, and from two estimates to a verdict.

Owns the rule that decides: two intervals that do not overlap. Each holds at ``1 - alpha`` at every look, so a verdict
is wrong at most ``2 alpha`` of the time however often somebody looks; anything else, no data above all, is "not
enough data". The intervals themselves are `evidence.intervals`' and `sketch`'s. Verdicts here inform people; no
rollout is decided by them.
"""

from functools import lru_cache
from math import inf, isfinite

from gateway.core.evidence.intervals import MeanInterval, rate_interval
from gateway.core.report.metrics import Better, Metric, Unit
from gateway.core.report.values import Comparison, Estimate, Verdict
from gateway.core.sketch import Sketch

NO_DATA = "no data"
NO_BASELINE = "the baseline has no data"
OVERLAP = "the intervals overlap"
EMULATED = "emulated hardware is kept out of latency claims"


def share(hits: int, number: int, alpha: float) -> Estimate:
    """A share with its interval."""
    if number <= 0:
        return Estimate(0)
    lower, upper = _rate_ends(number, hits, alpha)
    return Estimate(number, hits / number, lower, upper, hits)


@lru_cache(maxsize=4096)
def _rate_ends(number: int, hits: int, alpha: float) -> tuple[float, float]:
    found = rate_interval(number, hits, alpha)
    return found.lower, found.upper


def quantile(sketch: Sketch, at: float, alpha: float) -> Estimate:
    """A quantile in seconds with its interval."""
    if not sketch.count:
        return Estimate(0)
    span = sketch.quantile_interval(at, alpha)
    return Estimate(sketch.count, sketch.quantile(at), span.lower, _known(span.upper))


def mean(values: MeanInterval) -> Estimate:
    """A mean of values in [0, 1] with its interval, cut to that range."""
    state = values.state
    if not state.number:
        return Estimate(0)
    found = values.interval()
    return Estimate(state.number, state.sum_x / state.number, max(0.0, found.lower), min(1.0, found.upper))


def compare(metric: Metric, baseline: Estimate, other: Estimate, *, emulated: bool = False) -> Comparison | None:
    """The verdict on ``other``; None for a metric that is told and not judged."""
    if metric.better is Better.NEITHER:
        return None
    if not other.number:
        return Comparison(Verdict.NOT_ENOUGH, reason=NO_DATA)
    if not baseline.number:
        return Comparison(Verdict.NOT_ENOUGH, reason=NO_BASELINE)
    relative = metric.unit is Unit.SECONDS
    delta, lower, upper = _ratio(baseline, other) if relative else _difference(baseline, other)
    if relative and emulated:
        return Comparison(Verdict.NOT_ENOUGH, delta, _known(lower), _known(upper), EMULATED)
    if lower > 0.0:
        verdict = Verdict.WORSE if metric.better is Better.LESS else Verdict.BETTER
    elif upper < 0.0:
        verdict = Verdict.BETTER if metric.better is Better.LESS else Verdict.WORSE
    else:
        return Comparison(Verdict.NOT_ENOUGH, delta, _known(lower), _known(upper), OVERLAP)
    return Comparison(verdict, delta, _known(lower), _known(upper))


def _difference(baseline: Estimate, other: Estimate) -> tuple[float | None, float, float]:
    """In points."""
    delta = None if other.value is None or baseline.value is None else other.value - baseline.value
    lower = _low(other) - _high(baseline)
    return delta, lower, _high(other) - _low(baseline)


def _ratio(baseline: Estimate, other: Estimate) -> tuple[float | None, float, float]:
    """As a share of the baseline."""
    delta = None if other.value is None or not baseline.value else other.value / baseline.value - 1.0
    high, low = _high(baseline), _low(baseline)
    lower = _low(other) / high - 1.0 if high > 0.0 else 0.0
    return delta, lower, _high(other) / low - 1.0 if low > 0.0 else inf


def _low(estimate: Estimate) -> float:
    return 0.0 if estimate.lower is None else estimate.lower


def _high(estimate: Estimate) -> float:
    return inf if estimate.upper is None else estimate.upper


def _known(value: float) -> float | None:
    return value if isfinite(value) else None
