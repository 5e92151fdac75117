"""What ``quantgate check`` tells about a good policy."""

from typing import Any

from gateway.policy.analysis import analyse


def test_rows_say_pools_reasons_and_failover(policies: Any) -> None:
    """One row per kind of request."""
    report = analyse(policies.table())
    rows = {(row.rule, row.adapter, row.pools, row.by): row for row in report.rows}
    high = rows["chat", None, ("bf16",), ("tools-16-bit",)]
    assert (high.failover, high.requests) == ("endpoints", "task chat, length short or medium, tool privilege high")
    assert high.buckets == 6  # 2 lengths × 3 tiers
    assert rows["chat", None, ("int4", "fp8", "bf16"), ()].failover == "pools"
    assert rows["default", None, (), ("context_window",)].failover == "refused"


def test_what_hangs_on_one_pool(policies: Any) -> None:
    """Without it these requests are refused; pools that others can stand in for lose nothing."""
    without = analyse(policies.table()).without
    assert without["fp8"] == without["int4"] == ()
    assert any("tool privilege high" in sentence for sentence in without["bf16"])


def test_a_pool_with_one_endpoint_has_no_failover(policies: Any) -> None:
    """The last resort of a request is named as such."""
    table = policies.table(lambda data: data["pools"]["bf16"].update(endpoints=["http://only"]))
    assert {row.failover for row in analyse(table).rows if row.pools == ("bf16",)} == {"none"}


def test_buckets_are_counted_and_listed(policies: Any) -> None:
    """Every combination of the fields that can occur, with all it can get."""
    report = analyse(policies.table())
    assert report.bucket_count == 4 * 3 * 3 * 2 * 3  # lengths, tasks, privileges, adapters, tiers
    assert len(report.buckets) == report.bucket_count
    (line,) = [
        line
        for line in report.buckets
        if line.fields
        == {"model": "qwen", "length": "short", "task": "chat", "privilege": "low", "adapter": "-", "tier": "gold"}
    ]
    assert line.outcomes == (("chat", ("int4", "fp8", "bf16")),)


def test_rules_that_change_nothing_are_named(policies: Any) -> None:
    """A constraint that excludes nobody, a pool nobody gets, a route that only refuses."""

    def change(data: dict[str, Any]) -> None:
        data["constraints"] += [
            {"name": "idle", "require": {"runtime": ["vllm", "llama.cpp"]}},
            {"name": "none-for-free", "when": {"tier": "free"}, "require": {"weights": "fp32"}, "refuse": True},
        ]
        data["routes"].insert(0, {"name": "free", "when": {"tier": "free"}, "pools": ["bf16"]})
        data["routes"][1]["pools"] = ["fp8", "bf16"]

    never = analyse(policies.table(change)).never
    assert never == (
        "constraint idle: it never takes a pool away that another rule has left",
        "route free: every request it matches is refused",
        "pool int4: no request can get it",
    )


def test_a_pool_that_gets_copies_is_no_rule_without_effect(policies: Any) -> None:
    """The candidate of a shadow rule serves nobody, and that is meant."""

    def change(data: dict[str, Any]) -> None:
        data["shadow"] = [{"name": "s", "candidate": "int4", "sample": "5%"}]
        data["routes"] = [{"name": "all", "pools": ["fp8", "bf16"]}]

    assert not any("pool int4" in said for said in analyse(policies.table(change)).never)


def test_too_many_buckets_are_not_listed(policies: Any, monkeypatch: Any) -> None:
    """The list is bounded, the count says so."""
    monkeypatch.setattr("gateway.policy.analysis.BUCKETS_MOST", 10)
    report = analyse(policies.table())
    assert report.buckets == ()
    assert report.bucket_count > 10
