"""The key under which a decision is remembered: what the rules of one policy can tell apart, and nothing finer. Pure.

Called by ``compile``.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable
from operator import attrgetter

from gateway.model.facts import Profile
from gateway.policy.conditions import ATTRIBUTES, NOT_GIVEN, NUMERIC, Condition

# Looked at by every decision, whatever the rules say.
_ALWAYS = ("model", "adapter")


def memo_key(
    conditions: Iterable[Condition], windows: Iterable[int]
) -> tuple[Callable[[Profile], object], tuple[int, ...]]:
    """The key function for these conditions and context windows, and the steps of ``context_tokens`` in it."""
    used = {dimension for condition in conditions for dimension in condition.dimensions()}
    steps: dict[str, set[float]] = {dimension: set() for dimension in NUMERIC}
    for condition in conditions:
        for dimension, step in condition.steps:
            steps[dimension].add(step)
    # A pool's window is exceeded from the next token on.
    steps["context_tokens"] |= {window + 1 for window in windows}
    names = [name for dimension in sorted(used - set(NUMERIC)) for name in ATTRIBUTES[dimension]]
    exact = attrgetter(*dict.fromkeys([*_ALWAYS, *names]))
    context_steps = tuple(int(step) for step in sorted(steps.pop("context_tokens")))
    others = tuple((_READERS[dimension], tuple(sorted(values))) for dimension, values in steps.items() if values)
    return _key(exact, context_steps, others), context_steps


def _key(
    exact: Callable[[Profile], object],
    context_steps: tuple[int, ...],
    others: tuple[tuple[Callable[[Profile], float], tuple[float, ...]], ...],
) -> Callable[[Profile], object]:
    if not others:
        return lambda profile: (exact(profile), bisect_right(context_steps, profile.context_tokens))

    def key(profile: Profile) -> object:
        parts = [exact(profile), bisect_right(context_steps, profile.context_tokens)]
        for read, steps in others:
            parts.append(bisect_right(steps, read(profile)))
        return tuple(parts)

    return key


def _temperature(profile: Profile) -> float:
    value = profile.sampling.temperature
    return NOT_GIVEN if value is None else value


def _top_p(profile: Profile) -> float:
    value = profile.sampling.top_p
    return NOT_GIVEN if value is None else value


_READERS: dict[str, Callable[[Profile], float]] = {
    "prompt_tokens": attrgetter("prompt_tokens"),
    "turns": attrgetter("turns"),
    "n": attrgetter("sampling.n"),
    "temperature": _temperature,
    "top_p": _top_p,
}
