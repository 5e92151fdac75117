"""Which pools a replay sends to: named with a URL, or taken from a policy. Never any by default.

Owns reading them. Called by ``quantgate replay``.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from gateway.cli.replay.sending import Target
from gateway.cli.urls import http_url
from gateway.model.table import Endpoint, Pool, Table
from gateway.policy.compile import compile_table
from gateway.policy.load import load
from gateway.policy.secret import SecretError, secrets_of, unresolved


class TargetError(Exception):
    """There is nowhere to send to; the message says why and what to do."""


def named(pools: Sequence[str], model: str | None, key: str | None) -> list[Target]:
    """Targets of ``NAME=URL``. ``key`` refers to a bearer token, ``env:NAME`` or ``file:PATH``."""
    authorization = None
    if key is not None:
        try:
            authorization = f"Bearer {secrets_of(os.environ, Path.cwd())(key)}"
        except SecretError as error:
            raise TargetError(str(error)) from None
    targets = []
    for written in pools:
        name, _, url = written.partition("=")
        if not name or http_url(url) is None:
            raise TargetError(f"--pool {written}: write NAME=http://host:port")
        targets.append(Target(name, (url,), model, {}, authorization))
    return targets


def of_policy(config: Path, names: Sequence[str], model: str | None) -> list[Target]:
    """Targets that are pools of a policy, with its model names and credentials. Raises ``PolicyRejectedError`` too."""
    lookup = secrets_of(os.environ, Path.cwd())

    def secret(reference: str) -> str:
        try:
            return lookup(reference)
        except SecretError:
            return unresolved(reference)  # tenants' keys are not needed here; a pool's own is looked at below

    table = compile_table(load(config).document, 0, {}, secret)
    unknown = [name for name in names if name not in table.pools]
    if unknown:
        raise TargetError(f"the policy has no pool {', '.join(unknown)}; it has: {', '.join(table.pools)}")
    return [_target(table, table.pools[name], model) for name in names]


def _target(table: Table, pool: Pool, model: str | None) -> Target:
    authorization = pool.authorization.decode("latin-1") if pool.authorization is not None else None
    if authorization is not None and "unresolved-" in authorization:
        raise TargetError(f"pool {pool.name}: its key is not set here: {authorization.rpartition('unresolved-')[2]}")
    upstream = pool.upstream_model or pool.model
    models = {
        name: pool.adapters.get(adapter, adapter) if adapter is not None else upstream
        for name, (of, adapter) in table.names.items()
        if of == pool.model
    }
    urls = tuple(_url(endpoint) for endpoint in pool.endpoints)
    return Target(pool.name, urls, model, {} if model is not None else models, authorization, pool.stream_usage)


def _url(endpoint: Endpoint) -> str:
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    return f"{endpoint.scheme}://{host}:{endpoint.port}{endpoint.base_path}"
