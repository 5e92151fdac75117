"""Which number an outcome moves."""

import pytest

from gateway.control.metrics import Metrics
from gateway.model.enums import Failure, Result
from gateway.model.outcome import Attempt
from tests.unit.control.exchanges import arrived, batch


@pytest.fixture
def metrics(policy, compile_):
    """Metrics that know a table with two pools."""
    made = Metrics()
    made.take_table(compile_(policy({"bf16": 1, "int4": 1}, rule="chat").document, 1, {}))
    return made


def count(metrics, *outcomes):
    """Take outcomes as one batch."""
    metrics.take_batch(batch(*outcomes))


def samples(metrics, name):
    """Samples of the family ``name``."""
    return next(family.samples for family in metrics.families() if family.name == name)


def test_a_request_is_counted_once_by_bucket_pool_rule_and_result(metrics, outcome):
    """Exactly one series moves, by one."""
    count(metrics, outcome(rule="chat"), outcome(rule="chat"), outcome(rule="chat", result="shed", pool=""))
    assert samples(metrics, "quantgate_requests_total") == {
        ("none", "none", "none", "internal"): (0.0,),  # there from the start, for the alert
        ("m/short", "bf16", "chat", "ok"): (2.0,),
        ("m/short", "none", "chat", "shed"): (1.0,),
    }


@pytest.mark.parametrize("result", list(Result))
def test_every_result_is_a_label(metrics, outcome, result):
    """The enum's value is the label, for each member."""
    count(metrics, outcome(rule="chat", result=result.value))
    assert ("m/short", "bf16", "chat", result.value) in samples(metrics, "quantgate_requests_total")


@pytest.mark.parametrize("failure", [*(failure.value for failure in Failure), ""])
def test_every_attempt_is_counted_by_its_failure(metrics, outcome, failure):
    """The one that answered counts under none."""
    attempts = (Attempt("bf16", "bf16/0", 200, failure, 0.0, 1.0),)
    count(metrics, outcome(attempts=attempts))
    assert samples(metrics, "quantgate_attempts_total") == {("bf16/0", "bf16", failure or "none"): (1.0,)}


def test_times_go_to_the_histograms_of_bucket_and_pool(metrics, outcome):
    """TPOT is the span of the content over the tokens after the first."""
    count(metrics, outcome(ttft_s=0.08, first_to_last_s=0.4, completion_tokens=11, total_s=0.5, queue_s=0.002))
    for name, value in (("ttft", 0.08), ("tpot", 0.04), ("request", 0.5), ("queue", 0.002), ("overhead", 0.0004)):
        ((key, row),) = samples(metrics, f"quantgate_{name}_seconds").items()
        assert key == ("m/short", "bf16")
        assert sum(row[:-1]) == 1
        assert row[-1] == pytest.approx(value)


def test_unknown_times_and_tokens_are_not_zeros(metrics, outcome):
    """No data leaves no trace: no observation, no token."""
    unknown = {"ttft_s": -1.0, "queue_s": -1.0, "overhead_s": -1.0, "first_to_last_s": -1.0}
    count(metrics, outcome(prompt_tokens=-1, cached_tokens=-1, completion_tokens=-1, **unknown))
    for name in ("ttft", "tpot", "queue", "overhead"):
        assert all(sum(row) == 0 for row in samples(metrics, f"quantgate_{name}_seconds").values())
    assert all(row == (0.0,) for row in samples(metrics, "quantgate_tokens_total").values())


@pytest.mark.parametrize("fields", [{"completion_tokens": 1}, {"stream": False}, {"first_to_last_s": -1.0}])
def test_tpot_needs_a_stream_of_two_tokens(metrics, outcome, fields):
    """One token has no time per further token, and an unstreamed answer shows none."""
    count(metrics, outcome(**fields))
    assert all(sum(row) == 0 for row in samples(metrics, "quantgate_tpot_seconds").values())


def test_tokens_are_summed_by_pool_and_kind(metrics, outcome):
    """As the runtime reported them."""
    count(metrics, outcome(), outcome(pool="int4"), outcome())
    tokens = samples(metrics, "quantgate_tokens_total")
    assert tokens["bf16", "prompt"] == (24.0,)
    assert tokens["bf16", "cached"] == (8.0,)
    assert tokens["int4", "completion"] == (11.0,)


def test_b94_what_a_client_makes_up_is_never_a_label(metrics, outcome):
    """20,000 made-up models and users change nothing in the number of series."""
    count(metrics, outcome(bucket="", pool="", rule="", result="not_found", model="first"))
    before = sum(len(family.samples) for family in metrics.families())
    count(
        metrics,
        *(
            outcome(
                bucket="", pool="", rule="", result="not_found", model=f"x-{n}", tenant=f"u-{n}", conversation=f"{n}"
            )
            for n in range(20_000)
        ),
    )
    assert sum(len(family.samples) for family in metrics.families()) == before
    assert samples(metrics, "quantgate_requests_total")["none", "none", "none", "not_found"] == (20_001.0,)


def test_b94_buckets_over_the_policys_number_read_other(policy, compile_, outcome):
    """The first ``buckets.most`` have their own series."""
    metrics = Metrics()
    metrics.take_table(compile_(policy(most=3).document, 1, {}))
    count(metrics, *(outcome(bucket=f"b{n}") for n in range(500)))
    requests = {key: row for key, row in samples(metrics, "quantgate_requests_total").items() if row[0]}
    assert sorted(key[0] for key in requests) == ["b0", "b1", "b2", "other"]
    assert sum(row[0] for row in requests.values()) == 500


def test_pools_rules_and_endpoints_no_table_knows_read_other(metrics, outcome):
    """A label comes from a table or it is not one."""
    count(metrics, outcome(pool="evil", rule="evil", attempts=(Attempt("evil", "evil/0", 0, "connect", 0, 0),)))
    assert ("m/short", "other", "other", "ok") in samples(metrics, "quantgate_requests_total")
    assert ("other", "other", "connect") in samples(metrics, "quantgate_attempts_total")


def test_pools_of_earlier_generations_keep_their_series(metrics, outcome, policy, compile_):
    """Requests that finish on an old generation count under its names after a reload."""
    metrics.take_table(compile_(policy({"fp8": 1}).document, 2, {}))
    count(metrics, outcome(rule="chat", generation=1))
    assert ("m/short", "bf16", "chat", "ok") in samples(metrics, "quantgate_requests_total")


def test_b96_counters_outlive_the_worker_and_gauges_do_not(metrics, outcome, stats):
    """Control holds the counts; a dead worker takes away only its own gauges."""
    metrics.take_stats(stats(3, connections=7))
    count(metrics, outcome(rule="chat"))
    metrics.forget_worker(3)
    assert metrics.worker_stats == {}
    assert samples(metrics, "quantgate_requests_total")["m/short", "bf16", "chat", "ok"] == (1.0,)


def test_dropped_outcomes_are_counted_by_worker(metrics, outcome):
    """A loss is never silent."""
    metrics.take_losses(arrived(outcome(), dropped=5, worker=2))
    metrics.take_losses(arrived(worker=2))
    assert samples(metrics, "quantgate_dropped_outcomes_total") == {("2",): (5.0,)}


def test_the_memory_of_rows_is_bounded(metrics, outcome, monkeypatch):
    """Even a worker that sends endless buckets cannot make control grow."""
    monkeypatch.setattr("gateway.core.batch.KINDS_MOST", 10)
    count(metrics, *(outcome(bucket=f"b{n}", rule="chat") for n in range(100)))
    assert len(metrics._rows) <= 10
    assert sum(row[0] for row in samples(metrics, "quantgate_requests_total").values()) == 100
