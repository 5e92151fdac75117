"""What is open in one (rollout, bucket) between outcomes and series, as it is stored with the meters.

Owns the value. It must be of the same moment as the meters: a conversation that was stored as open before it voted, and
whose vote was stored, would vote twice. No text is in it, only ids, digests, counts and times.
"""

import msgspec

from gateway.control.rollouts_clock import SinceState
from gateway.control.rollouts_sessions import SessionsState
from gateway.control.rollouts_shares import Failed
from gateway.core.evidence.latency import QuantileState
from gateway.core.evidence.timeline import TimelineState

CONVERSATIONS_MOST = 40_000
"""Over all buckets, some 60 bytes each. Of more, every second one is stored, or every fourth, and so on."""


class OpenState(msgspec.Struct, frozen=True):
    """What a bucket's feed holds, by series' names; ``meanings`` say which question each series asked.

    ``seen``: attempts of the stage by pool. ``culprits``: ids of the last bad requests. ``failed``: conversations that
    count no more in shares. ``incident_s``: when the bucket last tripped without blame. ``since``: what its state's and
    its stage's beginnings are called, where the clock was set since.
    """

    meanings: dict[str, str] = {}
    seen: dict[str, int] = {}
    culprits: dict[str, tuple[str, ...]] = {}
    sessions: tuple[SessionsState, ...] = ()
    margins: dict[str, TimelineState] = {}
    failed: dict[str, Failed] = {}
    latencies: dict[str, QuantileState] = {}
    shadow_latencies: dict[str, QuantileState] = {}
    incident_s: float = 0.0
    since: SinceState = SinceState()


def thinned(conversations: int) -> int:
    """Every how many'th conversation is stored."""
    every = 1
    while conversations > every * CONVERSATIONS_MOST:
        every *= 2
    return every
