"""Rows hold everything an outcome says, in both databases; pages and streams miss nothing and repeat nothing."""

import pytest
from sqlalchemy import Engine

from gateway.core.quality import inspect
from gateway.model.outcome import Attempt, Outcome
from gateway.store.records import Filter, Record, inserter, page, row_of, stream
from gateway.store.tables import requests
from tests.unit.dataplane.outcome_values import make_outcome

REQUEST = b'{"model":"m","messages":[{"role":"user","content":"x"}],"response_format":{"type":"json_object"}}'
BROKEN = b'{"choices":[{"index":0,"message":{"role":"assistant","content":"{\\"a\\": "},"finish_reason":"stop"}]}'


def test_every_field_of_an_outcome_has_a_column_or_a_reason() -> None:
    """A new field of Outcome must be stored, or be listed here as one that must not be."""
    left_out = set(Outcome.__struct_fields__) - set(requests.c.keys())
    assert left_out == {"capture", "pending_calls"}


def test_a_row_comes_back_as_it_went_in(engine: Engine) -> None:
    """Values survive with their types; attempts and constraints as JSON; findings without text."""
    attempt = Attempt("fp8", "fp8/0", 500, "status_5xx", 0.001, 0.25)
    outcome = make_outcome(
        request_id="r-1", bucket="m/short", pool="bf16", attempts=(attempt,), constraints=("a", "b"), stream=True,
        prompt_tokens=2**40, ttft_s=0.125, temperature=0.7, seed=True,
    )  # fmt: skip
    inspection = inspect(REQUEST, BROKEN)
    inserter(engine).add([row_of(Record(outcome, inspection, "d" * 64))])
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
    inserter(engine).add([row_of(Record(make_outcome(request_id=str(index)))) for index in range(250)])
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
    inserter(engine).add([row_of(Record(outcome)) for outcome in rows])
    assert {row["request_id"] for row in page(engine, wanted)} == found


def test_a_batch_is_all_or_nothing(engine: Engine) -> None:
    """A row that the database refuses takes its batch with it, and nothing of it stays behind."""
    good = row_of(Record(make_outcome(request_id="ok")))
    bad = list(row_of(Record(make_outcome(request_id="bad"))))
    bad[0] = None
    with pytest.raises(Exception, match=r"(?i)null"):
        inserter(engine).add([good, tuple(bad)])
    assert page(engine, Filter()) == []


def test_a_row_can_be_made_to_fit(engine: Engine) -> None:
    """Texts longer than their column and NUL, which PostgreSQL refuses: cut and taken out, the rest as it was."""
    row = row_of(Record(make_outcome(request_id="r", model="m" * 500, bucket="b\0c", total_s=1.5)))
    insert = inserter(engine)
    fitted = insert.fitted(row)
    insert.add([fitted])
    (found,) = page(engine, Filter())
    assert (found["model"], found["bucket"], found["total_s"]) == ("m" * 128, "bc", 1.5)
    assert insert.fitted(fitted) == fitted
