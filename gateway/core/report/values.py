"""The report as values: what JSON holds, what every renderer reads.

Owns the shape (``version`` changes with it) and nothing else. ``None`` is "not known", never zero: an open end of an
interval, a number without data. Times are seconds since the epoch or durations in seconds, shares lie in [0, 1].
"""

from enum import StrEnum

import msgspec

VERSION = 1


class Verdict(StrEnum):
    """A pool's number against the baseline's."""

    BETTER = "better"
    WORSE = "worse"
    NOT_ENOUGH = "not enough data"


class Estimate(msgspec.Struct, frozen=True, omit_defaults=True):
    """A number with its interval, from ``number`` observations. For a share ``hits`` is how many counted."""

    number: int
    value: float | None = None
    lower: float | None = None
    upper: float | None = None
    hits: int | None = None


class Comparison(msgspec.Struct, frozen=True, omit_defaults=True):
    """Difference to the baseline: in points of a share or score, as a share of the baseline's for latencies.

    The interval follows from both estimates' own. ``reason`` says why there is not enough data.
    """

    verdict: Verdict
    delta: float | None = None
    lower: float | None = None
    upper: float | None = None
    reason: str = ""


class Figure(msgspec.Struct, frozen=True, omit_defaults=True):
    """One number of one pool. ``comparison`` is absent for the baseline and for what is told, not judged."""

    estimate: Estimate
    comparison: Comparison | None = None


class Bar(msgspec.Struct, frozen=True, array_like=True):
    """One bar of a distribution: durations from ``lower`` to below ``upper``, in seconds."""

    lower: float
    upper: float
    number: int


class Column(msgspec.Struct, frozen=True):
    """One pool in one bucket.

    ``against`` is the pool it is compared with, empty for a baseline. ``deployments`` are hashes of what ran;
    ``emulated``: the hardware has no native path for the precision, so latency is told and not judged. ``results``
    counts requests by how they ended, ``attempts`` tries at the pool, also those that another pool then made good.
    ``checked``: answers whose text the checks saw. ``figures`` by metric name, ``checks`` failed shares by single
    check, ``distributions`` by latency.
    """

    pool: str
    precision: str
    against: str
    requests: int
    results: dict[str, int]
    attempts: int
    failed_attempts: dict[str, int]
    checked: int
    prompt_tokens: int
    output_tokens: int
    deployments: tuple[str, ...]
    emulated: bool
    figures: dict[str, Figure]
    checks: dict[str, Estimate]
    distributions: dict[str, list[Bar]]

    @property
    def baseline(self) -> bool:
        """Whether others are compared with it."""
        return not self.against


class Section(msgspec.Struct, frozen=True):
    """One bucket; the baseline's column first. ``unserved``: requests that reached no pool, by how they ended."""

    bucket: str
    columns: list[Column]
    unserved: dict[str, int]


class Finding(msgspec.Struct, frozen=True):
    """One verdict that is not "not enough data", for the head of the report."""

    bucket: str
    pool: str
    baseline: str
    metric: str
    verdict: Verdict


class Report(msgspec.Struct, frozen=True):
    """The experiment matrix over one span of time.

    ``since`` and ``until``: the span asked for, None = open. ``first_at`` and ``last_at``: what was found.
    ``interval_level``: what each interval holds at, at every look; two that do not overlap differ at
    ``comparison_level``. ``comparisons`` is how many verdicts were asked for, ``decided`` how many were given.
    """

    made_at: float
    since: float | None
    until: float | None
    first_at: float | None
    last_at: float | None
    requests: int
    interval_level: float
    comparison_level: float
    baselines: dict[str, str]
    comparisons: int
    decided: int
    findings: list[Finding]
    sections: list[Section]
    notes: list[str]
    version: int = VERSION
