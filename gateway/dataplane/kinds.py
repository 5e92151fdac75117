"""The kinds of this worker's outcomes, each made and encoded once.

Requests that are alike in all that a ``Kind`` is made of share its bytes; a look-up by those traits is a tenth of the
work of making and encoding it. Owns what was encoded for the generation in force. Called by ``pipeline`` at the end of
every request.
"""

import msgspec

from gateway.dataplane.exchange import Exchange
from gateway.dataplane.fleet import Generation
from gateway.model.enums import Result
from gateway.model.outcome import Kind

KINDS_MOST = 4_096  # some 2 MB; traits are bounded by the policy, but their combinations are many


class PackedKinds:
    """One per worker, whose number is part of each kind."""

    __slots__ = ("_generation", "_packed", "_worker")

    def __init__(self, worker: int) -> None:
        self._worker = worker
        self._generation: Generation | None = None
        self._packed: dict[object, bytes] = {}

    def of(self, exchange: Exchange, result: Result, status: int) -> bytes:
        """The kind of a request that ended so. Fields that a stage never reached are empty."""
        if exchange.generation is not self._generation:  # also lets go of what the keys hold of the last one
            self._packed = {}
            self._generation = exchange.generation
        traits = _traits_of(exchange, result, status)
        packed = self._packed.get(traits)
        if packed is None:
            packed = msgspec.msgpack.encode(_kind_of(exchange, result, status, self._worker))
            if len(self._packed) >= KINDS_MOST:
                self._packed.clear()
            self._packed[traits] = packed
        return packed


def _traits_of(exchange: Exchange, result: Result, status: int) -> object:
    """What tells kinds of one generation apart: whatever ``_kind_of`` reads, or what that follows from. The caller
    stands for the tenant, and the profile says again what the facts say of tools, structure and stream."""
    profile, decision, facts = exchange.profile, exchange.decision, exchange.facts
    asked: object
    if profile is None:
        asked = (facts.tool_use, facts.structured, facts.stream)
    else:
        asked = (
            profile.model,
            profile.adapter,
            profile.bucket,
            profile.length,
            profile.task,
            profile.privilege,
            profile.tool_use,
            profile.structured,
            profile.stream,
        )
    last = exchange.attempts[-1] if exchange.attempts else None
    return (
        exchange.caller,
        exchange.api,
        result,
        status,
        exchange.failure,
        exchange.error_code,
        exchange.usage.finish_reason,
        facts.sampling.seed,
        asked,
        (decision.rule, decision.arm, decision.rollout, decision.constraints) if decision is not None else None,
        (last.pool, last.endpoint) if last is not None else None,
    )


def _kind_of(exchange: Exchange, result: Result, status: int, worker: int) -> Kind:
    profile, decision, facts, table = exchange.profile, exchange.decision, exchange.facts, exchange.generation.table
    tenant = exchange.caller.tenant if exchange.caller else None
    last = exchange.attempts[-1] if exchange.attempts else None
    pool = table.pools.get(last.pool) if last else None
    return Kind(
        table.generation,
        worker,
        exchange.api.value,
        tenant.name if tenant else "",
        tenant.tier if tenant else "",
        profile.model if profile else "",
        (profile.adapter or "") if profile else "",
        profile.bucket if profile else "",
        profile.length if profile else "",
        profile.task if profile else "",
        profile.privilege if profile else "",
        facts.tool_use.value,
        facts.structured.value,
        facts.stream,
        decision.rule if decision else "",
        decision.arm if decision else "",
        (decision.rollout or "") if decision else "",
        last.pool if last else "",
        last.endpoint if last else "",
        pool.precision.label if pool else "",
        status,
        result.value,
        exchange.failure,
        exchange.error_code,
        decision.constraints if decision else (),
        exchange.usage.finish_reason,
        facts.sampling.seed,
    )
