"""The Prometheus reader finds exactly the wanted samples, on real pages and on any page the official client writes."""

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Gauge, generate_latest

from gateway.runtimes.exposition import (
    Sample,
    count,
    first_named,
    mean,
    per_replica,
    read_samples,
    share,
    total,
    wanted,
)


def test_only_wanted_names_are_read(dump: Callable[[str], bytes]) -> None:
    """From a full vLLM page come the wanted samples and no other."""
    page = dump("vllm-0.32-cpu.metrics.txt")
    found = read_samples(page, wanted(["vllm:num_requests_waiting", "vllm:kv_cache_usage_perc"]))
    assert {"vllm:num_requests_waiting", "vllm:kv_cache_usage_perc"} == set(found)
    assert [Sample("vllm:num_requests_waiting", {"engine": "0", "model_name": "smollm2"}, 0.0)] == found[
        "vllm:num_requests_waiting"
    ]


def test_a_name_is_matched_as_a_whole() -> None:
    """A metric whose name only begins or ends like a wanted one is another metric."""
    page = b"a:run 1\na:run_total 2\nxa:run 3\na:running 4\n"
    assert {"a:run": [Sample("a:run", {}, 1.0)]} == read_samples(page, wanted(["a:run"]))


def test_label_values_keep_quotes_braces_and_newlines() -> None:
    """Escapes in label values are undone, and a brace in a value ends nothing."""
    page = rb'm{path="C:\\dir",say="\"}{,",two="a\nb"} 5' + b"\n"
    (sample,) = read_samples(page, wanted(["m"]))["m"]
    assert sample.labels == {"path": "C:\\dir", "say": '"}{,', "two": "a\nb"}
    assert sample.value == 5.0


def test_timestamps_exemplars_and_special_values_are_accepted() -> None:
    """A timestamp or an exemplar after the value is passed over; NaN and infinity are values."""
    page = b'm{a="1"} 2 1795957326261\nm_total 3 # {trace_id="x"} 0.5 1.0\nn NaN\ni +Inf\n'
    found = read_samples(page, wanted(["m", "m_total", "n", "i"]))
    assert found["m"][0].value == 2.0
    assert found["m_total"][0].value == 3.0
    assert math.isnan(found["n"][0].value)
    assert math.isinf(found["i"][0].value)


@pytest.mark.parametrize(
    "page", [b"", b"m", b"m ", b"m x", b'm{a="1" 2', b'm{a="1}\n', b"\xff\xfe\x00", b"<html>m 1</html>", b"# m 1"]
)
def test_a_broken_page_reads_as_nothing(page: bytes) -> None:
    """Half-written, foreign or binary pages give no samples and no exception."""
    assert read_samples(page, wanted(["m"])) == {}


label_text = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=20)


@given(st.dictionaries(st.tuples(label_text, label_text), st.floats(allow_nan=False), min_size=1, max_size=5))
def test_agrees_with_the_official_client(values: dict[tuple[str, str], float]) -> None:
    """Whatever labels and values the official client writes, the same come back."""
    registry = CollectorRegistry()
    gauge = Gauge("pool_m", "Help with pool_m in it", ["first", "second"], registry=registry)
    for labels, value in values.items():
        gauge.labels(*labels).set(value)
    found = read_samples(generate_latest(registry), wanted(["pool_m"]))
    assert values == {(s.labels["first"], s.labels["second"]): s.value for s in found["pool_m"]}


@given(st.binary(max_size=400))
def test_any_bytes_are_survived(page: bytes) -> None:
    """No input raises, and every found sample has the wanted name."""
    found = read_samples(page + b"\nm 1\n", wanted(["m"]))
    assert set(found) <= {"m"}


def test_first_named_prefers_the_newest_name() -> None:
    """Of several names for one thing, the first that the page has is used alone."""
    page = b"old 1\nnew 2\n"
    samples = read_samples(page, wanted(["old", "new"]))
    assert [s.value for s in first_named(samples, ("new", "old"))] == [2.0]
    assert [s.value for s in first_named(samples, ("newest", "old"))] == [1.0]
    assert first_named(samples, ("none",)) == []


def test_sums_and_means_leave_out_what_is_not_a_number() -> None:
    """NaN never reaches a balancer: it is left out, and all-NaN is unknown."""
    nan, two, four = Sample("m", {}, math.nan), Sample("m", {}, 2.0), Sample("m", {}, 4.0)
    assert total([nan, two, four]) == 6.0
    assert mean([nan, two, four]) == 3.0
    assert total([nan]) is None
    assert mean([]) is None


def test_ranks_of_one_replica_count_once() -> None:
    """Two tensor-parallel ranks repeat one number; two data-parallel replicas are two numbers."""
    samples = [
        Sample("m", {"dp_rank": "0", "tp_rank": "0"}, 3.0),
        Sample("m", {"dp_rank": "0", "tp_rank": "1"}, 3.0),
        Sample("m", {"dp_rank": "1", "tp_rank": "0"}, 4.0),
        Sample("m", {"dp_rank": "1", "tp_rank": "1"}, math.nan),
    ]
    assert total(per_replica(samples, "dp_rank")) == 7.0


def test_counts_and_shares_stay_in_range() -> None:
    """A count is whole and not negative, a share is within 0 and 1, and the unknown stays unknown."""
    assert (count(2.6), count(-1.0), count(None)) == (3, 0, None)
    assert (share(1.2), share(-0.1), share(0.5), share(math.inf), share(None)) == (1.0, 0.0, 0.5, None, None)
