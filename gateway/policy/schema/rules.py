"""How requests are told apart and where they go: conditions, classification, constraints, routes."""

# ruff: noqa: RUF012 - pydantic copies mutable defaults for every instance

from typing import Annotated, Any, Generic, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, StrictBool, model_validator

from gateway.model.enums import Api, Privilege, Structured, ToolUse
from gateway.model.table import MARKS
from gateway.policy.schema.pattern import Pattern
from gateway.policy.schema.serving import Capability, Device, Format, RecordValue, Runtime, Text
from gateway.policy.schema.values import (
    Among,
    Count,
    Many,
    Name,
    OrAlso,
    OrSingle,
    Presence,
    ServedName,
    SomeKeys,
    Strict,
    Tokens,
    Word,
    refuse,
)

N = TypeVar("N", int, float)
ApiWord = Annotated[str, Among(api for api in Api if api not in (Api.MODELS, Api.OTHER))]  # what rules are asked about
PrivilegeWord = Annotated[str, Among(Privilege)]
ToolUseWord = Annotated[str, Among(ToolUse)]
StructuredWord = Annotated[str, Among(Structured)]
BUCKET_FIELDS = (
    "api",
    "model",
    "adapter",
    "length",
    "task",
    "tools",
    "tool_use",
    "structured",
    "tenant",
    "tier",
    "stream",
)


class Range(Strict, Generic[N]):
    """Bounds of a number; all that are given hold."""

    gt: N | None = None
    gte: N | None = None
    lt: N | None = None
    lte: N | None = None

    @model_validator(mode="after")
    def _some(self) -> "Range[N]":
        lows = [bound for bound in (self.gt, self.gte) if bound is not None]
        highs = [bound for bound in (self.lt, self.lte) if bound is not None]
        if not lows and not highs:
            refuse("a range needs at least one of gt, gte, lt, lte")
        if (
            lows
            and highs
            and (max(lows) > min(highs) or (max(lows) == min(highs) and (self.gt in highs or self.lt in lows)))
        ):
            refuse("no number lies in this range")
        return self


TokenRange = Range[Tokens]
CountRange = Range[Annotated[int, Field(ge=0)]]
FloatRange = Range[Annotated[float, Field(ge=0, allow_inf_nan=False)]]


class Tools(SomeKeys):
    """How a request uses tools, and the highest privilege among those it declares."""

    use: Many[ToolUseWord] | None = None
    privilege: Many[PrivilegeWord] | None = None


class Sampling(SomeKeys):
    """Sampling settings. A temperature or top_p that is not given counts as 1, an n as 1."""

    seed: Presence | None = None
    temperature: FloatRange | None = None
    top_p: FloatRange | None = None
    n: CountRange | None = None
    logprobs: Presence | None = None


_PRESENT_OR_ABSENT = {"enum": ["present", "absent"]}


def _tools_word(value: object) -> object:
    words = {"present": [use.value for use in ToolUse if use is not ToolUse.NONE], "absent": [ToolUse.NONE.value]}
    return {"use": words[value]} if isinstance(value, str) and value in words else value


def _structured_word(value: object) -> object:
    words = {"present": [kind.value for kind in Structured if kind is not Structured.NONE], "absent": ["none"]}
    return words[value] if isinstance(value, str) and value in words else value


def _list_of_conditions(value: object) -> object:
    return [value] if isinstance(value, dict) else value


class When(Strict):
    """A condition on a request: every key that is given holds; a list means any of; `not` must not hold."""

    api: Many[ApiWord] | None = None
    model: Many[ServedName] | None = None
    adapter: Many[ServedName] | None = Field(default=None, description="names, or `present`, or `absent`")
    task: Many[Word] | None = None
    length: Many[Word] | None = None
    tenant: Many[Name] | None = None
    tier: Many[Word] | None = None
    tools: Annotated[Tools | None, BeforeValidator(_tools_word), OrAlso(_PRESENT_OR_ABSENT)] = None
    structured: Annotated[
        Many[StructuredWord] | None, BeforeValidator(_structured_word), OrAlso(_PRESENT_OR_ABSENT)
    ] = None
    sampling: Sampling | None = None
    context_tokens: TokenRange | None = Field(default=None, description="prompt + reserved output tokens")
    prompt_tokens: TokenRange | None = None
    turns: CountRange | None = None
    stream: StrictBool | None = None
    images: Presence | None = None
    not_: Annotated[
        Annotated[list["When"], Field(min_length=1), OrSingle()] | None,
        BeforeValidator(_list_of_conditions),
        Field(alias="not", description="conditions that must not hold"),
    ] = None

    @model_validator(mode="after")
    def _not_empty(self) -> "When":
        if not self.model_fields_set:
            refuse("the condition is empty", "leave `when` out to match every request")
        return self


class Capabilities(SomeKeys):
    """Bounds of a CUDA compute capability."""

    gte: Capability | None = None
    lt: Capability | None = None


class PoolTraits(SomeKeys):
    """Traits of a pool that a constraint can ask for or forbid."""

    pool: Many[Name] | None = None
    runtime: Many[Runtime] | None = None
    weights: Many[Format] | None = None
    activations: Many[Format] | None = None
    kv_cache: Many[Format] | None = None
    method: Many[Word] | None = None
    dynamic_scales: StrictBool | None = None
    emulated: StrictBool | None = None
    gpu: Many[Text] | None = None
    device: Device | None = None
    compute_capability: Capabilities | None = None
    labels: Annotated[dict[Name, Many[RecordValue]], Field(min_length=1)] | None = None


class Unless(Strict):
    """The standing evidence that releases a constraint for a bucket and pool."""

    guard: Name


class Constraint(Strict):
    """Narrows the pools of every request it matches. Every matching constraint applies."""

    name: Name
    description: Text | None = None
    when: When | None = None
    require: PoolTraits | None = Field(default=None, description="a pool must have every trait")
    forbid: PoolTraits | None = Field(default=None, description="a pool that has any of these traits is out")
    unless_measured: Unless | None = None
    refuse: StrictBool = Field(default=False, description="requests that no pool may serve are meant to be refused")

    @model_validator(mode="after")
    def _some(self) -> "Constraint":
        if self.require is None and self.forbid is None:
            refuse(f"constraint {self.name} demands nothing", "give it `require` or `forbid`")
        return self


class Route(Strict):
    """Pools in order of preference, which is the failover order too. The first route that matches counts."""

    name: Name
    description: Text | None = None
    when: When | None = None
    pools: Many[Name]


class Task(Strict):
    """A request has this task if any pattern or mark is found in it (and it came by one of the APIs, if given)."""

    task: Word
    text: Many[Pattern] | None = Field(default=None, description="RE2 patterns searched in the last user message")
    system: Many[Pattern] | None = Field(default=None, description="RE2 patterns searched in the system text")
    marks: Many[Annotated[str, Among(MARKS)]] | None = None
    api: Many[ApiWord] | None = None

    @model_validator(mode="after")
    def _some(self) -> "Task":
        if not (self.text or self.system or self.marks or self.api):
            refuse("the task rule looks at nothing", "give it text, system, marks or api")
        return self


class ToolNames(Strict):
    """Privilege of tools by their names; `*` and `?` are wildcards, case does not count."""

    privileged: list[Text] = Field(default=[], description="high privilege")
    harmless: list[Text] = Field(default=[], description="counts as no privilege, unless also privileged")
    grants: dict[Name, list[Text]] = Field(
        default={}, description="tools that are privileged for tenants with this grant"
    )


class Buckets(Strict):
    """The labels under which quality and latency are kept."""

    by: Many[Annotated[str, Among(BUCKET_FIELDS)]] = [
        "model",
        "length",
        "task",
        "tools",
        "adapter",
        "tier",
    ]
    most: Count = 200


def _ascending(lengths: dict[str, int]) -> dict[str, int]:
    if not lengths:
        refuse("at least one length class is needed")
    if len(set(lengths.values())) != len(lengths) or min(lengths.values()) < 1:
        refuse("length classes need different upper bounds above 0")
    return dict(sorted(lengths.items(), key=lambda item: item[1]))


class Classify(Strict):
    """How requests get their length, task, privilege and bucket."""

    lengths: Annotated[dict[Word, Tokens], AfterValidator(_ascending)] = {
        "short": 2048,
        "medium": 8192,
        "long": 32_768,
        "huge": 131_072,
    }
    over: Word = Field(default="over", description="the class above the last bound")
    output_tokens: Tokens = Field(default=512, description="reserved when a request sets no limit")
    tasks: list[Task] = []
    default_task: Word = "chat"
    hints: Many[Word] | None = Field(default=None, description="tasks a trusted hint may name; left out: all")
    tools: ToolNames = ToolNames()
    buckets: Buckets = Buckets()

    @model_validator(mode="after")
    def _over_is_new(self) -> "Classify":
        if self.over in self.lengths:
            refuse(f"`over` names the class above the last bound, but {self.over!r} is one of the lengths")
        return self

    def task_words(self) -> list[str]:
        """Every task a request can have, in the order of the file."""
        words: dict[str, Any] = dict.fromkeys(rule.task for rule in self.tasks)
        return list({**words, self.default_task: None, **dict.fromkeys(self.hints or [])})

    def length_words(self) -> list[str]:
        """Every length class, ascending."""
        return [*self.lengths, self.over]
