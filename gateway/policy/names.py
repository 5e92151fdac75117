"""The names clients may use, and where two things would answer to the same one; what runtimes are asked for. Pure.

Called by ``references`` (to refuse clashes), ``doubts`` and ``compile``.
"""

from collections.abc import Iterator

from gateway.policy.schema import Policy
from gateway.policy.schema.serving import Pool
from gateway.policy.tree import Path


def claims(policy: Policy) -> Iterator[tuple[str, tuple[str, str | None], Path]]:
    """Every (name, (model, adapter), where it is written).

    Models, aliases, adapters, and base:adapter for each base.
    """
    for model, written in policy.models.items():
        here: Path = ("models", model)
        yield model, (model, None), here
        for index, alias in enumerate(written.aliases):
            yield alias, (model, None), (*here, "aliases", index)
        for adapter in written.adapters:
            where = (*here, "adapters", adapter)
            yield adapter, (model, adapter), where
            for base in (model, *written.aliases):
                yield f"{base}:{adapter}", (model, adapter), where


def served_names(policy: Policy) -> dict[str, tuple[str, str | None]]:
    """What each name means."""
    return {name: meaning for name, meaning, _ in claims(policy)}


def runs_at(pool: Pool) -> list[tuple[str, str]]:
    """What a pool computes with: endpoint and the model asked for there. One endpoint may serve several models, or one
    in several precisions under names of its own."""
    return [(url, pool.upstream_model or pool.model) for url in pool.endpoints]
