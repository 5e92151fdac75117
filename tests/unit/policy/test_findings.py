"""Faults in the words of the person who wrote the policy."""

from pathlib import Path
from typing import Annotated, Any, get_args

import jsonschema
import pytest
import yaml
from pydantic import BaseModel, TypeAdapter, ValidationError

import gateway.policy
from gateway.policy.findings import json_schema, known_keys, schema_text
from gateway.policy.schema import Policy

POLICY = """\
version: 1
models:
  m: {baseline: a}
pools:
  a:
    model: m
    runtime: vlm
    precision: {weights: bf16, activations: bf16, kv_cash: bf16}
    endpoint: http://a
routes:
  - {name: r, when: {context_tokens: {gte: lots}}, pools: [a]}
  - {name: s, pools: 5, when: {}}
"""

SHORT_STAGE = {
    "name": "r",
    "candidate": "int4",
    "stages": [{"weight": "5%", "at_most": {"time": "12h"}}],
    "guards": "errors",
}


def test_every_fault_is_found_at_once_with_place_and_mend(policies: Any) -> None:
    """One reading of the output is enough to repair the file."""
    found = [str(error) for error in policies.refused(p=POLICY)]
    assert found == [
        "p.yaml:5:3: error: pools.a.endpoints is missing",
        "p.yaml:7:14: error: pools.a.runtime: 'vlm' is not one of vllm, sglang, tensorrt-llm, llama.cpp, lightllm, "
        "onnxruntime-genai, transformers, lmdeploy, openai (did you mean 'vllm'?)",
        "p.yaml:8:5: error: pools.a.precision.kv_cache is missing",
        "p.yaml:8:51: error: unknown key pools.a.precision.kv_cash (did you mean 'kv_cache'?)",
        "p.yaml:9:5: error: unknown key pools.a.endpoint (did you mean 'endpoints'?)",
        "p.yaml:11:44: error: routes[0].when.context_tokens.gte: tokens: 4096, 32k (k = 1024), 1m expected",
        "p.yaml:12:22: error: routes[1].pools[0]: text expected (put it in quotes)",
        "p.yaml:12:25: error: routes[1].when: the condition is empty (leave `when` out to match every request)",
    ]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: d.update(pools=[]), "pools: a mapping expected"),
        (
            lambda d: d["pools"]["fp8"].update(timeouts={"idle": 20.5}),
            "5m, 24h, 7d expected (did you mean 20.5s?)",
        ),
        (lambda d: d["guards"].update(false_rollbacks={"at_most": 0.5}), "expected (did you mean 0.5 per year?)"),
        (lambda d: d.update(version=True), "version: 1 expected"),
        (lambda d: d.update(version=1.0), "version: 1 expected"),
        (lambda d: d["constraints"][0].update(when={"tools": {}}), "when.tools: nothing is named here"),
        (lambda d: d["constraints"][0].update(when={"sampling": {}}), "when.sampling: nothing is named here"),
        (lambda d: d["constraints"][0].update(when={"not": []}), "when.not: must not be empty (name at least one)"),
        (lambda d: d["constraints"][0].update(require={}), "require: nothing is named here"),
        (lambda d: d["constraints"][0].update(require={"labels": {}}), "require.labels: must not be empty"),
        (
            lambda d: d["constraints"][0].update(forbid={"compute_capability": {}}),
            "forbid.compute_capability: nothing is named here",
        ),
        (lambda d: d["classify"].update(buckets={"by": ["model", "model"]}), "by: the list names 'model' twice"),
        (lambda d: d.update(gateway={"queue": {"tiers": ["free", "free"]}}), "tiers: the list names 'free' twice"),
        (
            lambda d: d.update(rollouts=[{**SHORT_STAGE, "stages": [{"weight": "5%"}], "control": "60%"}]),
            "more than half would stay",
        ),
        (
            lambda d: d.update(rollouts=[{**SHORT_STAGE, "stages": [{"weight": "50%"}, {"weight": "25%"}]}]),
            "must rise, and 25% follows 50%",
        ),
        (lambda d: d.update(routes={}), "routes: a list expected (begin every item with `- `)"),
        (lambda d: d["tenants"]["acme"].update(keys="env:A"), "keys: a list expected (put brackets around it: [ … ])"),
        (
            lambda d: d["pools"]["fp8"].update(timeouts="30s"),
            "timeouts: a mapping expected (keys here: connect, ",
        ),
        (
            lambda d: d["constraints"][0].update(when={"context_tokens": "32k"}),
            "when.context_tokens: a mapping expected (keys here: gt, gte, lt, lte)",
        ),
        (lambda d: d["constraints"][0].update(description=""), "description: must not be empty"),
        (lambda d: d["routes"][0].update(pools=[{"name": "fp8"}]), "text expected (write one word here, and nothing"),
        (lambda d: d["models"].update(m=5), "models.m: a mapping expected (keys here: adapters, aliases"),
        (lambda d: d.update(routes=[]), "routes: must not be empty"),
        (lambda d: d.update(version=2), "version: 1 expected"),
        (lambda d: d.update(models=None), "models: a mapping expected, but there is nothing"),
        (lambda d: d["pools"].update({"a b": d["pools"]["fp8"]}), "pools.a b: 'a b' cannot be the name of"),
        (lambda d: d["pools"]["fp8"].update(stream_usage="maybe"), "true or false expected"),
        (lambda d: d["tenants"]["acme"].update(trusted="yes"), "true or false expected (write true or false, without"),
        (lambda d: d.update(standalone="on"), "true or false expected (write true or false, without quotes"),
        (lambda d: d.update(gateway={"access_log": 0}), "true or false expected"),
        (lambda d: d["pools"]["fp8"]["precision"].update(group_size=1.5), "without a fraction"),
        (lambda d: d["pools"]["fp8"]["precision"].update(weights="fp9"), "'fp9' is no number format"),
        (
            lambda d: d["guards"].update({"a": {"metric": "ttft", "limit": "2s"}}),
            "guards.a: a guard on a latency needs a",
        ),
        (
            lambda d: d["guards"].update({"a": {"metric": "ttft", "limit": "2%", "quantile": "99%"}}),
            "guards.a.limit: a dur",
        ),
        (lambda d: d["guards"].update({"a": {"metric": "error_rate", "limit": "2s"}}), "guards.a.limit: a share"),
        (lambda d: d["guards"].update({"a": {"metric": "agreement", "limit": "2%"}}), "against the baseline only"),
        (lambda d: d["guards"].update({"a": {"metric": "error_rate"}}), "has no bound"),
        (lambda d: d["guards"].update({"a": {"metric": "check", "limit": "1%"}}), "belong together"),
        (lambda d: d["guards"].update({"false_rollbacks": {"at_most": "often"}}), "a frequency such as"),
        (lambda d: d["guards"].update({"no good": {"metric": "error_rate", "limit": "1%"}}), "cannot be the name"),
        (lambda d: d["routes"][0].update(when={"turns": {"gt": 3, "lt": 3}}), "no number lies in this range"),
        (lambda d: d["routes"][0].update(when={"turns": {}}), "a range needs at least one of"),
        (lambda d: d["constraints"][0].pop("require"), "demands nothing"),
        (lambda d: d["constraints"][0].update(require={}), "nothing is named here"),
        (lambda d: d["classify"].update(lengths={"a": "1k", "b": "1k"}), "different upper bounds"),
        (lambda d: d["classify"].update(over="short"), "'short' is one of the lengths"),
        (lambda d: d["classify"]["tasks"].append({"task": "x"}), "looks at nothing"),
        (lambda d: d["classify"]["tasks"].append({"task": "x", "text": "(?=a)"}), "not a valid RE2 pattern"),
        (lambda d: d["pools"]["fp8"].update(endpoints=["ftp://x"]), "http or https URL"),
        (lambda d: d["pools"]["fp8"].update(endpoints=["http://u:secret@x"]), "carries no credentials"),
        (lambda d: d["pools"]["fp8"].update(endpoints=["http://x:99999"]), "from 1 to 65535"),
        (lambda d: d["pools"]["fp8"].update(endpoints=["http://x?a=1"]), "without query"),
        (lambda d: d["pools"]["fp8"].update(endpoints=["http://x", "http://x/v1/"]), "lists an endpoint twice"),
        (
            lambda d: d["pools"]["fp8"].update(endpoints=["http://x/a/v1/chat/completions"]),
            "leave /v1/chat/completions out",
        ),
        (lambda d: d["pools"]["fp8"].update(adapters=["legal", 5]), "an adapter's name is text"),
        (lambda d: d["tenants"]["acme"].update(limits={"requests_per_minute": 0.5}), "must be at least 1"),
        (lambda d: d.update(gateway={"cors_origins": ["https://app.example/"]}), "(write it as https://app.example"),
        (lambda d: d.update(gateway={"cors_origins": ["App.example"]}), "what a browser sends"),
        (lambda d: d["routes"][0].update(when={"api": "models"}), "'models' is not one of chat, completions"),
        (lambda d: d["routes"][0].update(when={"tools": {"use": "loops"}}), "(did you mean 'loop'?)"),
        (lambda d: d.update(rollouts=[SHORT_STAGE]), "at_most.time is over before at_least.time (24h)"),
        (lambda d: d.update(records={"url": "postgresql://u:hunter2@h/db"}), "never written into a policy"),
        (lambda d: d.update(records={"samples": {"keep": "5%"}}), "kept encrypted only"),
        (lambda d: d.update(notify=[{"name": "n", "url": "mailto:x"}]), "a webhook is"),
    ],
)
def test_a_fault_is_said_in_words(change: Any, said: str, policies: Any) -> None:
    """Each rule of the schema has its sentence."""
    assert said in str(policies.error(change))


@pytest.mark.parametrize(
    ("change", "key"),
    [
        (lambda d: d["constraints"][0]["require"].update(kv_cache=None), "constraints[0].require.kv_cache"),
        (lambda d: d["constraints"][0].update(when=None), "constraints[0].when"),
        (lambda d: d["routes"][0]["when"].update(task=None), "routes[0].when.task"),
        (lambda d: d["routes"][0].update(when={"turns": {"gte": None, "lt": 5}}), "routes[0].when.turns.gte"),
        (lambda d: d["tenants"]["acme"].update(models=None), "tenants.acme.models"),
        (lambda d: d["pools"]["fp8"].update(limits={"inflight": None}), "pools.fp8.limits.inflight"),
    ],
)
def test_a_key_with_nothing_behind_it_is_refused(change: Any, key: str, policies: Any) -> None:
    """Read as absent, it would take a demand away, or a bound, and nobody would know."""
    error = policies.error(change)
    assert (error.message, error.mend) == (
        f"{key}: there is nothing here",
        "give it a value, or leave the key out",
    )


def test_no_secret_is_repeated(policies: Any) -> None:
    """Keys, tokens and passwords that someone wrote into a policy do not reach a log through its error."""

    def leak(data: dict[str, Any]) -> None:
        data["tenants"]["acme"]["keys"] = ["hunter2"]
        data["pools"]["fp8"]["api_key"] = "hunter2"
        data["records"] = {"url": "postgresql://u:hunter2@h/db"}
        data["pools"]["bf16"]["endpoints"] = ["http://u:hunter2@h"]
        data["notify"] = [{"name": "n", "url": "https://u:hunter2@h", "secret": "hunter2"}]
        data["operators"] = [{"name": "o", "token": "hunter2"}]

    found = policies.errors(leak)
    assert len(found) == 7
    assert "hunter2" not in "\n".join(map(str, found))


def test_the_schema_for_editors_is_current() -> None:
    """``gateway/policy/schema.json`` is what the models say. ``schema_text`` writes it anew."""
    file = Path(gateway.policy.__file__).with_name("schema.json")
    assert file.read_text() == schema_text(), "write gateway.policy.findings.schema_text() to it"


def test_the_schema_accepts_what_the_models_accept(policies: Any) -> None:
    """Editors do not mark a good policy as wrong, and mark an unknown key."""
    validator = jsonschema.Draft202012Validator(json_schema())
    assert not list(validator.iter_errors(policies.data()))
    assert not list(validator.iter_errors(yaml.safe_load(Path("routing_policies/demo.yaml").read_text())))
    short = {"tools": "present", "structured": "absent", "not": {"task": "chat"}, "images": True, "adapter": "legal"}
    assert not list(validator.iter_errors(policies.data(lambda data: data["routes"][0].update(when=short))))
    assert not list(validator.iter_errors(policies.data(lambda data: data["pools"]["fp8"].update(adapters=["legal"]))))
    assert list(validator.iter_errors(policies.data(lambda data: data.update(pooles={}))))


def test_known_keys_follow_references_and_lists() -> None:
    """Suggestions come from the place the key stands in."""
    assert known_keys(Policy, ("routes", 0, "when", "tools")) == ["privilege", "use"]
    assert "critical" in known_keys(Policy, ("guards", "any-name"))
    assert known_keys(Policy, ("nowhere", "at", "all")) == []


def test_no_switch_of_the_language_takes_a_word_or_a_number() -> None:
    """YAML 1.2 knows `true` and `false` alone; a key that took `yes` or `1` would make `no` and `off` look as if they
    meant something everywhere."""
    switches = 0
    for model in {Policy, *_models(Policy)}:
        for name, field in model.model_fields.items():
            adapter = TypeAdapter(Annotated[field.annotation, *(field.metadata or [None])])
            if {"type": "boolean"} in (shape := adapter.json_schema()).get("anyOf", [{"type": shape.get("type")}]):
                switches += 1
                taken = [word for word in ("yes", "no", "on", "off", "true", 1, 0) if _takes(adapter, word)]
                assert not taken, f"{model.__name__}.{name}"
    assert switches > 10


def _takes(adapter: TypeAdapter[Any], value: object) -> bool:
    try:
        adapter.validate_python(value)
    except ValidationError:
        return False
    return True


def _models(model: type[BaseModel]) -> set[type[BaseModel]]:
    """Every model below one."""
    found: set[type[BaseModel]] = set()
    todo: list[Any] = [field.annotation for field in model.model_fields.values()]
    while todo:
        kind = todo.pop()
        todo += get_args(kind)
        if isinstance(kind, type) and issubclass(kind, BaseModel) and kind not in found:
            found.add(kind)
            todo += [field.annotation for field in kind.model_fields.values()]
    return found
