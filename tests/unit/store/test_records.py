"""Rows hold everything an outcome says, in both databases; pages and streams miss nothing and repeat nothing."""

import pytest
from sqlalchemy import Engine, text

from gateway.core.quality import inspect
from gateway.model.outcome import Attempt, Kind, Outcome
from gateway.store.records import Filter, matching, page, stream
from gateway.store.tables import requests
from tests.unit.dataplane.outcome_values import make_outcome
from tests.unit.store.outcome_rows import Record, put

REQUEST = b'{"model":"m","messages":[{"role":"user","content":"x"}],"response_format":{"type":"json_object"}}'
BROKEN = b'{"choices":[{"index":0,"message":{"role":"assistant","content":"{\\"a\\": "},"finish_reason":"stop"}]}'


def test_the_view_gives_the_columns_of_a_record(engine: Engine) -> None:
    """The same names in the same order, and the number of the kind after them."""
    with engine.connect() as connection:
        found = list(connection.execute(text("SELECT * FROM requests")).keys())
    assert found == [*(column.name for column in requests.columns), "kind"]


def test_every_field_of_an_outcome_has_a_column_or_a_reason() -> None:
    """A new field of Outcome must be stored, or be listed here as one that must not be."""
    left_out = {*Outcome.__struct_fields__, *Kind.__struct_fields__} - set(requests.c.keys())
    assert left_out == {"kind", "capture"}


def test_a_row_comes_back_as_it_went_in(engine: Engine) -> None:
    """Values survive with their types; attempts and constraints as JSON; findings without text."""
    attempt = Attempt("fp8", "fp8/0", 500, "status_5xx", 0.001, 0.25)
    outcome = make_outcome(
        request_id="r-1", bucket="m/short", pool="bf16", attempts=(attempt,), constraints=("a", "b"), stream=True,
        prompt_tokens=2**40, ttft_s=0.125, temperature=0.7, seed=True,
    )  # fmt: skip
    inspection = inspect(REQUEST, BROKEN)
    put(engine, Record(outcome, inspection, "d" * 64))
    (row,) = page(engine, Filter())
    assert (row["request_id"], row["bucket"], row["pool"]) == ("r-1", "m/short", "bf16")
    assert (row["stream"], row["seed"], row["prompt_tokens"]) == (True, True, 2**40)
    assert (row["ttft_s"], row["temperature"]) == (0.125, 0.7)
    assert row["attempts"] == '[["fp8","fp8/0",500,"status_5xx",0.001,0.25]]'
    assert row["constraints"] == '["a","b"]'
    assert ",format_error," in row["failures"]
    assert '["json","fail"]' in row["findings"]
    assert row["deployment"] == "d" * 64
    assert row["score"] == inspection.score < 1.0


def test_pages_cover_everything_once(engine: Engine) -> None:
    """Walking pages by the last id sees every row once, newest first; a stream sees them in order."""
    put(engine, *(Record(make_outcome(request_id=str(index))) for index in range(250)))
    seen: list[str] = []
    before = None
    while rows := page(engine, Filter(), before, most=60):
        seen += [row["request_id"] for row in rows]
        before = rows[-1]["id"]
    assert seen == [str(index) for index in reversed(range(250))]
    assert [row["request_id"] for row in stream(engine, Filter(), ["id", "request_id"])] == seen[::-1]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (Filter(pool="a"), {"1", "3"}),
        (Filter(bucket="x", pool="b"), {"2"}),
        (Filter(result="upstream_error"), {"3"}),
        (Filter(failed=True), {"3"}),
        (Filter(since=2.0, until=3.0), {"2"}),
        (Filter(request_id="1"), {"1"}),
        (Filter(tenant="none"), set()),
    ],
)
def test_filters(engine: Engine, wanted: Filter, found: set[str]) -> None:
    """Each filter narrows, and they combine."""
    rows = [
        make_outcome(request_id="1", at=1.0, bucket="x", pool="a"),
        make_outcome(request_id="2", at=2.0, bucket="x", pool="b"),
        make_outcome(request_id="3", at=3.0, bucket="y", pool="a", result="upstream_error"),
    ]
    put(engine, *(Record(outcome) for outcome in rows))
    assert {row["request_id"] for row in page(engine, wanted)} == found


def test_requests_are_not_looked_up_kind_by_kind(engine: Engine) -> None:
    """Nothing is indexed for that: SQLite would sort, or index, every request there is before the first page."""
    if engine.dialect.name != "sqlite":
        pytest.skip("PostgreSQL plans by statistics")
    put(engine, *(Record(make_outcome(request_id=str(index), pool=f"p{index % 7}")) for index in range(200)))
    wanted = matching(Filter(pool="p1", since=0.0)).order_by(requests.c.id.desc()).limit(10)
    statement = wanted.compile(engine, compile_kwargs={"literal_binds": True})
    with engine.connect() as connection:
        plan = [row.detail for row in connection.execute(text(f"EXPLAIN QUERY PLAN {statement}"))]
    assert not any("AUTOMATIC" in step for step in plan), plan
    assert not any("request_facts" in step or " f " in step for step in plan[1:]), plan
