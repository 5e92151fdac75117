"""Conditions on requests as data: one test per dimension of a profile, and conditions that must not hold.

A compiled ``Condition`` is the predicate of the hot path, the sentence that ``explain`` prints, and the region that
``space`` computes with; all three come from the same tests and cannot disagree. Pure. Made by ``compile`` and
``proving``.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from gateway.model.facts import Profile
from gateway.policy.schema.proving import BucketSelection
from gateway.policy.schema.rules import Range, When

Test = Callable[[Any], bool]

# What each dimension looks at. The attributes also make up the memo key, so a dimension must read nothing else.
ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "api": ("api",),
    "served": ("model", "adapter"),
    "task": ("task",),
    "length": ("length",),
    "caller": ("tenant", "tier"),
    "tools": ("tool_use", "privilege"),
    "structured": ("structured",),
    "seed": ("sampling.seed",),
    "temperature": ("sampling.temperature",),
    "top_p": ("sampling.top_p",),
    "n": ("sampling.n",),
    "logprobs": ("sampling.logprobs",),
    "context_tokens": ("context_tokens",),
    "prompt_tokens": ("prompt_tokens",),
    "turns": ("turns",),
    "stream": ("stream",),
    "images": ("images",),
}
# What a temperature or top_p that is not given counts as: OpenAI's default.
NOT_GIVEN = 1.0
NUMERIC = ("context_tokens", "prompt_tokens", "turns", "n", "temperature", "top_p")


class Condition(msgspec.Struct, frozen=True):
    """A conjunction of tests by dimension, minus other conditions. Calling it asks whether it holds for a profile.

    ``steps`` holds, by numeric dimension, the numbers at which a test changes its mind: it sees no difference between
    two numbers with the same count of steps at or below them.
    """

    words: str
    tests: tuple[tuple[str, Test], ...] = ()
    nots: tuple["Condition", ...] = ()
    steps: tuple[tuple[str, float], ...] = ()

    def __call__(self, profile: Profile) -> bool:
        """Whether the condition holds for ``profile``."""
        for dimension, test in self.tests:
            if not test(value_of(profile, dimension)):
                return False
        return not any(condition(profile) for condition in self.nots)

    def dimensions(self) -> Iterator[str]:
        """The dimensions it looks at."""
        for dimension, _ in self.tests:
            yield dimension
        for condition in self.nots:
            yield from condition.dimensions()


ALWAYS = Condition("always")


def value_of(profile: Profile, dimension: str) -> Any:
    """What a dimension's test is asked about."""
    sampling = profile.sampling
    match dimension:
        case "served":
            return profile.model, profile.adapter
        case "caller":
            return profile.tenant, profile.tier
        case "tools":
            return profile.tool_use, profile.privilege
        case "temperature":
            return NOT_GIVEN if sampling.temperature is None else sampling.temperature
        case "top_p":
            return NOT_GIVEN if sampling.top_p is None else sampling.top_p
        case "seed" | "n" | "logprobs":
            return getattr(sampling, dimension)
        case _:
            return getattr(profile, dimension)


class _Draft:
    """Collects tests and words of one condition."""

    def __init__(self) -> None:
        self.tests: list[tuple[str, Test]] = []
        self.words: list[str] = []
        self.steps: list[tuple[str, float]] = []

    def among(self, dimension: str, label: str, values: Iterable[str] | None, pick: int | None = None) -> None:
        """The value (or its part ``pick``) is one of the words."""
        if values is None:
            return
        allowed = frozenset(values)
        self.tests.append((dimension, _member(allowed, pick)))
        self.words.append(f"{label} is {either(values)}")

    def given(self, dimension: str, label: str, presence: str | None) -> None:
        """A flag is set or not set."""
        if presence is not None:
            self.tests.append((dimension, _flag(presence == "present")))
            self.words.append(f"{label} is {presence}")

    def switch(self, dimension: str, wanted: bool | None) -> None:
        """A truth value is as wanted."""
        if wanted is not None:
            self.tests.append((dimension, _flag(wanted)))
            self.words.append(dimension if wanted else f"no {dimension}")

    def adapter(self, names: list[str] | None) -> None:
        """The adapter is one of these, or any, or none."""
        if names is None:
            return
        allowed: set[str | None] = {name for name in names if name not in ("present", "absent")}
        if "absent" in names:
            allowed.add(None)
        self.tests.append(("served", _adapter(frozenset(allowed), "present" in names)))
        self.words.append(f"adapter is {either(names)}")

    def bounds(self, dimension: str, label: str, bounds: Range[Any] | None) -> None:
        """The number lies between the bounds."""
        if bounds is None:
            return
        whole = dimension not in ("temperature", "top_p")
        low, high = -math.inf, math.inf
        said = []
        for sign, bound, upper in (
            ("≥", bounds.gte, False),
            (">", bounds.gt, False),
            ("<", bounds.lt, True),
            ("≤", bounds.lte, True),
        ):
            if bound is None:
                continue
            step = bound if sign in ("≥", "<") else bound + 1 if whole else math.nextafter(bound, math.inf)
            self.steps.append((dimension, step))
            low, high = (low, min(high, step)) if upper else (max(low, step), high)
            said.append(f"{sign} {_figure(bound)}")
        self.tests.append((dimension, _within(low, high)))
        self.words.append(f"{label} {' and '.join(said)}")

    def finished(self, nots: tuple[Condition, ...] = ()) -> Condition:
        """The condition, minus ``nots``."""
        words = [*self.words, *(f"not ({condition.words})" for condition in nots)]
        steps = [*self.steps, *(step for condition in nots for step in condition.steps)]
        return Condition(" and ".join(words) or "always", tuple(self.tests), nots, tuple(steps))


def condition_of(when: When | None) -> Condition:
    """Compile a ``when``; without one the condition always holds."""
    if when is None:
        return ALWAYS
    draft = _Draft()
    draft.among("api", "api", when.api)
    draft.among("served", "model", when.model, 0)
    draft.adapter(when.adapter)
    draft.among("task", "task", when.task)
    draft.among("length", "length", when.length)
    draft.among("caller", "tenant", when.tenant, 0)
    draft.among("caller", "tier", when.tier, 1)
    if when.tools is not None:
        draft.among("tools", "tool use", when.tools.use, 0)
        draft.among("tools", "tool privilege", when.tools.privilege, 1)
    draft.among("structured", "structured output", when.structured)
    if (sampling := when.sampling) is not None:
        draft.given("seed", "seed", sampling.seed)
        draft.bounds("temperature", "temperature", sampling.temperature)
        draft.bounds("top_p", "top_p", sampling.top_p)
        draft.bounds("n", "n", sampling.n)
        draft.given("logprobs", "logprobs", sampling.logprobs)
    draft.bounds("context_tokens", "context tokens", when.context_tokens)
    draft.bounds("prompt_tokens", "prompt tokens", when.prompt_tokens)
    draft.bounds("turns", "turns", when.turns)
    draft.switch("stream", when.stream)
    draft.given("images", "images", when.images)
    return draft.finished(tuple(condition_of(inner) for inner in when.not_ or ()))


def condition_of_buckets(buckets: BucketSelection) -> Condition:
    """Compile a rollout's choice of buckets."""
    draft = _Draft()
    draft.among("api", "api", buckets.api)
    draft.among("served", "model", buckets.model, 0)
    draft.adapter(buckets.adapter)
    draft.among("task", "task", buckets.task)
    draft.among("length", "length", buckets.length)
    draft.among("caller", "tenant", buckets.tenant, 0)
    draft.among("caller", "tier", buckets.tier, 1)
    draft.among("tools", "tool use", buckets.tool_use, 0)
    draft.among("tools", "tool privilege", buckets.tools, 1)
    draft.among("structured", "structured output", buckets.structured)
    draft.switch("stream", buckets.stream)
    return draft.finished()


def limited_to_models(condition: Condition, models: frozenset[str]) -> Condition:
    """The same condition, for requests to these models only.

    The words stay: the limit follows from the route's pools.
    """
    tests = (("served", _member(models, 0)), *condition.tests)
    return Condition(condition.words, tests, condition.nots, condition.steps)


def either(values: Iterable[Any]) -> str:
    """``a``, ``a or b``, ``a, b or c``."""
    words = [str(value) for value in values]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _figure(bound: float) -> str:
    return f"{bound:,}" if isinstance(bound, int) else f"{bound:g}"


def _member(allowed: frozenset[str], pick: int | None) -> Test:
    if pick is None:
        return allowed.__contains__
    return lambda value: value[pick] in allowed


def _flag(wanted: bool) -> Test:
    return lambda value: bool(value) is wanted


def _adapter(allowed: frozenset[str | None], any_present: bool) -> Test:
    return lambda value: value[1] in allowed or (any_present and value[1] is not None)


def _within(low: float, high: float) -> Test:
    return lambda value: low <= value < high
