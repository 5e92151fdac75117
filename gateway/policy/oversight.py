"""The part of a policy that control alone needs, compiled.

Records, samples, webhooks, operators, the budget of rollbacks.

Apart from ``compile`` because secrets are resolved in it that no worker should hold. Called by control when a policy
comes into force.
"""

import hashlib
from collections.abc import Callable

from gateway.errors import PolicyRejectedError
from gateway.model.proving import Operator, Oversight, Samples, Webhook
from gateway.policy.compile import DOCUMENT, parse_document
from gateway.policy.schema import Policy
from gateway.policy.schema.urls import database_fault, webhook_fault
from gateway.policy.secret import Secret, SecretReader


def compile_oversight(document: bytes, secret: Secret) -> Oversight:
    """Raises ``PolicyRejectedError`` naming every reference that cannot be resolved."""
    policy = parse_document(document)
    reader = _Reader(secret, DOCUMENT)
    found = Oversight(
        database=reader.address(policy.records.url, "records.url", database_fault),
        retention_s=policy.records.retention,
        samples=_samples(policy, reader),
        webhooks=tuple(_webhooks(policy, reader)),
        operators=tuple(_operators(policy, reader)),
        false_rollbacks_per_year=policy.guards.false_rollbacks.at_most,
        series=policy.guards.false_rollbacks.series,
    )
    if reader.findings:
        raise PolicyRejectedError(reader.findings)
    return found


class _Reader(SecretReader):
    """Reads what may be a reference or the thing itself."""

    def value(self, written: str | None, where: str) -> str | None:
        """A reference's secret; anything else as it is written."""
        if written is None or not written.startswith(("env:", "file:")):
            return written
        return self.read(written, where)

    def address(self, written: str | None, where: str, fault: Callable[[str], str]) -> str | None:
        """As ``value``, of an address that can be used: one that cannot would be missed only when it is needed."""
        found = self.value(written, where)
        if found is not None and (why := fault(found)):
            self.refuse(where, f"{written}: {why}", "correct what it holds where the gateway runs")
        return found


def _samples(policy: Policy, reader: _Reader) -> Samples:
    samples = policy.records.samples
    return Samples(
        keep=samples.keep,
        tenants=dict(samples.tenants),
        redact=tuple(samples.redact),
        most_bytes=samples.most,
        retention_s=samples.retention,
        key=reader.value(samples.key, "records.samples.key"),
    )


def _webhooks(policy: Policy, reader: _Reader) -> list[Webhook]:
    found = []
    for index, webhook in enumerate(policy.notify):
        url = reader.address(webhook.url, f"notify[{index}].url", webhook_fault)
        secret = reader.value(webhook.secret, f"notify[{index}].secret")
        events = frozenset(webhook.events)
        found.append(Webhook(webhook.name, url or "", webhook.style, events, secret, webhook.timeout))
    return found


def _operators(policy: Policy, reader: _Reader) -> list[Operator]:
    found: list[Operator] = []
    holders: dict[bytes, str] = {}
    for index, operator in enumerate(policy.operators):
        token, where = operator.token, f"operators[{index}].token"
        if token.startswith("sha256:"):
            digest = bytes.fromhex(token.removeprefix("sha256:"))
        else:
            value = reader.value(token, where)
            if value is None:
                continue
            digest = hashlib.sha256(value.encode()).digest()
        if (holder := holders.setdefault(digest, operator.name)) != operator.name:
            reader.refuse(where, f"operator {holder} has the same token", "give each person their own")
        found.append(Operator(operator.name, digest, operator.role))
    return found
