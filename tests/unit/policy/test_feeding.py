"""Guards that can never get data, and rollbacks that lead nowhere, are warned of where they are written."""

from typing import Any

import pytest

from tests.unit.policy.conftest import text_of

PAIRS = {"name": "s", "candidate": "int4", "sample": "5%"}


def rolling(guard: dict[str, Any], *, shadow: list[dict[str, Any]] | None = None, **rollout: Any) -> Any:
    """A rollout of int4 over short chat with one guard, on a policy that has nothing else to warn of."""

    def change(data: dict[str, Any]) -> None:
        data["guards"]["g"] = guard
        one = {"name": "roll", "buckets": {"task": "chat", "length": ["short"]}, "candidate": "int4"}
        data["rollouts"] = [{**one, "stages": [{"weight": "5%"}, {"weight": "100%"}], "guards": ["g"], **rollout}]
        data["shadow"] = shadow or []
        data["pools"]["bf16"]["limits"] = {"inflight": 64}
        data["gateway"] = {"queue": {"tiers": ["gold", "free"]}}
        data["classify"]["buckets"] = {"most": "10k"}
        if guard["metric"] == "likelihood_gap":
            data["pools"]["bf16"]["runtime"] = data["pools"]["int4"]["runtime"] = "sglang"

    return change


def and_then(first: Any, second: Any) -> Any:
    def change(data: dict[str, Any]) -> None:
        first(data)
        second(data)

    return change


def by_structure(data: dict[str, Any]) -> None:
    data["classify"]["buckets"] = {
        "by": ["model", "length", "task", "tool_use", "structured", "stream", "api"],
        "most": "1m",
    }


AGREEMENT = {"metric": "agreement", "margin_to_baseline": "2%"}
LIKELIHOOD = {"metric": "likelihood_gap", "margin_to_baseline": "2%"}
TOOLS = {"metric": "tool_failure_rate", "margin_to_baseline": "1%"}
JSON = {"metric": "format_error_rate", "limit": "1%"}
SCHEMA = {"metric": "check", "check": "schema", "limit": "1%"}
REFUSALS = {"metric": "refusal_rate", "limit": "1%"}
TTFT = {"metric": "ttft", "quantile": "99%", "limit": "2s"}
FEEDBACK = {"metric": "feedback_rate", "limit": "10%"}
ERRORS = {"metric": "error_rate", "limit": "1%"}
CODE = {"task": "code", "length": "short"}
NOT_CHECKED = {"check": {"structured": "0%", "tools": "0%", "other": "0%"}}


def bucket(**fields: Any) -> dict[str, Any]:
    return {"buckets": {"task": "chat", "length": ["short"], **fields}}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (rolling(AGREEMENT), "'g' needs pairs, but nothing mirrors requests of these buckets from 'bf16' to 'int4'"),
        (rolling(AGREEMENT, shadow=[{**PAIRS, "candidate": "fp8"}]), "needs pairs, but nothing mirrors"),
        (rolling(AGREEMENT, shadow=[{**PAIRS, "when": {"task": "code"}}]), "needs pairs, but nothing mirrors"),
        (rolling(AGREEMENT, shadow=[{**PAIRS, "baseline": "fp8"}]), "needs pairs, but nothing mirrors"),
        (rolling(AGREEMENT, shadow=[{**PAIRS, "noise_leg": "0%"}]), "noise_leg is 0 in 's'"),
        (rolling(LIKELIHOOD, shadow=[PAIRS]), "likelihood is 0 in 's'"),
        (
            and_then(rolling(TOOLS, **bucket(tool_use=["none"])), by_structure),
            "gets nothing from these buckets: their requests have no tools",
        ),
        (and_then(rolling(JSON, **bucket(structured=["none"])), by_structure), "their requests ask for no format"),
        (and_then(rolling(SCHEMA, **bucket(structured=["none"])), by_structure), "their requests ask for no format"),
        (
            and_then(rolling(REFUSALS, **bucket(api=["embeddings"])), by_structure),
            "their answers hold no generated text",
        ),
        (
            and_then(rolling(REFUSALS), lambda data: data.update(evidence=NOT_CHECKED)),
            "none of the answers that it looks at are checked",
        ),
        (and_then(rolling(TTFT, **bucket(stream=False)), by_structure), "goes by streams, and these buckets have none"),
        (rolling(FEEDBACK, stages=[{"shadow": "5%"}]), "mirrored answers are never shown to them"),
        (rolling({"metric": "error_rate", "margin_to_baseline": "1%"}, control="0%"), "'g' has no baseline beside it"),
    ],
)
def test_a_guard_without_data_is_warned_of_where_the_rollout_names_it(change: Any, said: str, policies: Any) -> None:
    """It would hold the rollout for ever; the policy loads all the same."""
    (warning,) = policies.load(change).warnings
    assert said in warning.message
    assert warning.mend
    assert (warning.file, warning.severity) == ("policy.yaml", "warning")
    assert text_of(policies.data(change)).splitlines()[warning.line - 1].strip() == "- g"


@pytest.mark.parametrize(
    "change",
    [
        rolling(ERRORS),
        rolling(AGREEMENT, shadow=[PAIRS]),
        rolling(AGREEMENT, stages=[{"shadow": "5%"}, {"weight": "100%"}]),
        rolling(LIKELIHOOD, stages=[{"shadow": "5%"}, {"weight": "100%"}]),
        rolling(LIKELIHOOD, shadow=[{**PAIRS, "likelihood": "10%"}]),
        rolling(TOOLS),
        rolling(JSON),
        rolling(SCHEMA),
        rolling(REFUSALS),
        rolling(TTFT, control="0%"),
        rolling({**TTFT, "or_ratio_to_baseline": 1.2}, control="0%"),
        rolling(FEEDBACK),
        rolling({"metric": "error_rate", "margin_to_baseline": "1%"}, stages=[{"weight": "50%"}], control="0%"),
    ],
)
def test_a_guard_that_can_get_data_is_not(change: Any, policies: Any) -> None:
    """Nothing is said where nothing is wrong."""
    assert policies.load(change).warnings == ()


def test_a_tool_guard_where_constraints_keep_tools_off_the_candidate(policies: Any) -> None:
    """The buckets have tools, and the candidate never sees them."""

    def no_tools(data: dict[str, Any]) -> None:
        data["constraints"].append(
            {
                "name": "tools-fine",
                "when": {"tools": {"use": ["declared", "forced", "loop"]}},
                "require": {"weights": "bf16"},
            }
        )

    (warning,) = policies.load(and_then(rolling(TOOLS), no_tools)).warnings
    assert "their requests have no tools" in warning.message


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({"when": CODE, "candidate": "int4"}, "its requests go to 'fp8' first, and only what its baseline"),
        ({"when": {"tools": {"privilege": "high"}}, "candidate": "int4"}, "constraints keep all of its requests from"),
        ({"when": CODE, "candidate": "int4", "baseline": "fp8"}, ""),
        ({"when": {"task": "chat", "length": "short"}, "candidate": "fp8"}, ""),  # by the rollout, bf16 comes first
    ],
)
def test_a_shadow_rule_that_mirrors_nothing_is_warned_of(rule: dict[str, Any], said: str, policies: Any) -> None:
    """It would count `not_baseline` or `not_permitted` for ever, and nobody looks there before pairs are missing."""
    found = policies.load(rolling(ERRORS, shadow=[{"name": "s", "sample": "5%", **rule}])).warnings
    messages = [warning.message for warning in found]
    assert len(messages) == bool(said)
    assert all("shadow rule 's' mirrors nothing" in one and said in one for one in messages)


def test_a_check_that_does_not_exist_is_an_error(policies: Any) -> None:
    """It would never find anything; the nearest name is suggested."""
    error = policies.error(rolling({"metric": "check", "check": "schemas", "limit": "1%"}))
    assert "there is no check 'schemas'" in error.message
    assert "schema" in error.mend


def test_a_rollback_onto_a_baseline_without_bounds_is_warned_of(policies: Any) -> None:
    """And tiers that nobody ranked: what does not fit would be refused in the order of arrival."""

    def unbounded(data: dict[str, Any]) -> None:
        del data["pools"]["bf16"]["limits"], data["gateway"]

    said = [warning.message for warning in policies.load(and_then(rolling(ERRORS), unbounded)).warnings]
    assert any("nothing bounds what comes back to 'bf16' if 'int4' is rolled back" in one for one in said)
    assert any("tenants have tiers (default, free, gold), but gateway.queue.tiers ranks none" in one for one in said)
    assert len(said) == 2


def finer(data: dict[str, Any]) -> None:
    """From four bits to sixteen, with nothing else in the route."""
    data["routes"] = [
        {"name": "chat", "when": {"task": "chat"}, "pools": ["bf16", "int4"]},
        {"name": "default", "pools": ["fp8", "bf16"]},
    ]
    data["rollouts"][0] |= {"candidate": "bf16", "baseline": "int4"}
    data["pools"]["int4"]["limits"] = {"inflight": 64}


def test_a_finer_candidate_that_tool_loops_could_not_leave_is_warned_of(policies: Any) -> None:
    """After a rollback they have nowhere to go; another pool of that precision in the route mends it."""
    (warning,) = policies.load(and_then(rolling(ERRORS), finer)).warnings
    assert "'bf16' is finer than every pool that remains without it" in warning.message
    assert "tool loops that it began are refused" in warning.message

    def spare(data: dict[str, Any]) -> None:
        data["pools"]["spare"] = {**data["pools"]["bf16"], "endpoints": ["http://spare:1"]}
        data["routes"][0]["pools"].append("spare")

    assert policies.load(and_then(and_then(rolling(ERRORS), finer), spare)).warnings == ()


@pytest.mark.parametrize("shadow", [[], [{**PAIRS, "likelihood": "10%"}]], ids=["stage", "rule"])
def test_adapters_on_vllm_leave_likelihood_without_data(shadow: list[dict[str, Any]], policies: Any) -> None:
    """Such a pool is never asked for scores, so a guard that waits for them waits for ever."""
    stages = [{"weight": "100%"}] if shadow else [{"shadow": "5%"}, {"weight": "100%"}]

    def change(data: dict[str, Any]) -> None:
        rolling(LIKELIHOOD, shadow=shadow, stages=stages)(data)
        data["pools"]["int4"]["runtime"] = "vllm"

    said = [warning.message for warning in policies.load(change).warnings]
    assert [message.partition(":")[0] for message in said] == [
        "the guard 'g' needs pairs that are scored by likelihood, and none is",
        *(["shadow rule 's' has no pair scored by likelihood"] if shadow else []),
    ]
