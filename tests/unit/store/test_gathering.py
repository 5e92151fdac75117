"""Rows for a report, from SQLite and PostgreSQL alike."""

from typing import Any

from sqlalchemy import Engine

from gateway.core.quality import Check, FailureClass, Finding, Inspection, Verdict
from gateway.core.report import REQUEST_COLUMNS, ConsequenceRow, Tally, build
from gateway.model.outcome import Attempt, Outcome
from gateway.store import aftermath, deployments, samples
from gateway.store.aftermath import Consequence
from gateway.store.gathering import checked_by_pool, consequence_rows, gather, records, request_rows, table_rows
from gateway.store.records import Filter
from gateway.store.samples import Sample, SampleRow, Sealer, listing
from gateway.store.tables import requests
from tests.unit.dataplane.outcome_values import make_outcome
from tests.unit.store.outcome_rows import Record, put

GOOD = Inspection("chat", True, 1, 5, (Finding(Check.JSON, Verdict.PASS, ""),), (), 1.0)
BAD = Inspection("chat", True, 1, 5, (Finding(Check.JSON, Verdict.FAIL, ""),), (FailureClass.FORMAT_ERROR,), 0.2)


def answered(name: str, at: float = 100.0, pool: str = "bf16", **fields: Any) -> Outcome:
    tries = (Attempt(pool, f"{pool}/0", 200, "", 0.0, 0.1),)
    return make_outcome(request_id=name, at=at, bucket="x", pool=pool, result="ok", attempts=tries, **fields)


def test_rows_come_in_order_with_the_reports_columns(engine: Engine) -> None:
    """As they were stored; the filter narrows, and every row is there over many chunks."""
    put(engine, *(Record(answered(str(index), at=float(index)), GOOD, "h") for index in range(4100)))
    rows = list(request_rows(engine, Filter(since=10.0, until=4090.0)))
    assert [row.at for row in rows] == [float(index) for index in range(10, 4090)]
    assert rows[0]._fields == REQUEST_COLUMNS
    assert (rows[0].deployment, rows[0].score, rows[0].findings) == ("h", 1.0, '[["json","pass"]]')


def test_each_kind_of_consequence_counts_once_a_request(engine: Engine) -> None:
    """Three failed results of one answer are one bad answer; of two scores the worse one counts."""
    put(engine, Record(answered("a")), Record(answered("b", pool="int4")), Record(answered("old", at=1.0)))
    told = [("a", "tool_error", None)] * 3 + [("a", "feedback", 1.0), ("a", "feedback", 0.0), ("old", "re_ask", None)]
    told += [("b", "feedback", None), ("gone", "re_ask", None)]
    aftermath.inserter(engine).add(
        [tuple(Consequence(200.0, name, kind, "t", "x", "other", "", score)) for name, kind, score in told]
    )
    found = set(consequence_rows(engine, Filter(since=50.0)))
    assert found == {
        ConsequenceRow("tool_error", "x", "bf16", None),
        ConsequenceRow("feedback", "x", "bf16", 0.0),
        ConsequenceRow("feedback", "x", "int4", None),
    }


def test_a_report_of_a_database(engine: Engine) -> None:
    """Requests, consequences and what ran come together."""
    digest = deployments.put(engine, "int4", {"precision": {"emulated": True}}, 1.0)
    put(engine, *(Record(answered(f"a{i}"), GOOD) for i in range(9)))
    put(engine, *(Record(answered(f"b{i}", pool="int4"), BAD, digest) for i in range(9)))
    tally = Tally()
    gather(engine, Filter(), tally)
    (section,) = build(tally, 0.0, baselines=["bf16"]).sections
    assert [column.pool for column in section.columns] == ["bf16", "int4"]
    assert section.columns[1].emulated
    assert section.columns[1].figures["format_error"].estimate.hits == 9
    assert records(engine) == {digest: {"precision": {"emulated": True}}}


def test_exports_have_every_column(engine: Engine) -> None:
    """In the table's order."""
    put(engine, Record(answered("a")))
    (row,) = table_rows(engine, Filter())
    assert len(row) == len(requests.columns)
    assert row[[column.name for column in requests.columns].index("request_id")] == "a"


def test_checked_answers_are_counted_by_pool_and_bucket(engine: Engine) -> None:
    """Since a moment; unchecked ones are no evidence."""
    put(engine, Record(answered("a"), GOOD), Record(answered("b"), None), Record(answered("old", at=1.0), GOOD))
    put(engine, Record(answered("c", pool="int4"), BAD))
    assert checked_by_pool(engine, 50.0) == {"bf16": {"x": 1}, "int4": {"x": 1}}


def test_pages_of_samples_do_not_move(engine: Engine) -> None:
    """Samples that come while somebody pages do not shift what follows."""
    sealer = Sealer("0123456789abcdef")
    sealed = sealer.seal("r", Sample("chat", b"q", b"a"))

    def keep(*names: str) -> None:
        samples.inserter(engine).add(
            [tuple(SampleRow(name, 1.0, 9.0, "t", "x", "p", "share", sealed)) for name in names]
        )

    keep("a", "b", "c")
    first = listing(engine, most=2)
    keep("d")
    second = listing(engine, most=2, before=first[-1][0])
    assert [row.request_id for _, row in first + second] == ["c", "b", "a"]
    assert listing(engine, pool="none") == []


def test_the_reports_columns_exist() -> None:
    """They are the table's."""
    assert set(REQUEST_COLUMNS) <= {column.name for column in requests.columns}
