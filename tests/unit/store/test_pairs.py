"""Stored pairs, on both databases: pages, filters, losses in order, and the texts of a pair."""

from typing import Any

import pytest
from sqlalchemy import Engine

from gateway.store import pairs, samples
from gateway.store.pairs import Filter, LossRow, PairRow
from gateway.store.samples import PAIR, Sample, SampleRow, Sealer

BASE = PairRow(
    request_id="r", at=100.0, rule="rule", tenant="t", bucket="b", task="chat", baseline="bf16", candidate="int4",
    verdict="compared", kind="chat", agreement=0.75, noise=1.0, excess=0.25, loss=0.25, promotion=0.25,
    likelihood_gap=None, parts='{"text": 0.75}', candidate_failure="", baseline_failure="",
    ttft_baseline_s=0.1, ttft_candidate_s=-1.0,
    total_baseline_s=0.5, total_candidate_s=0.4,
)  # fmt: skip


def put(engine: Engine, *rows: dict[str, Any]) -> None:
    pairs.inserter(engine).add([BASE._replace(request_id=f"r{n}", **row) for n, row in enumerate(rows)])


def test_a_pair_comes_back_as_it_was_put(engine: Engine) -> None:
    """Every column, defaults and nulls too."""
    put(engine, {"noise_parts": '{"text": 1.0}', "unscored": "missing_leg", "agreement": None})
    row = pairs.of_request(engine, "r0")
    assert row is not None
    stored = {name: row[name] for name in PairRow._fields}
    assert stored == BASE._replace(
        request_id="r0", noise_parts='{"text": 1.0}', unscored="missing_leg", agreement=None
    )._asdict()  # fmt: skip
    assert pairs.of_request(engine, "r1") is None


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (Filter(), ["r3", "r2", "r1", "r0"]),
        (Filter(bucket="other"), ["r1"]),
        (Filter(candidate="fp8"), ["r2"]),
        (Filter(verdict="compared"), ["r2", "r1", "r0"]),
        (Filter(failed=True), ["r3"]),
        (Filter(since=101.0, until=103.0), ["r2", "r1"]),
        (Filter(rule="x"), []),
        (Filter(tenant="t", baseline="bf16", rule="rule", bucket="b"), ["r3", "r2", "r0"]),
    ],
)
def test_filters(engine: Engine, wanted: Filter, found: list[str]) -> None:
    """Each narrows; the newest come first."""
    put(
        engine,
        {},
        {"bucket": "other", "at": 101.0},
        {"candidate": "fp8", "at": 102.0},
        {"verdict": "other_failed", "at": 103.0},
    )
    assert [row["request_id"] for row in pairs.page(engine, wanted)] == found


def test_pages(engine: Engine) -> None:
    """The last row's id asks for the next page; rows that come meanwhile do not move it."""
    put(engine, *({} for _ in range(5)))
    first = pairs.page(engine, Filter(), None, 2)
    put(engine, {})
    second = pairs.page(engine, Filter(), first[-1]["id"], 2)
    assert [row["request_id"] for row in (*first, *second)] == ["r4", "r3", "r2", "r1"]


def test_losses_come_in_the_order_of_arrival(engine: Engine) -> None:
    """An interval that is valid at any time depends on the order."""
    put(engine, *({"loss": n / 100, "at": 200.0 - n} for n in range(30)))
    rows = list(pairs.losses(engine, Filter(bucket="b")))
    assert [row.loss for row in rows] == [n / 100 for n in range(30)]
    assert rows[0] == LossRow("b", "bf16", "int4", "compared", 0.75, 1.0, 0.0, None)


def test_the_texts_of_a_pair(engine: Engine) -> None:
    """Both answers in one seal, found apart from the request's own sample; a sample of before has only one answer."""
    sealer = Sealer("k" * 20)
    own = Sample("chat", b"q", b"a")
    both = Sample("chat", b"q", b"a", b"c", b"n")
    rows = [SampleRow("r", 1.0, 9.0, "t", "b", "bf16", reason, sealer.seal("r", sample))
            for reason, sample in (("share", own), (PAIR, both))]  # fmt: skip
    samples.inserter(engine).add(rows)
    found = samples.of_pair(engine, "r")
    assert found is not None
    assert sealer.open("r", found.sealed) == both
    assert samples.of_pair(engine, "x") is None
    assert [row.request_id for row in samples.find(engine)] == ["r"], "a replay asks it once"
