"""What a ``*.test.yaml`` beside a policy may say: requests, and what the policy must make of them."""

# ruff: noqa: RUF012 - pydantic copies mutable defaults for every instance

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StrictBool, model_validator

from gateway.policy.schema.rules import PrivilegeWord
from gateway.policy.schema.values import Many, Name, Strict, Tokens, Word, refuse


def _beside(value: str) -> str:
    if "/" in value or "\\" in value or value.startswith("."):
        refuse("the policy under test lies beside the test", "give the file's name only")
    return value


class Expect(Strict):
    """What must hold for one request. ``pool`` is the first choice, ``pools`` the whole order."""

    null_means_none = True
    pool: Name | None = None
    pools: list[Name] | None = None
    never: Many[Name] | None = Field(default=None, description="pools that must not be among the choices")
    refused: StrictBool | None = Field(default=None, description="true: no pool may serve it; false: some pool must")
    rule: Name | None = None
    rollout: Name | None = None
    constraints: list[Name] | None = Field(default=None, description="exactly those that apply, in any order")
    bucket: str | None = None
    model: str | None = None
    adapter: str | None = None
    task: Word | None = None
    length: Word | None = None
    privilege: PrivilegeWord | None = None
    error: str | None = Field(default=None, description="the code of the answer if the request is not accepted at all")

    @model_validator(mode="after")
    def _some(self) -> "Expect":
        if not self.model_fields_set:
            refuse("nothing is expected here", "name at least a pool, a rule or a bucket")
        for key in ("never", "constraints", "error"):  # the others may be expected to be missing
            if key in self.model_fields_set and getattr(self, key) is None:
                refuse(f"{key} expects nothing", "give it a value, or leave it out")
        return self


class Case(Strict):
    """One request: its body (or path, headers and body), who sends it, and what is expected."""

    name: Annotated[str, Field(min_length=1)]
    tenant: Name | None = Field(default=None, description="left out: anonymous, or the only tenant")
    path: str | None = Field(default=None, description="left out: told by the body's fields")
    headers: dict[str, str] = {}
    body: dict[str, Any]
    tokens: Tokens | None = Field(default=None, description="prompt tokens, instead of counting the body's")
    expect: Expect


class PolicyTests(Strict):
    """A file of tests. ``policy`` names a standalone policy beside it; left out, the folder's policy is tested."""

    version: Literal[1]
    policy: Annotated[str, AfterValidator(_beside)] | None = None
    tests: Annotated[list[Case], Field(min_length=1)]
