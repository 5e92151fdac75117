"""The whole policy set, as one value."""

# ruff: noqa: RUF012 - pydantic copies mutable defaults for every instance

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, StrictBool

from gateway.policy.schema.oversight import Evidence, Operator, Records, Webhook
from gateway.policy.schema.proving import Guards, Rollout, Shadow
from gateway.policy.schema.rules import Classify, Constraint, Route
from gateway.policy.schema.serving import Gateway, Model, Pool, Tenant
from gateway.policy.schema.shown import IN_WORDS
from gateway.policy.schema.values import Name, ServedName, Strict, refuse


def _version(value: object) -> object:
    """``true`` and ``1.0`` are equal to 1, and mean something else."""
    if type(value) is not int or value != 1:
        refuse("1 expected: there is no other version of the policy language", "write version: 1, without quotes")
    return value


class Policy(Strict):
    """A complete, well-formed policy. That its names and rules make sense together is checked elsewhere."""

    version: Annotated[Literal[1], BeforeValidator(_version)]
    standalone: StrictBool = Field(
        default=False, description="complete by itself: not merged when its folder is loaded"
    )
    models: Annotated[dict[ServedName, Model], Field(min_length=1)]
    pools: Annotated[dict[Name, Pool], Field(min_length=1)]
    tenants: dict[Name, Tenant] = {}
    classify: Classify = Classify()
    constraints: list[Constraint] = []
    routes: Annotated[list[Route], Field(min_length=1)]
    shadow: list[Shadow] = []
    rollouts: list[Rollout] = []
    guards: Guards = Guards()
    evidence: Evidence = Evidence()
    records: Records = Records()
    notify: list[Webhook] = []
    operators: list[Operator] = []
    gateway: Gateway = Gateway()

    def canonical(self) -> dict[str, Any]:
        """The normal form as plain data: what differs from the defaults, under the keys of the language."""
        return self._dumped(None)

    def in_words(self) -> dict[str, Any]:
        """The same for people: numbers have the units that a file needs, so that it reads back as this policy."""
        return self._dumped(IN_WORDS)

    def _dumped(self, context: str | None) -> dict[str, Any]:
        data = self.model_dump(
            mode="json", by_alias=True, exclude_defaults=True, exclude={"standalone"}, context=context
        )
        return data | {"version": 1}
