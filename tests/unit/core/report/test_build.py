"""The report out of a tally: baselines, order, findings, notes."""

import msgspec
import pytest

from gateway.core.report import METRICS, Report, Tally, UnknownBaselineError, Verdict, build
from gateway.core.report.metrics import QUANTILES
from tests.unit.core.report.report_rows import int4, report, row


def column(made, pool, bucket="chat"):
    return next(c for s in made.sections if s.bucket == bucket for c in s.columns if c.pool == pool)


def test_the_matrix_says_where_a_candidate_is_worse_and_where_better():
    """Broken JSON is worse with its interval, half the time better, equal errors undecided."""
    made = report()
    figures = column(made, "int4").figures
    assert figures["format_error"].comparison.verdict is Verdict.WORSE
    assert figures["ttft_p50"].comparison.verdict is Verdict.BETTER
    assert figures["error_rate"].comparison.verdict is Verdict.NOT_ENOUGH
    assert figures["format_error"].estimate.lower < 0.2 < figures["format_error"].estimate.upper
    assert [f.metric for f in made.findings if f.verdict is Verdict.WORSE] == ["quality", "format_error"]
    assert made.findings[0].verdict is Verdict.WORSE
    assert made.decided == len(made.findings) <= made.comparisons


def test_every_column_has_every_metric():
    """A reader finds a metric without data as such, never as a gap; the baseline has no verdicts."""
    made = report()
    for found in made.sections[0].columns:
        assert list(found.figures) == list(METRICS)
    assert all(figure.comparison is None for figure in column(made, "bf16").figures.values())
    assert column(made, "int4").figures["tool_failure"].comparison.reason == "no data"


def test_the_widest_precision_is_the_baseline_unless_one_is_named():
    """The guess is said in a note; a named pool wins; it comes first."""
    tally = Tally()
    tally.add_requests(
        [int4(), row(), row(pool="fp8", precision="fp8+kv-fp8"), row(pool="w8", precision="bf16+kv-int8")]
    )
    made = build(tally, 0.0)
    assert made.baselines == {"m": "bf16"}
    assert made.sections[0].columns[0].pool == "bf16"
    assert any("bf16 was taken as baseline" in note for note in made.notes)
    named = build(tally, 0.0, baselines=["fp8"])
    assert named.baselines == {"m": "fp8"}
    assert [c.pool for c in named.sections[0].columns] == ["fp8", "bf16", "int4", "w8"]
    assert column(named, "bf16").against == "fp8"


def test_models_in_one_bucket_keep_their_own_baselines():
    """A pool is never compared with another model's."""
    tally = Tally()
    tally.add_requests([row(), int4(), row(pool="big", model="n"), row(pool="big-q", model="n", precision="q8_0")])
    made = build(tally, 0.0, baselines=["bf16"])
    assert made.baselines == {"m": "bf16", "n": "big"}
    assert {c.pool: c.against for c in made.sections[0].columns} == {
        "bf16": "",
        "int4": "bf16",
        "big": "",
        "big-q": "big",
    }


def test_an_unknown_baseline_is_an_error_that_names_the_pools():
    """A typing error must not give a report against something else."""
    tally = Tally()
    tally.add(row())
    with pytest.raises(UnknownBaselineError, match=r"bf17.*bf16"):
        build(tally, 0.0, baselines=["bf17"])


def test_a_bucket_that_the_baseline_never_served_decides_nothing():
    """The candidate's numbers stand there, without a pass."""
    tally = Tally()
    tally.add_requests([row()] + [int4(bucket="code")] * 100)
    figure = column(build(tally, 0.0), "int4", "code").figures["ttft_p50"]
    assert (figure.comparison.verdict, figure.comparison.reason) == (Verdict.NOT_ENOUGH, "the baseline has no data")


def test_no_records_give_an_empty_report():
    """And no baseline is missed in it."""
    made = build(Tally(), 5.0, baselines=["bf16"])
    assert (made.requests, made.sections, made.comparisons) == (0, [], 0)


def test_buckets_come_by_traffic_and_the_overflow_last():
    """Most requests first."""
    tally = Tally()
    tally.add_requests([row(bucket="a")] + [row(bucket="b")] * 3 + [row(bucket="other")] * 9)
    tally.add(row(pool="", bucket="c", result="shed", attempts="[]"))
    assert [section.bucket for section in build(tally, 0.0).sections] == ["b", "a", "c", "other"]


def test_what_ran_is_told():
    """Emulated deployments are marked and their latency not judged; two deployments in one span are said."""
    tally = Tally()
    tally.add_requests([row()] * 200 + [int4()] * 200 + [int4(deployment="d3")])
    tally.describe({"d2": {"precision": {"emulated": True}}})
    made = build(tally, 0.0)
    found = column(made, "int4")
    assert (found.emulated, found.deployments) == (True, ("d2", "d3"))
    assert found.figures["ttft_p50"].comparison.verdict is Verdict.NOT_ENOUGH
    assert any("more than one deployment" in note for note in made.notes)


def test_bars_hold_every_duration():
    """What a plot draws adds up to what was measured."""
    for found in report(50, 0).sections[0].columns:
        assert sum(bar.number for bar in found.distributions["ttft"]) == 50


def test_a_report_survives_json():
    """The admin API sends it, the command reads it."""
    made = report()
    assert msgspec.json.decode(msgspec.json.encode(made), type=Report) == made
    assert len(QUANTILES) == 3
