"""Names mean something, or the policy is refused where they stand."""

from pathlib import Path
from typing import Any

import pytest


def pool(data: dict[str, Any], name: str, **changes: Any) -> None:
    data["pools"][name].update(changes)


ROLLOUT = {
    "name": "roll",
    "buckets": {"task": "chat", "length": ["short"]},
    "candidate": "int4",
    "stages": [{"shadow": "5%"}, {"weight": "5%"}, {"weight": "100%"}],
    "guards": ["errors", "quality"],
}
ONE_APPROVER = [
    {"name": "ann", "token": "env:A", "role": "approver"},
    {"name": "ben", "token": "env:B", "role": "operator"},
]
SHADOW = {"name": "mirror", "sample": "1%", "candidate": "fp8"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: pool(d, "fp8", model="qwin"), "there is no model 'qwin' (did you mean 'qwen'?)"),
        (lambda d: pool(d, "fp8", model="gpt-4o"), "'gpt-4o' is an alias (name the model itself: qwen)"),
        (lambda d: pool(d, "fp8", adapters=["legel"]), "no adapter of qwen 'legel' (did you mean 'legal'?)"),
        (lambda d: d["models"]["qwen"].update(baseline="bf61"), "no pool of qwen 'bf61' (did you mean 'bf16'?)"),
        (lambda d: d["models"].update(empty={}), "no pool serves the model 'empty'"),
        (
            lambda d: d["models"]["qwen"]["adapters"].update(a={"validated_on": "fp16"}),
            "validated on no precision that is",
        ),
        (lambda d: d["models"]["qwen"].update(aliases=["a", "legal"]), "the name 'legal' is taken already"),
        (lambda d: d["models"]["qwen"].update(aliases=["a", "a"]), "the name 'a' is taken already"),
        (lambda d: d["models"]["qwen"].update(aliases=["qwen"]), "the name 'qwen' is taken already"),
        (lambda d: d["models"]["qwen"].update(aliases=["qwen:legal"]), "the name 'qwen:legal' is taken already"),
        (lambda d: d["models"]["qwen"]["adapters"].update(present={"validated_on": "any"}), "conditions use the word"),
        (lambda d: d["tenants"]["acme"].update(grants=["payment"]), "'payment' (did you mean 'payments'?)"),
        (lambda d: d["tenants"]["acme"].update(models=["qwe"]), "no model, alias or adapter 'qwe'"),
        (lambda d: d["tenants"]["acme"].update(allow=True), "only anonymous has allow"),
        (lambda d: d["tenants"]["anonymous"].pop("allow"), "anonymous must say whether it is allowed"),
        (lambda d: d["tenants"]["anonymous"].update(keys=["env:X"]), "callers without a key; it has none"),
        (lambda d: d["tenants"]["beta"].update(keys=["env:ACME_KEY"]), "this key is listed twice (tenant 'acme')"),
        (lambda d: d["tenants"]["beta"].update(keys=["env:B", "env:B"]), "this key is listed twice (tenant 'beta')"),
        (lambda d: d["constraints"][1].update(name="tools-16-bit"), "two constraints have the name 'tools-16-bit'"),
        (lambda d: d["routes"][1].update(name="none"), "'none' stands for no rule"),
        (lambda d: d["constraints"][0].update(when={"task": "Chat".lower() + "t"}), "there is no task 'chatt'"),
        (lambda d: d["constraints"][0].update(when={"length": "shrt"}), "no length 'shrt' (did you mean 'short'?)"),
        (lambda d: d["constraints"][0].update(when={"tier": "golden"}), "no tier 'golden' (did you mean 'gold'?)"),
        (lambda d: d["constraints"][0].update(when={"tenant": "acne"}), "no tenant 'acne' (did you mean 'acme'?)"),
        (lambda d: d["constraints"][0].update(when={"adapter": "legl"}), "no adapter 'legl' (did you mean 'legal'?)"),
        (lambda d: d["constraints"][0].update(when={"not": {"model": "gpt-4o"}}), "there is no model 'gpt-4o'"),
        (lambda d: d["constraints"][0].update(unless_measured={"guard": "qualty"}), "(did you mean 'quality'?)"),
        (lambda d: d["constraints"][0].update(require={"pool": "bf61"}), "there is no pool 'bf61'"),
        (lambda d: d["routes"][0].update(pools=["int4", "fp9"]), "there is no pool 'fp9'"),
        (lambda d: d.update(shadow=[{**SHADOW, "candidate": "bf61"}]), "there is no pool 'bf61'"),
        (lambda d: d.update(shadow=[{**SHADOW, "candidate": "bf16"}]), "is the baseline itself"),
        (lambda d: d.update(rollouts=[{**ROLLOUT, "baseline": "x"}]), "there is no pool of qwen 'x'"),
        (lambda d: d.update(rollouts=[{**ROLLOUT, "guards": ["eror"]}]), "no guard 'eror' (did you mean 'errors'?)"),
        (
            lambda d: d.update(rollouts=[{**ROLLOUT, "buckets": {"task": "cod"}}]),
            "no task 'cod' (did you mean 'code'?)",
        ),
        (lambda d: d.update(rollouts=[{**ROLLOUT, "buckets": {"stream": True}}]), "add stream to classify.buckets.by"),
        (lambda d: d.update(records={"samples": {"tenants": {"acne": "off"}}}), "no tenant 'acne'"),
        (lambda d: d.update(operators=[{"name": "o", "token": "env:A"}] * 2), "two operators have the name 'o'"),
        (
            lambda d: d.update(operators=[{"name": "o", "token": "env:A"}, {"name": "p", "token": "env:A"}]),
            "operator 'o' has this token too",
        ),
        (lambda d: d["classify"]["tools"].update(privileged=["^pay_"]), "'^pay_' is a tool's name with * and ? in it"),
        (lambda d: d["classify"]["tools"].update(grants={"payments": ["(a|b)"]}), "no regular expression"),
    ],
)
def test_a_name_that_means_nothing_is_refused_with_the_nearest(change: Any, said: str, policies: Any) -> None:
    """Dangling, clashing and misplaced names each give one error with its mend."""
    assert said in str(policies.error(change))


def test_b120_a_bucket_word_in_another_case_is_refused(policies: Any) -> None:
    """A rollout over ``Code`` would wait for evidence that nobody records."""
    (error,) = policies.errors(lambda d: d.update(rollouts=[{**ROLLOUT, "buckets": {"task": "Code"}}]))
    assert "lower-case" in error.mend


def test_no_baseline_anywhere_is_refused(policies: Any) -> None:
    """A candidate must be compared with something."""

    def change(data: dict[str, Any]) -> None:
        del data["models"]["qwen"]["baseline"]
        data["rollouts"] = [ROLLOUT]

    assert "name one here or in models.qwen.baseline" in policies.error(change).mend


def test_a_route_that_names_a_model_must_serve_it(policies: Any) -> None:
    """``when: {model: …}`` with pools of other models only can serve nobody."""

    def change(data: dict[str, Any]) -> None:
        data["models"]["other"] = {}
        data["pools"]["o"] = {**data["pools"]["bf16"], "model": "other", "endpoints": ["http://o"]}
        data["routes"].insert(0, {"name": "wrong", "when": {"model": "other"}, "pools": ["bf16"]})
        data["routes"].append({"name": "other", "pools": ["o"]})

    assert "names no pool that serves it" in policies.error(change).message


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: d["tenants"].update(quiet={}), "tenant 'quiet' has no keys"),
        (lambda d: d.update(tenants={}), "nobody can call"),
        (lambda d: d.update(routes=[{"name": "only", "pools": ["bf16", "fp8"]}]), "no route names the pool 'int4'"),
        (lambda d: d["constraints"][0].update(forbid={"labels": {"zone": "bb"}}), "no pool has the label zone: bb"),
        (lambda d: d["models"]["qwen"].update(tokenizer={"huggingface": "gone.json"}), "gone.json is not here"),
        (lambda d: d["classify"]["tools"].update(privileged=["pay_.*"]), "'pay_.*' hits only names with a dot"),
        (lambda d: d.update(gateway={"queue": {"tiers": ["gold", "fre"]}}), "no tenant has the tier 'fre'"),
        (lambda d: pool(d, "fp8", endpoints=["http://bf16-1:8000"]), "is an endpoint of pool 'bf16' too"),
        (
            lambda d: d.update(rollouts=[{**ROLLOUT, "promote": {"approvals": 2}}], operators=ONE_APPROVER),
            "1 people may",
        ),
    ],
)
def test_what_is_probably_not_meant_is_warned_of(change: Any, said: str, policies: Any) -> None:
    """The policy loads, and the person hears of it."""
    assert any(said in warning for warning in policies.warnings(change))


def test_a_good_policy_has_no_findings(policies: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is said where nothing is wrong, with every section in use."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")

    def change(data: dict[str, Any]) -> None:
        data["models"]["qwen"]["tokenizer"] = {"huggingface": "tokenizer.json"}
        data["shadow"] = [SHADOW]
        data["rollouts"] = [ROLLOUT]
        data["pools"]["bf16"]["limits"] = {"inflight": 64}
        data["gateway"] = {"queue": {"tiers": ["gold", "free"]}}
        data["classify"]["buckets"] = {"most": 1000}

    assert policies.load(change).warnings == ()


def test_a_pool_that_only_gets_copies_is_meant_so(policies: Any) -> None:
    """The candidate of a shadow rule is in no route until it has shown what it can."""

    def change(data: dict[str, Any]) -> None:
        data["shadow"] = [{"name": "s", "candidate": "int4", "sample": "5%"}]
        data["routes"] = [{"name": "only", "pools": ["bf16", "fp8"]}]

    assert not any("no route names" in warning for warning in policies.warnings(change))
