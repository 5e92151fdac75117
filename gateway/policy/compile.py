"""A policy's canonical JSON becomes the table that requests read. No YAML, no files; secrets come through a function.

The document was checked when it was loaded. What can still fail is a secret that this process cannot resolve, and
keys that turn out to be the same. Called in control and in every worker.
"""

import hashlib
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

from pydantic import ValidationError

from gateway.errors import PolicyError, PolicyRejectedError
from gateway.model.precision import Precision
from gateway.model.table import (
    Adapter,
    Constraint,
    Endpoint,
    Limits,
    Model,
    Pool,
    Route,
    Settings,
    Table,
    Tenant,
    Timeouts,
)
from gateway.policy import proving
from gateway.policy.classifier import classifier_of
from gateway.policy.conditions import Condition, condition_of, limited_to_models
from gateway.policy.formats import quantised
from gateway.policy.hardware import capability_of
from gateway.policy.memo import memo_key
from gateway.policy.names import served_names
from gateway.policy.requirements import requirement_of
from gateway.policy.schema import Policy
from gateway.policy.schema import serving as written
from gateway.policy.schema.rules import Constraint as WrittenConstraint
from gateway.policy.schema.rules import Route as WrittenRoute
from gateway.policy.secret import Secret, SecretReader

DOCUMENT = "policy"


def compile_table(document: bytes, generation: int, slots: Mapping[str, int], secret: Secret) -> Table:
    """The table of a canonical document.

    ``slots``: rows of the shared usage board by ``tenant:<name>`` and ``endpoint:<pool>/<index>``. ``secret``
    resolves a reference or raises ``SecretError``. Raises ``PolicyRejectedError``.
    """
    return table_of(parse_document(document), hashlib.sha256(document).hexdigest(), generation, slots, secret)


def table_of(policy: Policy, digest: str, generation: int, slots: Mapping[str, int], secret: Secret) -> Table:
    """The table of a policy at hand. Raises ``PolicyRejectedError``."""
    reader = SecretReader(secret, DOCUMENT)
    pools = {name: _pool(name, pool, policy, slots, reader) for name, pool in policy.pools.items()}
    tenants = {name: _tenant(name, tenant, slots) for name, tenant in policy.tenants.items() if _serves(name, tenant)}
    keys = _keys(policy, reader)
    if reader.findings:
        raise PolicyRejectedError(reader.findings)
    constraints = tuple(_constraint(constraint) for constraint in policy.constraints)
    routes = tuple(_route(route, policy) for route in policy.routes)
    rollouts = proving.rollouts_of(policy)
    predicates = [
        *(constraint.matches for constraint in constraints),
        *(route.matches for route in routes),
        *(rollout.matches for rollout in rollouts),
    ]
    models = {name: _model(name, model) for name, model in policy.models.items()}
    windows = [*(pool.context_window for pool in pools.values()), *(model.context_window for model in models.values())]
    key, token_steps = memo_key(
        [predicate for predicate in predicates if isinstance(predicate, Condition)],
        [window for window in windows if window is not None],
    )
    return Table(
        generation=generation,
        digest=digest,
        models=models,
        pools=pools,
        tenants=tenants,
        keys=keys,
        anonymous=tenants.get("anonymous"),
        names=served_names(policy),
        classifier=classifier_of(policy.classify),
        constraints=constraints,
        routes=routes,
        settings=_settings(policy.gateway),
        token_steps=token_steps,
        rollouts=rollouts,
        shadows=proving.shadows_of(policy),
        guards=proving.guards_of(policy),
        evidence=proving.evidence_of(policy),
        memo_key=key,
        memo={},
    )


def parse_document(document: bytes) -> Policy:
    """The policy of a canonical document. Raises ``PolicyRejectedError`` if it is none."""
    try:
        return Policy.model_validate_json(document)
    except ValidationError as error:
        findings = [PolicyError(DOCUMENT, 1, 1, f"{detail['loc']}: {detail['msg']}") for detail in error.errors()]
        raise PolicyRejectedError(findings) from None


def _digest(reference: str, where: str, reader: SecretReader) -> bytes | None:
    """SHA-256 of a key, given as such or by reference."""
    if reference.startswith("sha256:"):
        return bytes.fromhex(reference.removeprefix("sha256:"))
    value = reader.read(reference, where)
    return hashlib.sha256(value.encode()).digest() if value is not None else None


def _keys(policy: Policy, reader: SecretReader) -> dict[bytes, str]:
    keys: dict[bytes, str] = {}
    for name, tenant in policy.tenants.items():
        for index, reference in enumerate(tenant.keys):
            where = f"tenants.{name}.keys[{index}]"
            digest = _digest(reference, where, reader)
            if digest is None:
                continue
            if keys.setdefault(digest, name) != name:
                reader.refuse(where, f"tenant {keys[digest]} has the same key", "give each tenant its own")
    return keys


def _serves(name: str, tenant: written.Tenant) -> bool:
    return name != "anonymous" or tenant.allow is True


def _tenant(name: str, tenant: written.Tenant, slots: Mapping[str, int]) -> Tenant:
    return Tenant(
        name=name,
        tier=tenant.tier,
        grants=frozenset(tenant.grants),
        limits=Limits(tenant.limits.requests_per_minute, tenant.limits.tokens_per_minute, tenant.limits.inflight),
        models=frozenset(tenant.models) if tenant.models is not None else None,
        slot=slots.get(f"tenant:{name}", -1),
        trusted=tenant.trusted,
        shadow=tenant.shadow,
        capture=tenant.capture,
    )


def _model(name: str, model: written.Model) -> Model:
    tokenizer = model.tokenizer
    how = (
        ("tiktoken", tokenizer.tiktoken)
        if tokenizer.tiktoken
        else ("huggingface", tokenizer.huggingface)
        if tokenizer.huggingface
        else ("bytes", "")
    )
    adapters = {
        adapter: Adapter(
            adapter, frozenset() if "any" in written_on.validated_on else frozenset(written_on.validated_on)
        )
        for adapter, written_on in model.adapters.items()
    }
    return Model(name, tuple(model.aliases), model.context_window, how, model.baseline, adapters)


def _pool(name: str, pool: written.Pool, policy: Policy, slots: Mapping[str, int], reader: SecretReader) -> Pool:
    token = reader.read(pool.api_key, f"pools.{name}.api_key") if pool.api_key else None
    hardware = pool.hardware
    return Pool(
        name=name,
        model=pool.model,
        runtime=pool.runtime,
        precision=_precision(pool.precision),
        endpoints=tuple(_endpoint(name, index, url, slots) for index, url in enumerate(pool.endpoints)),
        upstream_model=pool.upstream_model,
        adapters=pool.adapters
        if pool.adapters is not None
        else {key: key for key in policy.models[pool.model].adapters},
        authorization=f"Bearer {token}".encode() if token is not None else None,
        context_window=pool.context_window,
        limits=Limits(inflight=pool.limits.inflight),
        timeouts=_timeouts(pool.timeouts),
        stream_usage=pool.stream_usage,
        attestation=pool.attestation,
        labels=pool.labels,
        record=pool.record,
        device=hardware.device if hardware else None,
        gpu=hardware.gpu if hardware else None,
        compute_capability=capability_of(hardware),
        gpu_count=hardware.count if hardware else None,
    )


def _precision(precision: written.Precision) -> Precision:
    dynamic = precision.dynamic_scales
    return Precision(
        weights=precision.weights,
        activations=precision.activations,
        kv_cache=precision.kv_cache,
        method=precision.method,
        group_size=precision.group_size,
        # What a pool does not say about its scales counts against it where determinism is asked for.
        dynamic_scales=quantised(precision.activations) if dynamic is None else dynamic,
        emulated=precision.emulated,
    )


def _endpoint(pool: str, index: int, url: str, slots: Mapping[str, int]) -> Endpoint:
    parts = urlsplit(url)
    name = f"{pool}/{index}"
    return Endpoint(
        name=name,
        pool=pool,
        scheme=parts.scheme,
        host=parts.hostname or "",
        port=parts.port or (443 if parts.scheme == "https" else 80),
        base_path=parts.path,
        slot=slots.get(f"endpoint:{name}", -1),
    )


def _timeouts(timeouts: written.Timeouts) -> Timeouts:
    return Timeouts(
        connect_s=timeouts.connect,
        first_byte_s=timeouts.first_byte,
        first_byte_per_1k_tokens_s=timeouts.first_byte_per_1k_tokens,
        idle_s=timeouts.idle,
        total_s=timeouts.total,
    )


def _constraint(constraint: WrittenConstraint) -> Constraint:
    condition = condition_of(constraint.when)
    requirement = requirement_of(constraint)
    return Constraint(
        name=constraint.name,
        matches=condition,
        permits=_permits(requirement.objection),
        requires=requirement.words,
        unless_measured=constraint.unless_measured.guard if constraint.unless_measured else None,
        condition=condition.words,
        objection=requirement.objection,
    )


def _permits(objection: Callable[[Pool], str]) -> Callable[[Pool], bool]:
    return lambda pool: not objection(pool)


def _route(route: WrittenRoute, policy: Policy) -> Route:
    condition = condition_of(route.when)
    models = frozenset(policy.pools[pool].model for pool in route.pools)
    return Route(route.name, limited_to_models(condition, models), tuple(route.pools), condition.words)


def _settings(gateway: written.Gateway) -> Settings:
    return Settings(
        max_body_bytes=gateway.max_body,
        max_inflight=gateway.max_inflight,
        queue_s=gateway.queue.wait,
        queue_most=gateway.queue.most,
        queue_tiers=tuple(gateway.queue.tiers),
        attempts=gateway.attempts,
        retry_budget=gateway.retry_budget,
        response_headers=gateway.response_headers,
        cors_origins=tuple(gateway.cors_origins),
        access_log=gateway.access_log,
    )
