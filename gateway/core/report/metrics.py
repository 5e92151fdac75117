"""Which numbers a report shows, what each means, and which way is better.

Owns names (they are keys of the JSON and rows of the table), words and units. Must not compute. Read by `tally`,
`build` and the renderers.
"""

from enum import StrEnum
from typing import Final

import msgspec

from gateway.core.quality import FailureClass


class Unit(StrEnum):
    """Of a number; differences of shares are in points, of latencies in percent of the baseline."""

    SHARE = "share"
    SECONDS = "seconds"
    SCORE = "score"
    PER_SECOND = "per_second"


class Better(StrEnum):
    """Which way is good. ``NEITHER``: told, not judged."""

    LESS = "less"
    MORE = "more"
    NEITHER = "neither"


class Metric(msgspec.Struct, frozen=True):
    """One row of the matrix. ``of`` says what a share is counted over."""

    name: str
    label: str
    unit: Unit
    better: Better
    group: str
    of: str = ""


QUANTILES: Final = (("p50", 0.50), ("p95", 0.95), ("p99", 0.99))

LATENCIES: Final = {
    "ttft": ("TTFT", Better.LESS, "streams: arrival to first content"),
    "tpot": ("TPOT", Better.LESS, "streams: time per output token after the first"),
    "gap": ("longest gap", Better.LESS, "streams: longest silence after the first content"),
    "total": ("end to end", Better.LESS, "whole answers: arrival to end"),
    "queue": ("queue wait", Better.NEITHER, "waiting for admission"),
    "overhead": ("gateway", Better.NEITHER, "spent in the gateway before the first attempt"),
}
"""Sketches by name: label, which way is better, and what is measured."""

_FAILURES: Final = {
    FailureClass.FORMAT_ERROR: ("format errors", "answers that were to be JSON or follow a schema"),
    FailureClass.TOOL_FAILURE: ("tool failures", "answers with tools in play"),
    FailureClass.CODE_ERROR: ("code errors", "answers with fenced code"),
    FailureClass.DEGENERATE: ("degenerate", "checked answers with text"),
    FailureClass.UNGROUNDED: ("ungrounded", "answers with citations or table numbers to hold to the context"),
    FailureClass.REFUSAL: ("refusals", "checked answers with text"),
    FailureClass.TRUNCATED: ("cut off", "checked answers"),
    FailureClass.EMPTY: ("empty", "checked answers"),
    FailureClass.PROTOCOL: ("protocol faults", "checked answers"),
    FailureClass.UPSTREAM_ERROR: ("errors in a 200", "checked answers"),
}

_CONSEQUENCES: Final = {
    "tool_error": ("tools failed on it", "checked answers that called tools"),
    "repeated_call": ("calls repeated", "checked answers that called tools"),
    "re_ask": ("asked again", "checked answers"),
    "feedback": ("bad feedback", "answers with feedback that judges"),
}

ERROR_RATE: Final = "error_rate"
QUALITY: Final = "quality"


def _all() -> dict[str, Metric]:
    metrics = [Metric(ERROR_RATE, "errors", Unit.SHARE, Better.LESS, "service", "attempts at the pool")]
    for name, (label, better, of) in LATENCIES.items():
        metrics += [
            Metric(f"{name}_{short}", f"{label} {short.upper()}", Unit.SECONDS, better, "latency", of)
            for short, _ in QUANTILES
        ]
    metrics += [
        Metric("requests_per_second", "requests/s", Unit.PER_SECOND, Better.NEITHER, "load", "over the time of use"),
        Metric("output_tokens_per_second", "output tokens/s", Unit.PER_SECOND, Better.NEITHER, "load", "same"),
        Metric("cached_share", "prefix cache", Unit.SHARE, Better.NEITHER, "load", "prompt tokens, where told"),
        Metric(QUALITY, "quality score", Unit.SCORE, Better.MORE, "quality", "checked answers"),
    ]
    metrics += [
        Metric(kind.value, label, Unit.SHARE, Better.LESS, "quality", of) for kind, (label, of) in _FAILURES.items()
    ]
    metrics += [
        Metric(kind, label, Unit.SHARE, Better.LESS, "consequences", of) for kind, (label, of) in _CONSEQUENCES.items()
    ]
    return {metric.name: metric for metric in metrics}


METRICS: Final = _all()
"""Every metric by name, in the order in which a person reads them."""

CONSEQUENCES: Final = tuple(_CONSEQUENCES)
