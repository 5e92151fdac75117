"""A rollout's share, applied to a decision: which conversations go to the candidate. Pure.

The place of a conversation in [0, 10,000) is a stable hash of rollout and conversation, so a conversation stays on
its arm while the share stands, and a rising share only moves conversations to the candidate. An unproven candidate
gets exactly its share: outside the candidate's arm it is no failover target either. Arms only reorder or drop
eligible pools, they never add one. Called by ``dataplane`` after ``decide``.
"""

import hashlib
from collections.abc import Mapping
from typing import Final

from gateway.model.decision import Decision, Exclusion
from gateway.model.proving import Rollout

WHOLE_BP: Final = 10_000
ROLLED_BACK: Final = -1
ROLLED_BACK_BY: Final = "rolled_back"
"""What keeps a pool out of a decision, in the words of its exclusions, where a rollout has taken it out."""


def position(rollout: str, conversation: bytes) -> int:
    """The stable place of a conversation in a rollout, 0 to 9,999; places in different rollouts are independent."""
    digest = hashlib.blake2b(conversation, key=rollout.encode()[:64], digest_size=8).digest()
    return int.from_bytes(digest, "big") % WHOLE_BP


def assign(
    rollout: Rollout,
    decision: Decision,
    conversation: bytes,
    share_bp: int | None,
) -> Decision:
    """``decision`` with the arm of this conversation.

    ``share_bp``: the latched share of the bucket, -1 = rolled back, ``None`` = not known, which counts as 0.
    """
    if rollout.candidate not in decision.pools:
        return decision
    share = share_bp if share_bp is not None else 0
    place = position(rollout.name, conversation)
    if place < min(share, WHOLE_BP - rollout.control_bp):
        return _first(decision, rollout.candidate, "candidate")
    arm = "control" if share >= WHOLE_BP - rollout.control_bp else "baseline"
    reason = "rolled back in this bucket" if share == ROLLED_BACK else "outside its share of the rollout"
    kept = tuple(pool for pool in decision.pools if pool != rollout.candidate)
    by = ROLLED_BACK_BY if share == ROLLED_BACK else rollout.name
    excluded = Exclusion(rollout.candidate, by, reason)
    narrowed = decision.changed(pools=kept, excluded=(excluded,))
    return _first(narrowed, rollout.baseline, arm)


def share_of(shares: Mapping[str, Mapping[str, int]], rollout: str, bucket: str) -> int | None:
    """The latched share of a bucket in basis points, as control last said; ``None`` if it has said nothing."""
    return shares.get(rollout, {}).get(bucket)


def rolled_back_words(decision: Decision | None) -> str:
    """For a refusal: the pools that rollouts have taken out, as a sentence that follows another; empty if none."""
    exclusions = decision.exclusions if decision is not None else ()
    out = [exclusion.pool for exclusion in exclusions if exclusion.by == ROLLED_BACK_BY]
    return f" {', '.join(out)} was rolled back for requests of this kind." if out else ""


def _first(decision: Decision, pool: str, arm: str) -> Decision:
    """``pool`` in front if it is eligible, the rest in the order of the route."""
    if pool not in decision.pools:
        return decision.changed(arm=arm)
    rest = tuple(other for other in decision.pools if other != pool)
    return decision.changed(pools=(pool, *rest), arm=arm)
