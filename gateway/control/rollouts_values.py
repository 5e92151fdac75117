"""What passes between the rollout engine and its callers: proposals, what must survive, what it asks of the world."""

import hashlib
from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

import msgspec
import orjson
import structlog

from gateway.control.rollouts_open import OpenState
from gateway.control.rollouts_runs import Run
from gateway.control.series import Counter
from gateway.core.evidence import Budget, JudgeState
from gateway.core.evidence.turns import TurnsState
from gateway.core.rollout import Event, Headroom, SetShare, Stepped
from gateway.model.proving import Rollout
from gateway.model.table import Table

Key = tuple[str, str]
"""(rollout identity, bucket)."""

T = TypeVar("T")

_log = structlog.get_logger("control.rollouts")


class Surroundings(Protocol):
    """What the engine must know of the world."""

    def ready(self, pool: str) -> bool:
        """Whether some endpoint of the pool serves; meters must not count a cold start."""
        ...

    def absence(self, pool: str) -> str:
        """Why no endpoint of the pool serves, in words; empty if one does."""
        ...

    def headroom(self, plan: Rollout, bucket_share: float) -> Headroom | None:
        """What the baseline can take back; None if nothing is known of loads."""
        ...


class Proposal(msgspec.Struct, frozen=True):
    """A transition with its evidence (JSON), to be stored before it is accepted."""

    key: Key
    stepped: Stepped
    event: Event
    evidence: str


class EngineState(msgspec.Struct, frozen=True):
    """What must survive a restart beside the standings: meters, ledger and evidence, as of ``at_s``.

    By rollout and bucket: ``turns``, how long conversations are; ``open``, what is not in the meters yet; ``stages``,
    the stored beginning of the stage that the meters speak of.
    """

    judge: JudgeState
    at_s: float = 0.0
    turns: dict[str, TurnsState] = {}
    open: dict[str, OpenState] = {}
    stages: dict[str, float] = {}


def told_shares(proposals: Iterable[Proposal]) -> bool:
    """Whether any of them changes what workers must obey."""
    return any(isinstance(effect, SetShare) for proposal in proposals for effect in proposal.stepped.effects)


def fingerprint_of(table: Table, budget: Budget) -> bytes:
    """What the series are made of."""
    rollouts = [
        {name: value for name, value in msgspec.structs.asdict(plan).items() if name != "matches"}
        for plan in table.rollouts
    ]
    parts = [msgspec.to_builtins(value) for value in (dict(table.guards), budget)]
    return orjson.dumps([*parts, msgspec.to_builtins(rollouts)], option=orjson.OPT_SORT_KEYS)


def guards_of(table: Table) -> str:
    """What the guards ask, as a hash: two gateways add up only what answers the same questions."""
    parts = orjson.dumps(msgspec.to_builtins(dict(table.guards)), option=orjson.OPT_SORT_KEYS)
    return hashlib.blake2b(parts, digest_size=8).hexdigest()


def share_of_requests(run: Run, runs: Iterable[Run]) -> float:
    """The bucket's part in its candidate's attempts since the stages began."""
    candidate = run.plan.candidate
    total = sum(other.feed.seen.get(candidate, 0) for other in runs)
    return run.feed.seen.get(candidate, 0) / total if total else 1.0


def guarded(faults: Counter, run: Run, work: Callable[[], T]) -> T | None:
    """Do something for one bucket: its fault is counted, and does not keep the others from being judged."""
    try:
        return work()
    except Exception:
        faults.add((run.standing.rollout,))
        _log.exception("bucket_failed", rollout=run.standing.rollout, bucket=run.standing.bucket)
        return None
