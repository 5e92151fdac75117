"""Aftermath, deployments, samples and retention, on both databases."""

import pytest
from sqlalchemy import Engine

from gateway.core.consequence import Subject
from gateway.store import aftermath, deployments, samples
from gateway.store.engine import StoreError
from gateway.store.recording import REFRESH_S
from gateway.store.records import Filter, page
from gateway.store.retention import count, expire
from gateway.store.samples import Sample, SampleRow, Sealer
from gateway.store.tables import request_facts, request_kinds
from gateway.store.tables import samples as samples_table
from tests.unit.dataplane.outcome_values import make_outcome
from tests.unit.store.outcome_rows import Record, put

KEY = "correct horse battery staple"


def test_consequences_are_kept_in_order(engine: Engine) -> None:
    """What became known of a request is found by its id, in the order it became known."""
    first = aftermath.Consequence(1.0, "r", "tool_error", "t", "b", "p", by_request_id="r2")
    second = aftermath.Consequence(2.0, "r", "feedback", "t", "b", "p", label="bad", score=0.0)
    aftermath.inserter(engine).add([first, second])
    assert [(row["kind"], row["score"]) for row in aftermath.of_request(engine, "r")] == [
        ("tool_error", None),
        ("feedback", 0.0),
    ]


def test_answers_are_found_with_what_was_said_of_them(engine: Engine) -> None:
    """Only those that a pool gave; what became known otherwise is no word of anybody."""
    kept = {"at": 5.0, "tenant": "t", "bucket": "b", "pool": "p", "conversation": "c", "rollout": "o"}
    for name, fields in {
        "spoken-of": kept,
        "silent": kept,
        "failed": {**kept, "result": "upstream_error"},
        "refused": {**kept, "pool": ""},
    }.items():
        put(engine, Record(make_outcome(request_id=name, **fields)))
    words = [("feedback", "rude", None), ("tool_error", "", None), ("feedback", "", 0.0)]
    rows = [
        aftermath.Consequence(6.0 + at, "spoken-of", kind, "t", "b", "p", label, score)
        for at, (kind, label, score) in enumerate(words)
    ]
    aftermath.inserter(engine).add(rows)
    asked = ["spoken-of", "silent", "failed", "refused", "unknown"]
    found = aftermath.answered(engine, asked)
    assert sorted(found, key=lambda answer: answer.subject.request_id) == [
        aftermath.Answered(Subject("silent", 5.0, "t", "b", "p", "c", "o")),
        aftermath.Answered(Subject("spoken-of", 5.0, "t", "b", "p", "c", "o"), (("rude", None), ("", 0.0))),
    ]
    assert aftermath.answered(engine, []) == []


def test_a_deployment_is_kept_once_whatever_its_key_order(engine: Engine) -> None:
    """The hash is of the canonical record."""
    one = deployments.put(engine, "fp8", {"gpu": "H100", "cuda": "13.0"}, 1.0)
    two = deployments.put(engine, "fp8", {"cuda": "13.0", "gpu": "H100"}, 2.0)
    assert one == two
    assert deployments.get(engine, one) == {"gpu": "H100", "cuda": "13.0"}
    assert deployments.get(engine, "0" * 64) is None


def test_samples_are_sealed_and_open_only_with_their_key_and_id(engine: Engine) -> None:
    """No text is readable in the database; another key or another row's seal is refused."""
    sealer = Sealer(KEY)
    sample = Sample("chat", b"the question", b"the answer")
    sealed = sealer.seal("r-1", sample)
    assert b"question" not in sealed
    samples.inserter(engine).add([SampleRow("r-1", 1.0, 100.0, "t", "b", "p", "share", sealed)])
    row = samples.of_request(engine, "r-1")
    assert row is not None
    assert sealer.open("r-1", row.sealed) == sample
    with pytest.raises(StoreError, match="another key"):
        Sealer(KEY + "x").open("r-1", row.sealed)
    with pytest.raises(StoreError, match="altered"):
        sealer.open("r-2", row.sealed)
    assert [found.request_id for found in samples.find(engine, bucket="b")] == ["r-1"]


def test_samples_of_certain_requests(engine: Engine) -> None:
    """Newest first, one a request, however many are asked for."""
    rows = [SampleRow(name, 1.0, 100.0, "t", "b", "p", why, b"x") for name, why in (("a", "incident"), ("b", "share"))]
    samples.inserter(engine).add([*rows, rows[0]._replace(reason="pair")])
    wanted = ["b", "gone", "a", *(f"q{number}" for number in range(17_000))]
    assert [found.request_id for found in samples.of_requests(engine, wanted)] == ["a", "b"]
    assert samples.of_requests(engine, []) == []


def test_a_short_key_is_refused_with_the_mend() -> None:
    """A key that could be guessed is no key."""
    with pytest.raises(StoreError, match="openssl rand"):
        Sealer("short")


def test_retention_deletes_the_old_and_only_the_old(engine: Engine) -> None:
    """Requests and aftermath by age, samples by their own time; also when there are many."""
    put(engine, *(Record(make_outcome(request_id=str(index), at=float(index))) for index in range(4500)))
    aftermath.inserter(engine).add([aftermath.Consequence(1.0, "r", "feedback", "", "", "")])
    samples.inserter(engine).add(
        [SampleRow("a", 1.0, 50.0, "", "", "", "", b""), SampleRow("b", 1.0, 9999.0, "", "", "", "", b"")]
    )
    assert expire(engine, now=4600.0, keep_s=200.0) == 4400 + 1 + 1
    assert len(page(engine, Filter(), most=1000)) == 100
    assert count(engine, samples_table) == 1


def test_a_kind_goes_after_the_last_of_its_requests(engine: Engine) -> None:
    """Some days after, and never before; a kind that is in use stays."""
    put(engine, Record(make_outcome(request_id="old", at=0.0)), Record(make_outcome(request_id="older", at=-1.0)))
    put(engine, Record(make_outcome(request_id="new", at=5 * REFRESH_S, pool="other")))
    expire(engine, now=REFRESH_S, keep_s=0.5 * REFRESH_S)
    assert (count(engine, request_facts), count(engine, request_kinds)) == (1, 2)
    expire(engine, now=5 * REFRESH_S, keep_s=0.5 * REFRESH_S)
    assert count(engine, request_kinds) == 1
    assert [row["request_id"] for row in page(engine, Filter())] == ["new"]
