"""The key under which a decision is remembered: what the rules of one policy can tell apart, and nothing finer. Pure.

Called by ``compile``.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable
from operator import attrgetter

from gateway.model.facts import Profile
from gateway.policy.conditions import ATTRIBUTES, NUMERIC, Condition, value_of

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
    others = tuple((dimension, tuple(sorted(values))) for dimension, values in steps.items() if values)
    return _key(exact, context_steps, others), context_steps


def _key(
    exact: Callable[[Profile], object],
    context_steps: tuple[int, ...],
    others: tuple[tuple[str, tuple[float, ...]], ...],
) -> Callable[[Profile], object]:
    if not others:
        return lambda profile: (exact(profile), bisect_right(context_steps, profile.context_tokens))

    def key(profile: Profile) -> object:
        ranks = tuple(bisect_right(steps, value_of(profile, dimension)) for dimension, steps in others)
        return exact(profile), bisect_right(context_steps, profile.context_tokens), ranks

    return key
