"""Rows: every number once, and CSV that reads back."""

import csv
import io

from gateway.core.report import METRICS, Verdict
from gateway.core.report.flat import FlatRow, flatten, to_csv
from tests.unit.core.report.report_rows import EVIL, evil_report, report


def test_rows_hold_every_number_once():
    """One row for each bucket, pool and metric, and the count of requests."""
    made = report()
    rows = flatten(made)
    assert len(rows) == 2 * (1 + len(METRICS))
    assert len({(found.bucket, found.pool, found.metric) for found in rows}) == len(rows)
    worse = next(found for found in rows if found.pool == "int4" and found.metric == "format_error")
    assert (worse.verdict, worse.hits, worse.number, worse.baseline_pool) == (Verdict.WORSE.value, 80, 400, "bf16")
    assert all(not found.verdict for found in rows if found.is_baseline)


def test_csv_reads_back():
    """With names that hold commas, quotes and line ends."""
    rows = list(csv.DictReader(io.StringIO(to_csv(evil_report()))))
    assert list(rows[0]) == list(FlatRow._fields)
    assert {found["bucket"] for found in rows} == {EVIL}
