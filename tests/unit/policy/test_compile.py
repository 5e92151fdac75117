"""The canonical document as a table."""

import hashlib
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.core.decide import decide
from gateway.errors import PolicyRejectedError
from gateway.model.table import Limits, Timeouts
from gateway.policy.compile import compile_table, table_of
from gateway.policy.schema import Policy
from gateway.policy.secret import SecretError, unresolved


def test_a_table_holds_what_the_policy_says(policies: Any) -> None:
    """Round trip of models, pools, tenants and settings."""

    def change(data: dict[str, Any]) -> None:
        data["pools"]["fp8"] |= {
            "timeouts": {"first_byte": "30s", "total": "10m"},
            "limits": {"inflight": 8},
            "upstream_model": "org/qwen",
            "api_key": "env:POOL",
            "adapters": {"legal": "legal-v2"},
            "record": {"driver": 580.1},
            "attestation": "warn",
        }
        data["tenants"]["acme"] |= {
            "limits": {"tokens_per_minute": "4e6", "inflight": 3},
            "shadow": False,
            "models": "qwen",
        }
        data["gateway"] = {"max_body": "1MiB", "queue": {"wait": "2s"}, "response_headers": False}

    document = policies.load(change).document
    table = compile_table(document, 7, {"tenant:acme": 4, "endpoint:bf16/1": 9}, lambda reference: f"<{reference}>")
    assert (table.generation, table.digest) == (7, hashlib.sha256(document).hexdigest())
    fp8, bf16 = table.pools["fp8"], table.pools["bf16"]
    assert fp8.timeouts == Timeouts(3.0, 30.0, 0.5, 60.0, 600.0)
    assert (fp8.limits, fp8.upstream_model, fp8.authorization) == (Limits(inflight=8), "org/qwen", b"Bearer <env:POOL>")
    assert (fp8.adapters, fp8.record, fp8.attestation) == ({"legal": "legal-v2"}, {"driver": "580.1"}, "warn")
    assert (fp8.device, fp8.gpu, fp8.compute_capability) == ("gpu", "H100", 9.0)
    assert [(end.name, end.host, end.port, end.slot) for end in bf16.endpoints] == [
        ("bf16/0", "bf16-0", 8000, -1),
        ("bf16/1", "bf16-1", 8000, 9),
    ]
    assert table.pools["int4"].endpoints[0].base_path == ""  # /v1 belongs to the paths of the API
    assert bf16.adapters == {"legal": "legal"}
    acme = table.tenants["acme"]
    assert (acme.slot, acme.tier, acme.grants, acme.shadow) == (4, "gold", frozenset({"payments"}), False)
    assert acme.limits == Limits(None, 4e6, 3)
    assert acme.models == frozenset({"qwen"})
    assert table.keys[hashlib.sha256(b"<env:ACME_KEY>").digest()] == "acme"
    assert table.keys[bytes.fromhex("ab" * 32)] == "beta"
    assert table.settings.max_body_bytes == 1 << 20
    assert (table.settings.queue_s, table.settings.response_headers) == (2.0, False)
    assert table.models["qwen"].tokenizer == ("tiktoken", "cl100k_base")


def test_names_are_all_that_clients_may_say(policies: Any) -> None:
    """Models, aliases, adapters, and base:adapter for every name of the base."""
    assert policies.table().names == {
        "qwen": ("qwen", None),
        "gpt-4o": ("qwen", None),
        "legal": ("qwen", "legal"),
        "qwen:legal": ("qwen", "legal"),
        "gpt-4o:legal": ("qwen", "legal"),
    }


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("https://h", ("https", "h", 443, "")),
        ("http://h/", ("http", "h", 80, "")),
        ("http://[::1]:81/base/v1", ("http", "::1", 81, "/base")),
    ],
)
def test_endpoints_are_taken_apart(url: str, parts: tuple[Any, ...], policies: Any) -> None:
    """Default ports, addresses in brackets, base paths; a trailing /v1 is not doubled."""
    endpoint = policies.table(lambda data: data["pools"]["fp8"].update(endpoints=[url])).pools["fp8"].endpoints[0]
    assert (endpoint.scheme, endpoint.host, endpoint.port, endpoint.base_path) == parts


def test_tokenizers(policies: Any) -> None:
    """Each way to count has its pair."""
    for written, pair in (({"bytes": True}, ("bytes", "")), ({"huggingface": "t.json"}, ("huggingface", "t.json"))):
        table = policies.table(lambda data, written=written: data["models"]["qwen"].update(tokenizer=written))
        assert table.models["qwen"].tokenizer == pair


def test_anonymous_is_served_only_if_allowed(policies: Any) -> None:
    """``allow: false`` leaves no trace in the table."""
    assert policies.table().anonymous is not None
    closed = policies.table(lambda data: data["tenants"]["anonymous"].update(allow=False))
    assert closed.anonymous is None
    assert "anonymous" not in closed.tenants


def test_scales_that_a_pool_does_not_declare_count_as_dynamic(policies: Any) -> None:
    """Where determinism is asked for, silence is no promise."""
    table = policies.table(lambda data: data["pools"]["fp8"]["precision"].pop("dynamic_scales"))
    assert table.pools["fp8"].precision.dynamic_scales
    assert not table.pools["bf16"].precision.dynamic_scales


def test_secrets_that_cannot_be_resolved_are_all_named(policies: Any) -> None:
    """Each reference with its place in the policy, never a value."""

    def missing(reference: str) -> str:
        raise SecretError(f"{reference}: the environment variable is not set")

    document = policies.load(lambda data: data["pools"]["fp8"].update(api_key="env:POOL")).document
    with pytest.raises(PolicyRejectedError) as caught:
        compile_table(document, 1, {}, missing)
    assert [finding.message for finding in caught.value.findings] == [
        "pools.fp8.api_key: env:POOL: the environment variable is not set",
        "tenants.acme.keys[0]: env:ACME_KEY: the environment variable is not set",
    ]


def test_two_tenants_with_one_key_are_refused(policies: Any) -> None:
    """Also if the key hides behind different references."""
    document = policies.load(lambda data: data["tenants"]["beta"].update(keys=["env:BETA"])).document
    with pytest.raises(PolicyRejectedError, match="tenant acme has the same key"):
        compile_table(document, 1, {}, lambda reference: "same")


def test_a_document_that_is_none_is_refused() -> None:
    """A corrupt snapshot does not become a table."""
    for document in (b"", b"{}", b"\xff", b"[1]"):
        with pytest.raises(PolicyRejectedError):
            compile_table(document, 1, {}, unresolved)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_constraints_can_only_narrow(data: Any, policies: Any, strategies: Any) -> None:
    """With more constraints a request gets a part of the pools it got before, in the same order."""
    rules = data.draw(strategies["rules"])
    profile = data.draw(strategies["profiles"])
    fewer = data.draw(st.sets(st.sampled_from(rules["constraints"] or [None]).map(lambda rule: rule and rule["name"])))
    kept = [rule for rule in rules["constraints"] if rule["name"] not in fewer]

    def decision(constraints: list[Any]) -> Any:
        data = policies.data(lambda base: base.update({**rules, "constraints": constraints}))
        return decide(table_of(Policy.model_validate(data), "", 1, {}, unresolved), profile)

    narrow, wide = decision(rules["constraints"]), decision(kept)
    assert narrow.rule == wide.rule
    assert [pool for pool in wide.pools if pool in narrow.pools] == list(narrow.pools)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_nothing_bypasses_a_constraint(data: Any, policies: Any, strategies: Any) -> None:
    """Every pool of a decision serves model and adapter, has room, and is permitted by every matching constraint."""
    policy = Policy.model_validate(policies.data(lambda base: base.update(data.draw(strategies["rules"]))))
    table = table_of(policy, "", 1, {}, unresolved)
    profile = data.draw(strategies["profiles"])
    decision = decide(table, profile)
    for name in decision.pools:
        pool = table.pools[name]
        assert pool.model == profile.model
        assert profile.context_tokens <= min(pool.context_window or 131_072, 131_072)
        assert profile.adapter is None or pool.precision.weights in ("bf16", "fp8")
        assert all(constraint.permits(pool) for constraint in table.constraints if constraint.matches(profile))
    route = next((route for route in table.routes if route.name == decision.rule), None)
    named = {*decision.pools, *(exclusion.pool for exclusion in decision.exclusions)}
    assert named == ({*route.pools} if route else set())
