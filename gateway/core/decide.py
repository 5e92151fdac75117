"""Which pools may serve a request, in which order, and why the others may not. Pure.

Eligible = serves the model ∧ carries the adapter in a validated precision ∧ context fits ∧ every matching constraint
permits it. ``settle`` lifts the third where it is no more than an estimate; whatever comes after (arms, balance, retry,
failover) picks from ``Decision.pools`` and nowhere else. ``decide`` is the hot path and remembers its answers in
``Table.memo``; ``explain`` tells the same story in full and remembers nothing. Called by ``dataplane`` for every
request and by the CLI.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from gateway.errors import ApiError
from gateway.model.decision import Decision, Exclusion
from gateway.model.enums import COUNTING, Api
from gateway.model.facts import Profile
from gateway.model.table import Constraint, Model, Pool, Route, Table

MEMO_MOST: Final = 4096
NO_ROUTE: Final = "none"
WINDOW_SLACK: Final = 1.5
"""A prompt that is estimated this much over the window may still fit: vocabularies cut a language, or digits, into as
many more or fewer tokens. To refuse one that fits is worse than to ask a pool, which refuses in a millisecond."""
CONTEXT_WINDOW: Final = "context_window"
ADAPTER: Final = "adapter"
# Where a request has its prompt, if not in ``messages``: what ``param`` of the refusal names.
_PROMPT_FIELD: Final[dict[Api, str]] = {
    Api.COMPLETIONS: "prompt",
    Api.EMBEDDINGS: "input",
    Api.RESPONSES: "input",
    Api.AUDIO: "input",
    Api.RERANK: "documents",
}


class ConstraintEffect(msgspec.Struct, frozen=True):
    """One constraint seen from one request. ``excludes``: (pool, objection) of the model's pools it rules out."""

    name: str
    condition: str
    applies: bool
    requires: str
    excludes: tuple[tuple[str, str], ...]


class RouteStep(msgspec.Struct, frozen=True):
    """One route in the order of the policy, and whether it matches. ``models``: those its pools serve, and no others
    can match."""

    name: str
    condition: str
    matches: bool
    pools: tuple[str, ...]
    models: tuple[str, ...]


class PoolVerdict(msgspec.Struct, frozen=True):
    """One pool of the request's model. ``place``: 1-based in the decision, 0 = not in it. ``reasons`` why not; with a
    place, the window that was lifted for it."""

    pool: str
    precision: str
    place: int
    reasons: tuple[str, ...]


class Refusal(msgspec.Struct, frozen=True):
    """An answer of the gateway in place of a pool's."""

    status: int
    code: str
    message: str


class Explanation(msgspec.Struct, frozen=True):
    """A decision with everything that led to it. ``refusal``: where the prompt is too long for every pool."""

    profile: Profile
    decision: Decision
    constraints: tuple[ConstraintEffect, ...]
    routes: tuple[RouteStep, ...]
    pools: tuple[PoolVerdict, ...]
    refusal: Refusal | None = None


def decide(table: Table, profile: Profile) -> Decision:
    """The decision on one request. ``pools`` empty = refuse; ``exclusions`` say why.

    Equal for all profiles with the same ``table.memo_key``, and remembered under it.
    """
    key = table.memo_key(profile)
    found = table.memo.get(key)
    if found is not None:
        return found  # type: ignore[return-value]  # only this function writes the memo
    decision = _decide(table, profile)
    if len(table.memo) >= MEMO_MOST:
        table.memo.clear()
    table.memo[key] = decision
    return decision


def _decide(table: Table, profile: Profile) -> Decision:
    applying = tuple(constraint for constraint in table.constraints if constraint.matches(profile))
    names = tuple(constraint.name for constraint in applying)
    route = next((route for route in table.routes if route.matches(profile)), None)
    if route is None:
        return Decision(rule=NO_ROUTE, pools=(), constraints=names)
    eligible: list[str] = []
    exclusions: list[Exclusion] = []
    for name in route.pools:
        pool = table.pools[name]
        if pool.model != profile.model:
            continue
        exclusion = next(objections(table.models.get(pool.model), pool, profile, applying), None)
        if exclusion is None:
            eligible.append(name)
        else:
            exclusions.append(exclusion)
    pools = tuple(eligible)
    return Decision(
        rule=route.name,
        pools=pools,
        exclusions=tuple(exclusions),
        constraints=names,
        rollout=_rollout(table, profile, pools),
    )


def objections(
    model: Model | None, pool: Pool, profile: Profile, applying: tuple[Constraint, ...]
) -> Iterator[Exclusion]:
    """Everything that rules ``pool`` out for this request; nothing = it is eligible.

    Reasons hold no number of the request, because one decision is remembered for many requests.
    """
    if pool.model != profile.model:
        yield Exclusion(pool.name, "model", f"serves {pool.model}")
        return
    if profile.adapter is not None:
        if profile.adapter not in pool.adapters:
            yield Exclusion(pool.name, ADAPTER, f"does not carry adapter {profile.adapter}")
        elif not _validated(model, pool, profile.adapter):
            reason = f"adapter {profile.adapter} is not validated on {pool.precision.weights}"
            yield Exclusion(pool.name, ADAPTER, reason)
    window = window_of(model, pool)
    if window is not None and profile.context_tokens > window:
        reason = f"prompt and reserved output exceed its context window of {window:,} tokens"
        yield Exclusion(pool.name, CONTEXT_WINDOW, reason)
    for constraint in applying:
        if not constraint.permits(pool):
            yield Exclusion(pool.name, constraint.name, constraint.objection(pool) or f"requires {constraint.requires}")


def window_of(model: Model | None, pool: Pool) -> int | None:
    """Context tokens that fit into ``pool``: the smaller of its own and its model's window; ``None`` = not known."""
    windows = [
        window for window in (pool.context_window, model.context_window if model else None) if window is not None
    ]
    return min(windows, default=None)


def _validated(model: Model | None, pool: Pool, adapter: str) -> bool:
    known = model.adapters.get(adapter) if model else None
    return known is not None and (not known.validated_on or pool.precision.weights in known.validated_on)


def _rollout(table: Table, profile: Profile, pools: tuple[str, ...]) -> str | None:
    """The rollout that this request takes part in.

    The first whose buckets match and whose candidate is eligible: what serves an unproven pool's bucket without its
    baseline still obeys the share.
    """
    for rollout in table.rollouts:
        if rollout.candidate in pools and rollout.matches(profile):
            return rollout.name
    return None


def settle(table: Table, profile: Profile, decision: Decision) -> Decision:
    """``decision`` with the pools that may get the request although it exceeds their context window.

    Counting tokens needs no context, so no window stands against it. Anything else comes here as a last resort, when
    nothing but windows stands against the pools that serve its adapter: estimates err, and reserved
    output that the client did not ask for is a guess. So while the prompt itself may fit, the pools with the largest
    window get it and their runtime has the last word, and so they do where it was asked to cut the prompt. Every other
    objection stands. Raises ``ApiError`` 400 if the prompt alone is too long.
    """
    counting = profile.api in COUNTING
    if decision.pools and not counting:
        return decision
    against = {exclusion.by for exclusion in decision.exclusions}
    # A pool without the adapter could serve no request for it, short or long: it says nothing about this one's length.
    if CONTEXT_WINDOW not in against or (not counting and against - {ADAPTER, CONTEXT_WINDOW}):
        return decision
    model = table.models.get(profile.model)
    applying = tuple([constraint for constraint in table.constraints if constraint.matches(profile)])
    windows: dict[str, int] = {}
    others: list[Exclusion] = []
    for exclusion in decision.exclusions:
        if exclusion.by == CONTEXT_WINDOW:
            pool = table.pools[exclusion.pool]
            windows[pool.name] = window_of(model, pool) or 0
            others += [other for other in objections(model, pool, profile, applying) if other.by != CONTEXT_WINDOW]
    barred = {other.pool for other in others}
    lifted = [name for name in windows if name not in barred]
    if not counting:
        largest = max([windows[name] for name in lifted or windows])
        if profile.least_tokens > largest * WINDOW_SLACK:
            raise _too_long(profile, largest)
        lifted = [name for name in lifted if windows[name] == largest]
    return _with_lifted(table, profile, decision, lifted, others)


def _with_lifted(
    table: Table, profile: Profile, decision: Decision, lifted: list[str], others: list[Exclusion]
) -> Decision:
    """``lifted`` in their places of the route; ``others``: what stands against pools besides their window."""
    (order,) = [route.pools for route in table.routes if route.name == decision.rule]
    pools = tuple([name for name in order if name in decision.pools or name in lifted])
    return Decision(
        decision.rule,
        pools,
        exclusions=(*[exclusion for exclusion in decision.exclusions if exclusion.pool not in lifted], *others),
        constraints=decision.constraints,
        rollout=_rollout(table, profile, pools),
    )


def _too_long(profile: Profile, window: int) -> ApiError:
    """In the words of the API's vendor: clients know by these, not by the code, that they should shorten the prompt."""
    tokens = profile.least_tokens
    message = (
        f"prompt is too long: about {tokens} tokens > {window} maximum"
        if profile.api is Api.MESSAGES
        else f"This model's maximum context length is {window} tokens. However, your prompt has about {tokens} tokens."
    )
    return ApiError(400, "context_length_exceeded", message, param=_PROMPT_FIELD.get(profile.api, "messages"))


def explain(table: Table, profile: Profile) -> Explanation:
    """The same decision, settled, with every constraint, route and pool spelled out."""
    applying = tuple(constraint for constraint in table.constraints if constraint.matches(profile))
    mine = [pool for pool in table.pools.values() if pool.model == profile.model]
    decision, refusal = _settled(table, profile)
    effects = tuple(
        ConstraintEffect(
            name=constraint.name,
            condition=constraint.condition,
            applies=constraint in applying,
            requires=constraint.requires,
            excludes=tuple((pool.name, constraint.objection(pool)) for pool in mine if not constraint.permits(pool))
            if constraint in applying
            else (),
        )
        for constraint in table.constraints
    )
    routes = tuple(_step(table, profile, route) for route in table.routes)
    verdicts = tuple(_verdict(table, profile, pool, decision, applying) for pool in mine)
    ranked = tuple(sorted(verdicts, key=lambda v: (v.place or 99_999, v.pool)))
    return Explanation(profile, decision, effects, routes, ranked, refusal)


def _step(table: Table, profile: Profile, route: Route) -> RouteStep:
    models = tuple(dict.fromkeys([table.pools[name].model for name in route.pools]))
    return RouteStep(route.name, route.condition, route.matches(profile), route.pools, models)


def _settled(table: Table, profile: Profile) -> tuple[Decision, Refusal | None]:
    decision = _decide(table, profile)
    try:
        return settle(table, profile, decision), None
    except ApiError as error:
        return decision, Refusal(error.status, error.code, error.message)


def _verdict(
    table: Table, profile: Profile, pool: Pool, decision: Decision, applying: tuple[Constraint, ...]
) -> PoolVerdict:
    place = decision.pools.index(pool.name) + 1 if pool.name in decision.pools else 0
    reasons = [
        f"{exclusion.by}: {exclusion.reason}"
        for exclusion in objections(table.models.get(pool.model), pool, profile, applying)
    ]
    if decision.rule == NO_ROUTE:
        reasons.append("no route matches")
    elif place == 0 and all(exclusion.pool != pool.name for exclusion in decision.exclusions):
        reasons.append(f"route {decision.rule} does not name it")
    return PoolVerdict(pool.name, pool.precision.label, place, tuple(reasons))
