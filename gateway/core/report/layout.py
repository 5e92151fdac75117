"""A report as words: numbers with their units, tables with one column a pool.

Owns how every number, interval and verdict is spelled, once for all renderers. Must not decide or sort; rows without
data in any column are left out, single cells without data say so.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Final, NamedTuple

from gateway.core.report.metrics import METRICS, Metric, Unit
from gateway.core.report.values import Column, Estimate, Figure, Finding, Report, Section, Verdict

NONE: Final = "–"
MARKS: Final = {Verdict.WORSE: "worse", Verdict.BETTER: "better", Verdict.NOT_ENOUGH: "?"}
LEGEND: Final = (
    "Each number has its interval in brackets, then the difference to the baseline. worse, better: the two intervals "
    "do not overlap. ?: not enough data to tell, which is never a pass."
)


class Cell(NamedTuple):
    """One table cell. ``verdict`` None: the baseline, or a number that is told and not judged."""

    value: str
    interval: str = ""
    delta: str = ""
    verdict: Verdict | None = None
    reason: str = ""

    @property
    def text(self) -> str:
        """All of it in one line."""
        parts = [self.value, self.interval, self.delta]
        if self.verdict is not None:
            parts.append(MARKS[self.verdict])
        return " ".join(part for part in parts if part)


class Line(NamedTuple):
    """One row of a section's table."""

    label: str
    group: str
    of: str
    cells: tuple[Cell, ...]


def heading(column: Column) -> str:
    """A pool's name with what it computes in."""
    precision = f" ({column.precision})" if column.precision and column.precision != column.pool else ""
    return f"{column.pool}{precision}{', baseline' if column.baseline else ''}"


def lines(section: Section) -> list[Line]:
    """The table of one bucket."""
    columns = section.columns
    found = [
        Line(
            "requests", "traffic", "that ended at the pool", tuple(Cell(f"{column.requests:,}") for column in columns)
        ),
        Line("checked", "traffic", "answers whose text the checks saw", tuple(Cell(f"{c.checked:,}") for c in columns)),
    ]
    found += [
        Line(metric.label, metric.group, metric.of, tuple(_cell(metric, column) for column in columns))
        for metric in METRICS.values()
        if any(_has_data(column.figures.get(metric.name)) for column in columns)
    ]
    return found


def _has_data(figure: Figure | None) -> bool:
    return figure is not None and figure.estimate.number > 0


def _cell(metric: Metric, column: Column) -> Cell:
    figure = column.figures.get(metric.name)
    if figure is None or not figure.estimate.number:
        reason = figure.comparison.reason if figure and figure.comparison else "no data"
        return Cell(NONE, verdict=None if column.baseline else Verdict.NOT_ENOUGH, reason=reason)
    estimate, comparison = figure.estimate, figure.comparison
    value = number(estimate.value, metric.unit)
    interval = span(estimate, metric.unit) if estimate.lower is not None else ""
    if comparison is None:
        return Cell(value, interval)
    return Cell(value, interval, delta(comparison.delta, metric.unit), comparison.verdict, comparison.reason)


def number(value: float | None, unit: Unit) -> str:
    """A number with its unit."""
    if value is None:
        return NONE
    if unit is Unit.SHARE:
        return f"{_digits(100.0 * value)} %"
    if unit is Unit.SECONDS:
        return duration(value)
    return f"{value:.3f}" if unit is Unit.SCORE else _digits(value)


def span(estimate: Estimate, unit: Unit) -> str:
    """An interval in brackets; an open end is an infinity sign."""
    if unit is Unit.SHARE:
        low, high = ((NONE if end is None else _digits(100.0 * end)) for end in (estimate.lower, estimate.upper))
        return f"[{low}–{high}]"
    low, high = number(estimate.lower, unit), "∞" if estimate.upper is None else number(estimate.upper, unit)
    first, _, word = low.partition(" ")
    return f"[{first}–{high}]" if word and high.endswith(f" {word}") else f"[{low}–{high}]"


def delta(value: float | None, unit: Unit) -> str:
    """A difference to the baseline: points of shares, percent of latencies."""
    if value is None:
        return ""
    if unit is Unit.SECONDS:
        return f"{_signed(100.0 * value)} %"
    return f"{_signed(100.0 * value)} pt" if unit is Unit.SHARE else f"{value:+.3f}".replace("-", "−")


def duration(seconds: float) -> str:
    """Milliseconds below a second."""
    if seconds >= 1.0:
        return f"{_digits(seconds)} s"
    milliseconds = seconds * 1000.0
    return f"{_digits(milliseconds)} ms" if milliseconds >= 0.01 or milliseconds == 0.0 else "<0.01 ms"


def _digits(value: float) -> str:
    """Three significant digits, without an exponent."""
    if value == 0.0:
        return "0"
    if value >= 100.0:
        return f"{value:,.0f}"
    if value >= 10.0:
        return f"{value:.1f}"
    return f"{value:.2f}" if value >= 0.1 else f"{value:.3f}"


def _signed(value: float) -> str:
    text = f"{value:+.1f}" if abs(value) < 100.0 else f"{value:+,.0f}"
    return text.replace("-", "−")


def summary(report: Report) -> list[str]:
    """What the report is about, in sentences."""
    if not report.requests:
        return ["There are no records in this span, so nothing can be said of any pool."]
    baselines = ", ".join(f"{pool} for {model or 'unnamed models'}" for model, pool in report.baselines.items())
    return [
        f"{report.requests:,} requests from {moment(report.first_at)} to {moment(report.last_at)}; "
        f"baseline: {baselines}.",
        f"{report.decided} of {report.comparisons} comparisons are decided; the others have not enough data. An "
        f"interval holds with {_percent(report.interval_level)} at every look, so a verdict is wrong in at most "
        f"{_percent(1.0 - report.comparison_level)} of cases: of {report.comparisons} at most "
        f"{report.comparisons * (1.0 - report.comparison_level):.1f} by chance, as a rule far fewer.",
    ]


def finding_lines(report: Report) -> list[str]:
    """Each verdict in a line, worse first; latencies and rates of one pool and bucket together."""
    grouped: dict[tuple[Verdict, str, str, str], list[Finding]] = {}
    for finding in report.findings:
        key = (finding.verdict, finding.bucket, finding.pool, finding.baseline)
        grouped.setdefault(key, []).append(finding)
    columns = {(section.bucket, column.pool): column for section in report.sections for column in section.columns}
    found = []
    for (verdict, bucket, pool, baseline), group in grouped.items():
        words = ", ".join(_words([finding.metric for finding in group], columns[bucket, pool]))
        found.append(f"{verdict}: {pool} against {baseline} in {named(bucket)}: {words}")
    return found


def _words(names: Iterable[str], column: Column) -> Iterator[str]:
    """Each metric with its difference; of a latency's quantiles only the first says the latency's name."""
    said = ""
    for name in names:
        metric, compared = METRICS[name], column.figures[name].comparison
        label = metric.label
        if metric.unit is Unit.SECONDS:
            whose, _, quantile = label.rpartition(" ")
            label, said = (quantile if whose == said else label), whose
        yield f"{label} {delta(compared.delta if compared else None, metric.unit)}".strip()


def named(bucket: str) -> str:
    """A bucket's label; requests that were refused before they were classified have none."""
    return bucket or "(unclassified)"


def moment(at: float | None) -> str:
    """A point in time, UTC."""
    return NONE if at is None else datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def results(counts: Iterable[tuple[str, int]]) -> str:
    """Counts by how requests ended, in words."""
    return ", ".join(f"{count:,} {name}" for name, count in sorted(counts, key=lambda item: -item[1]))


def _percent(share: float) -> str:
    return f"{100.0 * share:.1f} %".replace(".0 %", " %")
