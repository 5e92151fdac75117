"""What is kept and who is told: evidence, records and samples, webhooks, operators. Read by control alone."""

# ruff: noqa: RUF012 - pydantic copies mutable defaults for every instance

import re
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, model_validator

from gateway.policy.schema.pattern import Pattern
from gateway.policy.schema.values import (
    Among,
    Count,
    Duration,
    KeyReference,
    Many,
    Name,
    PositiveDuration,
    SecretReference,
    Share,
    Size,
    Strict,
    read_share,
    refuse,
)

EVENTS = ("rollback", "promotion", "hold", "approval_needed", "incident", "reload_failed", "quarantine")
_REFERENCE = re.compile(r"(?:env|file):.+")


def _keep(value: object) -> str | float:
    if value in ("off", "incidents"):
        return str(value)
    if value is False:
        return "off"
    return read_share(value)


def _database(value: str) -> str:
    if _REFERENCE.fullmatch(value):
        return value
    scheme, separator, _ = value.partition("://")
    if not separator or scheme.split("+")[0] not in ("sqlite", "postgresql"):
        refuse("a database URL begins with sqlite:/// or postgresql://", "or refer to it as env:NAME")
    try:
        password = urlsplit(value).password
    except ValueError:
        refuse("not a database URL")
    if password is not None:
        refuse("a secret is never written into a policy", "keep the whole URL outside and refer to it as env:NAME")
    return value


def _webhook(value: str) -> str:
    if _REFERENCE.fullmatch(value):
        return value
    try:
        url = urlsplit(value)
        credentials = url.username is not None or url.password is not None
    except ValueError:
        refuse("not a URL")
    if url.scheme not in ("http", "https") or not url.hostname:
        refuse("a webhook is an http or https URL, or a reference env:NAME")
    if credentials:
        refuse("a secret is never written into a policy", "keep the whole URL outside and refer to it as env:NAME")
    return value


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

    url: Annotated[str, AfterValidator(_database)] | None = None
    retention: PositiveDuration = 7_776_000.0
    samples: Samples = Samples()


class Webhook(Strict):
    """Who is told, how, and of what."""

    name: Name
    url: Annotated[str, AfterValidator(_webhook)]
    style: Annotated[str, Among(("generic", "slack", "alertmanager"))] = "generic"
    events: Many[Annotated[str, Among(EVENTS)]] = list(EVENTS)
    secret: SecretReference | None = Field(default=None, description="signs the body")
    timeout: Duration = 5.0


class Operator(Strict):
    """A person or machine that may use the admin API."""

    name: Name
    token: KeyReference
    role: Annotated[str, Among(("viewer", "operator", "approver"))] = "viewer"
