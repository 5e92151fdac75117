"""Guards, rollouts and shadow rules as values."""

from typing import Any

import pytest
import yaml

from gateway.model.proving import Guard, Stage

ROLLOUT = {
    "name": "roll",
    "buckets": {"task": "chat", "length": ["short"]},
    "candidate": "int4",
    "stages": [
        {"shadow": "5%", "at_least": {"time": "2h", "pairs": 500}, "at_most": {"time": "7d"}},
        {"weight": "0.5%"},
        {"weight": "100%"},
    ],
    "guards": ["errors", "quality"],
    "promote": {"approvals": 2},
    "reentry": {"after": "24h"},
}


def test_a_rollout(policies: Any, profile: Any) -> None:
    """Shares become basis points, times seconds; the baseline is the model's; the condition is about its model only."""
    (rollout,) = policies.table(lambda data: data.update(rollouts=[ROLLOUT])).rollouts
    assert (rollout.model, rollout.candidate, rollout.baseline) == ("qwen", "int4", "bf16")
    assert rollout.stages == (
        Stage("shadow", 500, 7200.0, 300, 500, 604_800.0),
        Stage("weight", 50, 86_400.0, 300, 200, 1_209_600.0),
        Stage("weight", 10_000, 86_400.0, 300, 200, 1_209_600.0),
    )
    assert (rollout.approvals, rollout.control_bp, rollout.reentry_after_s, rollout.reentry_most) == (
        2,
        200,
        86_400.0,
        1,
    )
    assert rollout.guards == ("errors", "quality")
    assert rollout.matches(profile())
    assert not rollout.matches(profile(model="other"))
    assert not rollout.matches(profile(task="code"))


def test_a_shadow_stage_mirrors(policies: Any, profile: Any) -> None:
    """A rollout with a shadow stage has its rule: its buckets, its largest share, a noise leg for every pair, and the
    likelihood where a guard needs it. A rollout without such a stage mirrors nothing."""
    guards = {"gap": {"metric": "likelihood_gap", "margin_to_baseline": "5%"}}
    staged = ROLLOUT | {"guards": ["errors", "gap"], "stages": [{"shadow": "1%"}, {"shadow": "5%"}, {"weight": "100%"}]}

    def change(data: Any, **rollout: Any) -> None:
        data["guards"].update(guards)
        data.update(rollouts=[staged | rollout], shadow=[])

    (rule,) = policies.table(change).shadows
    assert (rule.name, rule.sample, rule.noise, rule.likelihood) == ("rollout:roll", 0.05, 1.0, 1.0)
    assert (rule.model, rule.candidate, rule.baseline) == ("qwen", "int4", "bf16")
    assert rule.matches(profile())
    assert not rule.matches(profile(task="code"))
    (plain,) = policies.table(lambda data: change(data, guards=["errors"])).shadows
    assert plain.likelihood == 0.0
    assert policies.table(lambda data: change(data, stages=[{"weight": "100%"}])).shadows == ()


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({"stages": [{"weight": "50%"}]}, True),
        ({"guards": ["errors"]}, True),
        ({"promote": {"approvals": 0}}, True),
        ({"buckets": {"task": "chat", "length": ["short", "medium"]}}, False),
        ({"baseline": "fp8"}, False),
        ({"name": "other"}, False),
    ],
)
def test_the_identity_is_pools_and_buckets(change: Any, same: bool, policies: Any) -> None:
    """State survives an edit of stages and guards, and does not leak into another rollout."""
    first, second = (
        policies.table(lambda data, given=given: data.update(rollouts=[ROLLOUT | given])).rollouts[0]
        for given in ({}, change)
    )
    assert (first.identity == second.identity) is same


@pytest.mark.parametrize(
    ("written", "guard"),
    [
        (
            {"metric": "error_rate", "limit": "1%"},
            Guard("g", "error_rate", 0.01, feed="vote", block_s=10.0, deadline_s=30.0),
        ),
        (
            {"metric": "ttft", "quantile": "99%", "limit": "2s", "or_ratio_to_baseline": 1.2},
            Guard("g", "ttft", 2.0, 0.99, or_ratio=1.2, feed="vote", block_s=30.0, deadline_s=2.0),
        ),
        (
            {"metric": "tool_failure_rate", "margin_to_baseline": "1%", "critical": True},
            Guard("g", "tool_failure_rate", margin=0.01, critical=True, feed="session"),
        ),
        ({"metric": "agreement", "margin_to_baseline": "2%"}, Guard("g", "agreement", margin=0.02)),
        (
            {"metric": "check", "check": "citations", "ratio_to_baseline": 1}
            | {"feed": "vote", "block": "1m", "deadline": "5s"},
            Guard("g", "check", ratio=1.0, feed="vote", block_s=60.0, deadline_s=5.0, check="citations"),
        ),
    ],
)  # fmt: skip
def test_a_guard(written: Any, guard: Guard, policies: Any) -> None:
    """Feed, block and deadline have a default per metric; a TTFT limit is its own deadline."""
    table = policies.table(lambda data: data["guards"].update(g=written))
    assert table.guards["g"] == guard


@pytest.mark.parametrize(
    ("written", "said", "mend"),
    [
        ({"metric": "feedback_rate", "or_ratio_to_baseline": 1.2}, "only a latency has", "use ratio_to_baseline"),
        (
            {"metric": "agreement", "margin_to_baseline": "2%", "or_ratio_to_baseline": 1.2},
            "only a latency has",
            "use margin_to_baseline",
        ),
        ({"metric": "agreement", "margin_to_baseline": "2%", "ratio_to_baseline": 1.2}, "by a margin", "leave"),
        (
            {"metric": "ttft", "quantile": "99%", "ratio_to_baseline": 1.2, "or_ratio_to_baseline": 1.3},
            "widens a limit",
            "give it a limit",
        ),
        ({"metric": "error_rate", "limit": "1%", "feed": "session"}, "counts requests", "use feed: vote"),
        ({"metric": "total", "quantile": "99%", "limit": "2s", "feed": "session"}, "counts requests", "use feed: vote"),
        ({"metric": "agreement", "margin_to_baseline": "2%", "feed": "vote"}, "pair by pair", "leave feed out"),
        ({"metric": "error_rate", "limit": "0%"}, "above 0% and below 100%", "healthy pool"),
        ({"metric": "feedback_rate", "limit": "100%"}, "above 0% and below 100%", "healthy pool"),
        ({"metric": "total", "quantile": "99%", "limit": "0s"}, "lies above 0", "healthy pool"),
        ({"metric": "error_rate", "margin_to_baseline": "100%"}, "from 0% and below 100%", "tolerate"),
        ({"metric": "likelihood_gap", "margin_to_baseline": "0%"}, "above 0% and below 100%", "tolerate"),
    ],
)
def test_a_bound_that_would_not_be_what_it_says_is_refused(written: Any, said: str, mend: str, policies: Any) -> None:
    """At its line, with the mend: a bound that nobody is held to is worse than none."""

    def change(data: Any) -> None:
        data["guards"].update(odd=written)

    found = policies.error(change)
    assert (found.file, said in found.message, mend in found.mend) == ("policy.yaml", True, True), str(found)
    lines = yaml.safe_dump(policies.data(change), sort_keys=False).splitlines()
    assert lines[found.line - 1].strip() == "odd:"


@pytest.mark.parametrize("margin", ["0%", "99%"])
def test_no_loss_at_all_may_be_tolerated(margin: str, policies: Any) -> None:
    """A margin of 0 is a bound like any other."""
    written = {"metric": "feedback_rate", "margin_to_baseline": margin}
    assert policies.table(lambda data: data["guards"].update(g=written)).guards["g"].margin in (0.0, 0.99)


def test_every_metric_has_a_feed(policies: Any) -> None:
    """A metric added to the language is given a feed, or this fails."""
    from gateway.policy.proving import _FEEDS
    from gateway.policy.schema.proving import METRICS

    assert set(_FEEDS) == set(METRICS)


def test_a_shadow_rule(policies: Any, profile: Any) -> None:
    """With its defaults, about its candidate's model only."""
    rule = {
        "name": "s",
        "when": {"tools": {"privilege": ["none", "low"]}},
        "sample": "2%",
        "candidate": "fp8",
        "rate": 5,
    }
    (shadow,) = policies.table(lambda data: data.update(shadow=[rule])).shadows
    assert (shadow.sample, shadow.noise, shadow.inflight, shadow.rate, shadow.queue) == (0.02, 0.2, 16, 5.0, 64)
    assert (shadow.candidate, shadow.baseline, shadow.timeout_s) == ("fp8", "bf16", 120.0)
    assert shadow.matches(profile())
    assert not shadow.matches(profile(privilege="high"))
    assert not shadow.matches(profile(model="other"))


def test_evidence(policies: Any) -> None:
    """Shares of answers that are checked."""
    given = {"check": {"other": "50%"}, "remember": {"time": "5m"}, "refusals": ["(?i)i cannot"]}
    evidence = policies.table(lambda data: data.update(evidence=given)).evidence
    assert (evidence.structured, evidence.other, evidence.remember_s) == (1.0, 0.5, 300.0)
    assert evidence.refusals == ("(?i)i cannot",)


@pytest.mark.parametrize(
    ("stages", "said"),
    [
        ([{"weight": "5%"}, {"shadow": "5%"}], "shadow stages come before"),
        ([{"weight": "50%"}, {"weight": "5%"}], "must rise"),
        ([{"weight": "5%"}, {"weight": "5%"}], "must rise"),
        ([{"weight": "5%", "shadow": "5%"}], "exactly one of"),
        ([{}], "exactly one of"),
    ],
)
def test_stages_lead_upwards(stages: Any, said: str, policies: Any) -> None:
    """Shadow first, then rising weights."""
    assert said in policies.error(lambda data: data.update(rollouts=[ROLLOUT | {"stages": stages}])).message
