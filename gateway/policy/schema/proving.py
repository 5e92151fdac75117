"""How a candidate pool proves itself: shadow traffic, rollouts in stages, and the guards that judge both."""

import math
import re
from itertools import pairwise
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SerializationInfo,
    SerializerFunctionWrapHandler,
    StrictBool,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_serializer,
    model_validator,
)

from gateway.policy.schema.frequency import Frequency
from gateway.policy.schema.rules import ApiWord, PrivilegeWord, StructuredWord, ToolUseWord, When
from gateway.policy.schema.shown import duration_shown
from gateway.policy.schema.values import (
    Among,
    Count,
    CountFromZero,
    Duration,
    Many,
    Name,
    PositiveDuration,
    PositiveShare,
    Rate,
    Ratio,
    ServedName,
    Share,
    StageShare,
    Strict,
    Tokens,
    TrafficShare,
    Word,
    did_you_mean,
    read_duration,
    read_share,
    refuse,
)

RATES = ("error_rate", "format_error_rate", "tool_failure_rate", "refusal_rate", "degenerate_rate", "feedback_rate")
LATENCIES = ("ttft", "tpot", "token_gap", "total")
PAIRS = ("agreement", "likelihood_gap")
METRICS = (*RATES, "check", *LATENCIES, *PAIRS)


class Shadow(Strict):
    """Mirrors a share of matching traffic to a candidate, and a share of that to the baseline once more."""

    name: Name
    when: When | None = None
    sample: PositiveShare
    candidate: Name
    baseline: Name | None = Field(default=None, description="left out: the model's baseline")
    noise_leg: Share = Field(default=0.2, description="share of pairs that get a second run of the baseline")
    inflight: Count = Field(default=16, description="shadow requests in flight at most")
    rate: Rate | None = Field(default=None, description="shadow requests per second at most")
    queue: CountFromZero = Field(
        default=64, description="shadow requests waiting at most; further ones are dropped and counted"
    )
    timeout: PositiveDuration = 120.0
    likelihood: Share = Field(default=0.0, description="share of pairs scored teacher-forced, where the runtime can")
    likelihood_tokens: Tokens = Field(default=1_024, description="longest text that is scored, in tokens")
    embedding: StrictBool = False
    judge: StrictBool = False


class BucketSelection(Strict):
    """The buckets a rollout moves through, by the fields that buckets are made of."""

    api: Many[ApiWord] | None = None
    model: Many[ServedName] | None = None
    adapter: Many[ServedName] | None = None
    length: Many[Word] | None = None
    task: Many[Word] | None = None
    tools: Many[PrivilegeWord] | None = None
    tool_use: Many[ToolUseWord] | None = None
    structured: Many[StructuredWord] | None = None
    tenant: Many[Name] | None = None
    tier: Many[Word] | None = None
    stream: StrictBool | None = None


class AtLeast(Strict):
    """What a stage must have seen before it can advance."""

    time: Duration = 86_400.0
    requests: CountFromZero = 300
    pairs: CountFromZero = 200


class AtMost(Strict):
    """How long a stage may go on without enough evidence before it is held and someone is told."""

    time: PositiveDuration = 1_209_600.0


class Stage(Strict):
    """One step of a rollout: a share of mirrored traffic, or a share of live traffic."""

    shadow: PositiveShare | None = None
    weight: StageShare | None = None
    at_least: AtLeast = AtLeast()
    at_most: AtMost = AtMost()

    @model_validator(mode="after")
    def _one_share(self) -> "Stage":
        if (self.shadow is None) == (self.weight is None):
            refuse("a stage has exactly one of shadow, weight")
        if self.at_most.time < self.at_least.time:
            least_h = self.at_least.time / 3600
            refuse(
                f"at_most.time is over before at_least.time ({least_h:g}h), so every bucket would be held",
                "lower at_least.time, which is 24h where nothing is said, or raise at_most.time",
            )
        return self


class Promote(Strict):
    """Who must agree before a stage advances; 0 = by evidence alone."""

    approvals: Annotated[int, Field(ge=0, le=5)] = 0


class Reentry(Strict):
    """How a bucket that was rolled back comes in again by itself. Left out: only a person lets it in."""

    after: PositiveDuration
    most: Count = Field(default=1, description="times in a row, for the same deployment record")


def _at_most_half(control: float) -> float:
    if control > 0.5:
        refuse("more than half would stay on the baseline after 100%", "end with a smaller weight if that is meant")
    return control


class Rollout(Strict):
    """Takes a candidate through stages, bucket by bucket, and back."""

    name: Name
    description: str | None = None
    buckets: BucketSelection = BucketSelection()
    candidate: Name
    baseline: Name | None = Field(default=None, description="left out: the model's baseline")
    stages: list[Stage] = Field(min_length=1)
    promote: Promote = Promote()
    guards: Many[Name]
    control: Annotated[TrafficShare, AfterValidator(_at_most_half)] = Field(
        default=0.02, description="share that stays on the baseline after 100%, to compare with"
    )
    reentry: Reentry | None = None

    @model_validator(mode="after")
    def _rising(self) -> "Rollout":
        weights = [stage.weight for stage in self.stages if stage.weight is not None]
        if any(stage.shadow is not None for stage in self.stages[len(self.stages) - len(weights) :]):
            refuse("shadow stages come before the stages with a weight")
        for before, after in pairwise(weights):
            if after <= before:
                message = f"the weights of the stages must rise, and {after * 100:g}% follows {before * 100:g}%"
                refuse(message, "every stage gives the candidate more than the one before")
        return self


class Guard(Strict):
    """A limit on one metric of a bucket and pool, absolute or against the baseline."""

    metric: Annotated[str, Among(METRICS)]
    check: Word | None = Field(default=None, description="the recorded check that `metric: check` counts")
    limit: Annotated[
        float | None,
        Field(ge=0),
        WithJsonSchema({"type": ["number", "string"], "description": "a share, or a duration for a latency"}),
    ] = None
    quantile: PositiveShare | None = None
    margin_to_baseline: Share | None = None
    or_ratio_to_baseline: Ratio | None = None
    ratio_to_baseline: Ratio | None = None
    critical: StrictBool = False
    feed: Annotated[str, Among(("product", "vote", "session"))] | None = None
    block: PositiveDuration | None = None
    deadline: PositiveDuration | None = None

    @field_validator("limit", mode="before")
    @classmethod
    def _read_limit(cls, value: object, info: ValidationInfo) -> object:
        """The limit of a latency is a duration, any other a share."""
        if value is None:
            return None
        return read_duration(value) if info.data.get("metric") in LATENCIES else read_share(value)

    @model_serializer(mode="wrap")
    def _limit_shown(self, handler: SerializerFunctionWrapHandler, info: SerializationInfo) -> dict[str, Any]:
        data: dict[str, Any] = handler(self)
        if self.limit is not None and self.metric in LATENCIES:
            data["limit"] = duration_shown(self.limit, info)
        return data

    @model_validator(mode="after")
    def _complete(self) -> "Guard":
        comparisons = (self.margin_to_baseline, self.or_ratio_to_baseline, self.ratio_to_baseline)
        if (self.metric == "check") != (self.check is not None):
            refuse("`metric: check` and `check: NAME` belong together")
        if self.limit is None and all(bound is None for bound in comparisons):
            refuse("the guard has no bound", "give it limit, margin_to_baseline or ratio_to_baseline")
        if self.metric in LATENCIES:
            if self.quantile is None or self.quantile >= 1:
                refuse("a guard on a latency needs a quantile below 100%", "for example quantile: 99%")
            if self.margin_to_baseline is not None:
                refuse("a latency is compared by or_ratio_to_baseline, not by a margin")
        elif self.quantile is not None:
            refuse("only latencies have a quantile")
        if self.metric in PAIRS and (self.limit is not None or self.margin_to_baseline is None):
            refuse(f"{self.metric} is judged against the baseline only", "give it margin_to_baseline")
        return self

    @model_validator(mode="after")
    def _bounds_fit(self) -> "Guard":
        """No bound is taken that nothing would ever be held against."""
        if self.metric in PAIRS and self.ratio_to_baseline is not None:
            refuse(f"{self.metric} is compared by a margin, not by a ratio", "leave ratio_to_baseline out")
        if self.or_ratio_to_baseline is not None and self.metric not in LATENCIES:
            instead = "margin_to_baseline" if self.metric in PAIRS else "ratio_to_baseline"
            refuse("only a latency has or_ratio_to_baseline", f"use {instead}")
        if self.or_ratio_to_baseline is not None and self.ratio_to_baseline is not None and self.limit is None:
            mend = "give it a limit, or leave one of the ratios out"
            refuse("or_ratio_to_baseline widens a limit, and there is none beside ratio_to_baseline", mend)
        return self

    @model_validator(mode="after")
    def _bounds_leave_room(self) -> "Guard":
        """0 and 100% leave nothing to bet on: the judge could say neither fail nor pass."""
        latency = self.metric in LATENCIES
        if self.limit is not None and not 0 < self.limit < (math.inf if latency else 1):
            what = "a limit on a latency lies above 0" if latency else "a limit lies above 0% and below 100%"
            refuse(what, "give what a healthy pool keeps well within")
        if self.margin_to_baseline == 1 or (self.metric == "likelihood_gap" and self.margin_to_baseline == 0):
            least = "above" if self.metric == "likelihood_gap" else "from"
            refuse(f"a margin of {self.metric} lies {least} 0% and below 100%", "give what you would tolerate")
        return self

    @model_validator(mode="after")
    def _feed_fits(self) -> "Guard":
        """No way of counting is taken that would be another one in truth."""
        if self.metric in PAIRS and self.feed not in (None, "product"):
            refuse(f"{self.metric} counts pair by pair", "leave feed out")
        if self.feed == "session" and self.metric in ("error_rate", *LATENCIES):
            refuse(f"{self.metric} counts requests, and no conversations", "use feed: vote, which is the default")
        return self


class FalseRollbacks(Strict):
    """How often, over all series together, a good pool may be rolled back; the engine divides it."""

    at_most: Frequency = 1.0
    series: Count = Field(default=1024, description="series the budget is divided over; more is an error")


class Guards(BaseModel):
    """Guards by name; `false_rollbacks` is the budget of all of them."""

    model_config = ConfigDict(extra="allow", frozen=True)
    __pydantic_extra__: dict[str, Guard] = Field(init=False)

    false_rollbacks: FalseRollbacks = FalseRollbacks()

    @model_validator(mode="after")
    def _names(self) -> "Guards":
        for name in self.named():
            if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", name):
                refuse(f"{name!r} cannot be the name of a guard", did_you_mean(name, ("false_rollbacks",)))
        return self

    def named(self) -> dict[str, Guard]:
        """The guards by name."""
        return self.__pydantic_extra__ or {}
