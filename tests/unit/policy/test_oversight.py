"""What control alone reads of a policy."""

import hashlib
from typing import Any

import pytest

from gateway.errors import PolicyRejectedError
from gateway.policy.oversight import compile_oversight
from gateway.policy.secret import SecretError

GIVEN = {
    "records": {
        "url": "env:DB",
        "retention": "30d",
        "samples": {
            "keep": "incidents",
            "tenants": {"acme": "off", "beta": "5%"},
            "key": "env:SAMPLES",
            "redact": ["\\d{4}"],
        },
    },
    "notify": [
        {"name": "pager", "url": "https://h/x", "style": "alertmanager", "events": "rollback"},
        {"name": "chat", "url": "env:CHAT", "secret": "env:SIGN"},
    ],
    "operators": [
        {"name": "ann", "token": "env:ANN", "role": "approver"},
        {"name": "bob", "token": "sha256:" + "cd" * 32},
    ],
}


SECRETS = {
    "env:DB": "postgresql://h/records",
    "env:SAMPLES": "samples",
    "env:CHAT": "https://chat.example/hook",
    "env:SIGN": "sign",
    "env:ANN": "ann",
}


def change(data: dict[str, Any]) -> None:
    data.update(GIVEN)
    data["guards"]["false_rollbacks"] = {"at_most": "2 per month"}


def test_oversight_has_its_secrets_resolved(policies: Any) -> None:
    """References become values here and nowhere else; digests stay digests."""
    found = compile_oversight(policies.load(change).document, SECRETS.__getitem__)
    assert (found.database, found.retention_s) == (SECRETS["env:DB"], 2_592_000.0)
    assert (found.samples.keep, found.samples.tenants) == ("incidents", {"acme": "off", "beta": 0.05})
    assert (found.samples.key, found.samples.redact) == ("samples", ("\\d{4}",))
    pager, chat = found.webhooks
    assert (pager.url, pager.style, pager.events, pager.secret) == (
        "https://h/x",
        "alertmanager",
        frozenset({"rollback"}),
        None,
    )
    assert (chat.url, chat.secret) == (SECRETS["env:CHAT"], "sign")
    assert "hold" in chat.events
    ann, bob = found.operators
    assert (ann.token, ann.role) == (hashlib.sha256(b"ann").digest(), "approver")
    assert (bob.token, bob.role) == (bytes.fromhex("cd" * 32), "viewer")
    assert (found.false_rollbacks_per_year, found.series) == (24.0, 1024)


def test_defaults(policies: Any) -> None:
    """Nothing kept, nobody told, one false rollback a year."""
    found = compile_oversight(policies.load().document, lambda reference: "")
    assert (found.database, found.samples.keep, found.webhooks, found.operators) == (None, "off", (), ())
    assert found.false_rollbacks_per_year == 1.0


def test_every_reference_that_is_missing_is_named(policies: Any) -> None:
    """With its place, all at once."""

    def missing(reference: str) -> str:
        raise SecretError(f"{reference}: not set")

    with pytest.raises(PolicyRejectedError) as caught:
        compile_oversight(policies.load(change).document, missing)
    assert [finding.message for finding in caught.value.findings] == [
        "records.url: env:DB: not set",
        "records.samples.key: env:SAMPLES: not set",
        "notify[1].url: env:CHAT: not set",
        "notify[1].secret: env:SIGN: not set",
        "operators[0].token: env:ANN: not set",
    ]


def test_addresses_behind_references_must_lead_somewhere(policies: Any) -> None:
    """A pager's address that nothing can be sent to would be missed in the first incident. Values are not repeated."""
    document = policies.load(change).document
    broken = {**SECRETS, "env:DB": "mysql://s3cret@h", "env:CHAT": "chat.example/s3cret"}
    with pytest.raises(PolicyRejectedError) as caught:
        compile_oversight(document, broken.__getitem__)
    assert [finding.message for finding in caught.value.findings] == [
        "records.url: env:DB: a database URL begins with sqlite:/// or postgresql://",
        "notify[1].url: env:CHAT: a webhook is an http or https URL with a host",
    ]


def test_two_operators_never_have_one_token(policies: Any) -> None:
    """The second would act with the first one's role, and one person could give two approvals."""

    def twice(data: dict[str, Any]) -> None:
        data["operators"] = [{"name": "ann", "token": "env:ANN"}, {"name": "bob", "token": "env:BOB"}]

    with pytest.raises(PolicyRejectedError) as caught:
        compile_oversight(policies.load(twice).document, {"env:ANN": "t", "env:BOB": "t"}.__getitem__)
    assert [finding.message for finding in caught.value.findings] == [
        "operators[1].token: operator ann has the same token"
    ]
