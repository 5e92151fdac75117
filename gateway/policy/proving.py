"""Guards, rollouts and shadow rules, compiled. Pure. Called by ``compile``."""

import hashlib

import orjson

from gateway.model.proving import Evidence, Guard, Rollout, Shadow, Stage
from gateway.policy.conditions import condition_of, condition_of_buckets, limited_to_models
from gateway.policy.schema import Policy
from gateway.policy.schema import proving as written

# How outcomes of a metric are fed to the judge, and over what blocks, where the policy does not say.
_FEEDS: dict[str, tuple[str, float]] = {
    "error_rate": ("vote", 10.0),
    "format_error_rate": ("session", 10.0),
    "tool_failure_rate": ("session", 10.0),
    "refusal_rate": ("session", 10.0),
    "degenerate_rate": ("session", 10.0),
    "feedback_rate": ("session", 10.0),
    "check": ("session", 10.0),
    "ttft": ("vote", 30.0),
    "tpot": ("vote", 30.0),
    "token_gap": ("vote", 30.0),
    "total": ("vote", 30.0),
    "agreement": ("product", 10.0),
    "likelihood_gap": ("product", 10.0),
}
_ERROR_DEADLINE_S = 30.0


def guards_of(policy: Policy) -> dict[str, Guard]:
    """All guards by name."""
    return {name: _guard(name, guard) for name, guard in policy.guards.named().items()}


def _guard(name: str, guard: written.Guard) -> Guard:
    feed, block_s = _FEEDS[guard.metric]
    deadline_s = guard.deadline
    if deadline_s is None:
        # A first token that is not there by the limit is over the limit: the limit is its own deadline.
        deadline_s = (
            guard.limit if guard.metric == "ttft" else _ERROR_DEADLINE_S if guard.metric == "error_rate" else None
        )
    return Guard(
        name=name,
        metric=guard.metric,
        limit=guard.limit,
        quantile=guard.quantile,
        margin=guard.margin_to_baseline,
        or_ratio=guard.or_ratio_to_baseline,
        ratio=guard.ratio_to_baseline,
        critical=guard.critical,
        feed=guard.feed or feed,
        block_s=guard.block or block_s,
        deadline_s=deadline_s,
        check=guard.check,
    )


def rollouts_of(policy: Policy) -> tuple[Rollout, ...]:
    """All rollouts in the order of the policy."""
    return tuple(_rollout(policy, rollout) for rollout in policy.rollouts)


def baseline_of(policy: Policy, candidate: str, named: str | None) -> str:
    """The pool that a candidate is compared with: as named, else its model's baseline."""
    return named or policy.models[policy.pools[candidate].model].baseline or ""


def _rollout(policy: Policy, rollout: written.Rollout) -> Rollout:
    model = policy.pools[rollout.candidate].model
    baseline = baseline_of(policy, rollout.candidate, rollout.baseline)
    condition = limited_to_models(condition_of_buckets(rollout.buckets), frozenset({model}))
    buckets = rollout.buckets.model_dump(exclude_defaults=True)
    parts = orjson.dumps([rollout.name, model, rollout.candidate, baseline, buckets], option=orjson.OPT_SORT_KEYS)
    return Rollout(
        name=rollout.name,
        identity=hashlib.sha256(parts).hexdigest()[:16],
        model=model,
        candidate=rollout.candidate,
        baseline=baseline,
        matches=condition,
        condition=condition.words,
        stages=tuple(_stage(stage) for stage in rollout.stages),
        guards=tuple(rollout.guards),
        approvals=rollout.promote.approvals,
        control_bp=round(rollout.control * 10_000),
        reentry_after_s=rollout.reentry.after if rollout.reentry else None,
        reentry_most=rollout.reentry.most if rollout.reentry else 0,
    )


def _stage(stage: written.Stage) -> Stage:
    share = stage.shadow if stage.shadow is not None else stage.weight
    return Stage(
        kind="shadow" if stage.shadow is not None else "weight",
        share_bp=round((share or 0.0) * 10_000),
        least_s=stage.at_least.time,
        least_requests=stage.at_least.requests,
        least_pairs=stage.at_least.pairs,
        most_s=stage.at_most.time,
    )


def shadows_of(policy: Policy) -> tuple[Shadow, ...]:
    """All shadow rules in the order of the policy, then one for each rollout that has a shadow stage."""
    rules = [_shadow(policy, shadow) for shadow in policy.shadow]
    return (*rules, *(found for rollout in policy.rollouts if (found := _stage_rule(policy, rollout)) is not None))


def _stage_rule(policy: Policy, rollout: written.Rollout) -> Shadow | None:
    """What a shadow stage asks for, mirrored as long as the rollout is in the policy: pairs also tell of drift later.

    Its share is the stages' largest. Every pair gets its noise leg, and its likelihood if a guard goes by that: a pair
    without is no evidence, and the stage waits for evidence.
    """
    share = max((stage.shadow for stage in rollout.stages if stage.shadow is not None), default=0.0)
    if not share:
        return None
    compiled = _rollout(policy, rollout)
    guards = policy.guards.named()
    scored = any(guards[name].metric == "likelihood_gap" for name in rollout.guards if name in guards)
    return Shadow(
        name=f"rollout:{rollout.name}",
        matches=compiled.matches,
        condition=compiled.condition,
        sample=share,
        model=compiled.model,
        candidate=compiled.candidate,
        baseline=compiled.baseline,
        noise=1.0,
        likelihood=1.0 if scored else 0.0,
    )


def _shadow(policy: Policy, shadow: written.Shadow) -> Shadow:
    model = policy.pools[shadow.candidate].model
    condition = limited_to_models(condition_of(shadow.when), frozenset({model}))
    return Shadow(
        name=shadow.name,
        matches=condition,
        condition=condition.words,
        sample=shadow.sample,
        model=model,
        candidate=shadow.candidate,
        baseline=baseline_of(policy, shadow.candidate, shadow.baseline),
        noise=shadow.noise_leg,
        inflight=shadow.inflight,
        rate=shadow.rate,
        queue=shadow.queue,
        timeout_s=shadow.timeout,
        likelihood=shadow.likelihood,
        likelihood_tokens=shadow.likelihood_tokens,
        embedding=shadow.embedding,
        judge=shadow.judge,
    )


def evidence_of(policy: Policy) -> Evidence:
    """Which answers are checked."""
    evidence = policy.evidence
    return Evidence(
        structured=evidence.check.structured,
        tools=evidence.check.tools,
        other=evidence.check.other,
        remember_s=evidence.remember.time,
        remember_most=evidence.remember.most,
        answer_bytes=evidence.answer_bytes,
        refusals=tuple(evidence.refusals),
    )
