"""The experiment matrix: what each pool did to each bucket, against the baseline, with intervals.

The map, in the order of data: `rows` is what is read, `tally` counts it in bounded memory, `metrics` names the numbers,
`judging` makes estimates and verdicts, `build` makes the `values` of a report. Renderers read those alone: `layout`
words and tables, `markdown`, `html` with `svg`, `flat` for CSV and Parquet. Everything is pure: rows come from whoever
has a database, the clock is an argument.
"""

from gateway.core.report.build import UnknownBaselineError, build
from gateway.core.report.metrics import METRICS, Better, Metric, Unit
from gateway.core.report.rows import REQUEST_COLUMNS, ConsequenceRow, RequestRow
from gateway.core.report.tally import Tally
from gateway.core.report.values import (
    Bar,
    Column,
    Comparison,
    Estimate,
    Figure,
    Finding,
    Report,
    Section,
    Verdict,
)

__all__ = [
    "METRICS",
    "REQUEST_COLUMNS",
    "Bar",
    "Better",
    "Column",
    "Comparison",
    "ConsequenceRow",
    "Estimate",
    "Figure",
    "Finding",
    "Metric",
    "Report",
    "RequestRow",
    "Section",
    "Tally",
    "Unit",
    "UnknownBaselineError",
    "Verdict",
    "build",
]
