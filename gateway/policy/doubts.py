"""What may stand in a policy and is probably not meant: warnings, for the person who wrote it in a hurry.

Only what contradicts something else that is written, so that nobody reads a warning for a thing that is right. Called
by ``load`` for a policy whose names are known to be good.
"""

import re
from collections.abc import Iterator

from gateway.errors import PolicyError
from gateway.model.enums import GENERATING
from gateway.policy.hardware import known_gpu
from gateway.policy.names import runs_at
from gateway.policy.proving import baseline_of
from gateway.policy.schema import Policy
from gateway.policy.schema.proving import Rollout, Shadow
from gateway.policy.schema.rules import PoolTraits
from gateway.policy.schema.serving import Model, Pool, Timeouts
from gateway.policy.schema.values import did_you_mean
from gateway.policy.tree import Path, Tree

LATE_S = 3600.0
ENCODERS_MOST = 512
_WORD = re.compile(r"[a-z0-9]+")

Doubt = tuple[Path, str, str]


def check_doubts(policy: Policy, tree: Tree) -> list[PolicyError]:
    """Warnings, each where the doubtful value stands."""
    doubts = [
        *_models(policy),
        *_pools(policy),
        *_grants(policy),
        *_guards(policy),
        *_constraints(policy),
        *_comparisons(policy),
    ]
    return [tree.place(path).finding(message, mend, "warning") for path, message, mend in doubts]


def _models(policy: Policy) -> Iterator[Doubt]:
    reserved = policy.classify.output_tokens
    for name, model in policy.models.items():
        window = model.context_window
        if window is not None and window <= reserved and _generates(policy, name, window):
            message = f"no more tokens than a request without a limit reserves for its answer ({reserved})"
            yield ("models", name, "context_window"), message, "lower classify.output_tokens, or correct the window"


def _generates(policy: Policy, model: str, window: int) -> bool:
    """Whether a model may be asked for text. One that embeds, ranks or hears reserves nothing for an answer, and has a
    window of some hundred tokens; a smaller one was written without its unit."""
    if 64 < window <= ENCODERS_MOST:
        return False
    routes = [route for route in policy.routes if any(policy.pools[pool].model == model for pool in route.pools)]
    asked = [route.when.api if route.when is not None else None for route in routes]
    return any(apis is None or GENERATING & set(apis) for apis in asked)


def _pools(policy: Policy) -> Iterator[Doubt]:
    for name, pool in policy.pools.items():
        path: Path = ("pools", name)
        model = policy.models[pool.model]
        window = model.context_window
        if window is not None and pool.context_window is not None and pool.context_window > window:
            message = f"the model's own window is smaller ({window} tokens), and counts"
            yield (*path, "context_window"), message, "correct one of them"
        for key in _outlasted(pool.timeouts):
            message = f"an attempt is over before {key} could end it, which is longer"
            yield (*path, "timeouts", "total"), message, "make it the longest, or leave it out"
        if pool.hardware is not None and pool.hardware.device == "cpu" and pool.hardware.gpu is not None:
            message = f"a CPU, and {pool.hardware.gpu} beside it: the gate goes by the CPU"
            yield (*path, "hardware", "device"), message, "leave one of them out"
        for adapter in _unvalidated(pool, model):
            message = f"loaded here and never served: {adapter!r} is not validated on {pool.precision.weights}"
            yield (*path, "adapters", adapter), message, "validate it, or leave it out here"


def _grants(policy: Policy) -> Iterator[Doubt]:
    held = {grant for tenant in policy.tenants.values() for grant in tenant.grants}
    for grant in policy.classify.tools.grants:
        if grant not in held:
            mend = f"give it to a tenant: grants: [{grant}]"
            yield ("classify", "tools", "grants", grant), f"no tenant has the grant {grant!r}; it changes nothing", mend


def _guards(policy: Policy) -> Iterator[Doubt]:
    """A guard takes a pool out when a block of outcomes is judged, and no sooner. People may be given the day that they
    take to say what an answer was worth."""
    for name, guard in policy.guards.named().items():
        deadline = guard.deadline if guard.metric != "feedback_rate" else None
        for key, span_s in (("block", guard.block), ("deadline", deadline)):
            if span_s is not None and span_s > LATE_S:
                message = f"a bad pool is seen {span_s / 3600:g}h later at the soonest"
                yield ("guards", name, key), message, "seconds are usual; how long a stage lasts is said by at_least"


def _outlasted(timeouts: Timeouts) -> list[str]:
    """The limits that were given and that ``total`` makes useless; a default is nobody's mistake."""
    total = timeouts.total
    given = timeouts.model_fields_set
    return [
        key
        for key in ("connect", "first_byte", "idle")
        if total is not None and key in given and getattr(timeouts, key) > total
    ]


def _unvalidated(pool: Pool, model: Model) -> list[str]:
    """Adapters that a pool names and that may not run on its weights."""
    served = {"any", pool.precision.weights}
    return [name for name in pool.adapters or () if not served & set(model.adapters[name].validated_on)]


def _constraints(policy: Policy) -> Iterator[Doubt]:
    for index, constraint in enumerate(policy.constraints):
        for key, traits in (("require", constraint.require), ("forbid", constraint.forbid)):
            if traits is not None:
                yield from _words(policy, ("constraints", index, key), traits)


def _comparisons(policy: Policy) -> Iterator[Doubt]:
    """Candidates that share a runtime with their baseline: whatever is compared there is the same."""
    pools = policy.pools
    rules: list[tuple[Path, Rollout | Shadow]] = [
        *((("rollouts", index), rollout) for index, rollout in enumerate(policy.rollouts)),
        *((("shadow", index), shadow) for index, shadow in enumerate(policy.shadow)),
    ]
    for path, rule in rules:
        baseline = baseline_of(policy, rule.candidate, rule.baseline)
        for url, _ in set(runs_at(pools[rule.candidate])) & set(runs_at(pools[baseline])):
            message = f"{url} is an endpoint of the baseline {baseline!r} too, and is compared with itself"
            yield (*path, "candidate"), message, f"correct pools.{rule.candidate}.endpoints"


def _words(policy: Policy, path: Path, traits: PoolTraits) -> Iterator[Doubt]:
    """Free words that no pool has and that are near one which some pool has: a ban that bans nothing. A GPU that exists
    may come one day, and of several words for one thing some may be nobody's."""
    pools = policy.pools.values()
    methods = {pool.precision.method for pool in pools if pool.precision.method is not None}
    gpus = {pool.hardware.gpu for pool in pools if pool.hardware is not None and pool.hardware.gpu is not None}
    for key, words, known in (("method", traits.method, methods), ("gpu", traits.gpu, gpus)):
        listed = {word.lower() for word in words or ()}
        unlisted = {other for other in known if other.lower() not in listed}
        met = {other.lower() for other in known}
        for word in words or ():
            near = {other for other in unlisted if _alike(word, other)} if known_gpu(word) else unlisted
            if word.lower() not in met and (mend := did_you_mean(word, near)):
                yield (*path, key), f"no pool has the {key} {word!r}; the whole word counts", mend


def _alike(word: str, other: str) -> bool:
    """Whether two names of GPUs may mean one: ``H100`` and ``H100-SXM``, ``A-100`` and ``A100``; not ``H200``."""
    mine, its = _WORD.findall(word.lower()), _WORD.findall(other.lower())
    return "".join(mine) == "".join(its) or set(mine) <= set(its) or set(its) <= set(mine)
