"""A report as rows: one for each bucket, pool and metric, for spreadsheets and data frames.

Owns the columns (documented in docs/evidence-records.md) and CSV. Parquet is written by the command line, from the
same rows.
"""

import csv
import io
from typing import NamedTuple

from gateway.core.report.metrics import METRICS
from gateway.core.report.values import Comparison, Figure, Report, Verdict


class FlatRow(NamedTuple):
    """One number. None where it is not known; ``baseline_pool`` is empty where nothing is compared."""

    bucket: str
    pool: str
    precision: str
    is_baseline: bool
    baseline_pool: str
    metric: str
    group: str
    unit: str
    number: int
    hits: int | None
    value: float | None
    lower: float | None
    upper: float | None
    delta: float | None
    delta_lower: float | None
    delta_upper: float | None
    verdict: str
    reason: str


def flatten(report: Report) -> list[FlatRow]:
    """Every number of the report, the count of requests included."""
    rows = []
    for section in report.sections:
        for column in section.columns:
            head = (section.bucket, column.pool, column.precision, column.baseline, column.against)
            count = column.requests
            rows.append(
                FlatRow(*head, "requests", "traffic", "count", count, None, count, None, None, None, None, None, "", "")
            )
            rows += [_row(head, name, figure) for name, figure in column.figures.items()]
    return rows


def _row(head: tuple[str, str, str, bool, str], name: str, figure: Figure) -> FlatRow:
    metric, estimate = METRICS[name], figure.estimate
    compared = figure.comparison
    against = compared or Comparison(Verdict.NOT_ENOUGH)
    return FlatRow(
        *head,
        name,
        metric.group,
        metric.unit.value,
        estimate.number,
        estimate.hits,
        estimate.value,
        estimate.lower,
        estimate.upper,
        against.delta,
        against.lower,
        against.upper,
        compared.verdict.value if compared else "",
        against.reason,
    )


def to_csv(report: Report) -> str:
    """The rows with a head line."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(FlatRow._fields)
    writer.writerows(flatten(report))
    return out.getvalue()
