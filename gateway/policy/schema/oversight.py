"""What is kept and who is told: evidence, records and samples, webhooks, operators. Read by control alone."""

# ruff: noqa: RUF012 - pydantic copies mutable defaults for every instance

from typing import Annotated

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from gateway.policy.schema.pattern import Pattern
from gateway.policy.schema.secrets import KeyReference, SecretReference
from gateway.policy.schema.urls import DatabaseUrl, WebhookUrl
from gateway.policy.schema.values import (
    Among,
    Count,
    Many,
    Name,
    PositiveDuration,
    Share,
    Size,
    Strict,
    read_share,
    refuse,
)

EVENTS = ("rollback", "promotion", "hold", "approval_needed", "incident", "reload_failed", "quarantine")


def _keep(value: object) -> str | float:
    if value in ("off", "incidents"):
        return str(value)
    if value is False:
        return "off"
    return read_share(value)


Keep = Annotated[
    str | float,
    BeforeValidator(_keep),
    WithJsonSchema({"type": ["string", "number"], "description": "off, incidents, or 5%"}),
]


class Checked(Strict):
    """Shares of answers that are checked without a reference."""

    structured: Share = 1.0
    tools: Share = 1.0
    other: Share = 0.02


class Remember(Strict):
    """How long and how many tool calls wait for the result that tells whether they were good."""

    time: PositiveDuration = 1800.0
    most: Count = 100_000


class Evidence(Strict):
    """Quality and latency per bucket and pool."""

    check: Checked = Checked()
    remember: Remember = Remember()
    answer_bytes: Size = Field(default=256 * 1024, description="of one answer, kept in memory until it is checked")
    refusals: list[Pattern] = Field(default=[], description="further RE2 patterns that tell a refusal")


class Samples(Strict):
    """Texts kept for replay: encrypted, redacted, bounded. A tenant's `capture: false` wins."""

    keep: Keep = "off"
    tenants: dict[Name, Keep] = {}
    redact: list[Pattern] = []
    most: Size = 64 * 1024
    retention: PositiveDuration = 604_800.0
    key: SecretReference | None = None

    @model_validator(mode="after")
    def _encrypted(self) -> "Samples":
        if self.key is None and any(keep != "off" for keep in (self.keep, *self.tenants.values())):
            refuse("samples are kept encrypted only", "give them a key: env:NAME")
        return self


class Records(Strict):
    """One row per request, without text."""

    url: DatabaseUrl | None = None
    retention: PositiveDuration = 7_776_000.0
    samples: Samples = Samples()


class Webhook(Strict):
    """Who is told, how, and of what."""

    name: Name
    url: WebhookUrl
    style: Annotated[str, Among(("generic", "slack", "alertmanager"))] = "generic"
    events: Many[Annotated[str, Among(EVENTS)]] = list(EVENTS)
    secret: SecretReference | None = Field(default=None, description="signs the body")
    timeout: PositiveDuration = 5.0


class Operator(Strict):
    """A person or machine that may use the admin API."""

    name: Name
    token: KeyReference
    role: Annotated[str, Among(("viewer", "operator", "approver"))] = "viewer"
