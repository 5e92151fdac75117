"""States and events of a rollout in one bucket. Closed: each value is metric label, column value and word on screens.

Owns the vocabulary only; what follows from what is ``table``'s.
"""

from enum import StrEnum

import msgspec


class State(StrEnum):
    """Where a (rollout, bucket) is."""

    PENDING = "pending"
    """Known, but its first stage has not begun: the pool is not ready, or no record can be kept. Share 0."""
    SHADOWING = "shadowing"
    """Mirrored traffic only. Share 0."""
    STEPPING = "stepping"
    """The candidate gets exactly its stage's share."""
    HOLDING = "holding"
    """Stays where it is and does not advance: the cause says why."""
    PROMOTED = "promoted"
    """All stages passed; the same meters go on watching."""
    ROLLED_BACK = "rolled_back"
    """Latched: no request of the bucket reaches the pool until a person or the re-entry rule says so."""
    PAUSED = "paused"
    """A person took the candidate out for a while, without a verdict. Share 0."""
    FROZEN = "frozen"
    """The brake is on: nothing advances anywhere; rollbacks still happen."""


class EventKind(StrEnum):
    """What can happen to it."""

    BEGIN = "begin"  # the pool is ready and decisions can be recorded
    PASS = "pass"  # noqa: S105 - a verdict: every guard has evidence enough
    FAIL = "fail"  # a meter tripped and the pool is to blame
    TIMEOUT = "timeout"  # the stage's longest time went by without evidence enough
    INCIDENT = "incident"  # a meter tripped and the baseline is no better
    BESIDE = "beside"  # a slice tripped that other buckets are to blame for: it is held until that is looked at
    CALM = "calm"  # an incident or the brake is over
    BRAKE = "brake"  # many buckets tripped together
    CHANGED = "changed"  # another deployment record: the pool is another one
    REENTER = "reenter"  # the cool-down after a rollback is over
    RELOADED = "reloaded"  # the policy changed the stages
    APPROVE = "approve"
    PROMOTE = "promote"
    HOLD = "hold"
    PAUSE = "pause"
    RESUME = "resume"
    ROLLBACK = "rollback"
    RESET = "reset"


COMMANDS = frozenset(
    {
        EventKind.APPROVE,
        EventKind.PROMOTE,
        EventKind.HOLD,
        EventKind.PAUSE,
        EventKind.RESUME,
        EventKind.ROLLBACK,
        EventKind.RESET,
    }
)
"""Events that a person causes; they carry that person's name."""


RAISING = frozenset({EventKind.PASS, EventKind.APPROVE, EventKind.PROMOTE, EventKind.RESUME, EventKind.CALM})
"""Events that may lead to a larger share, at once or by what they permit, from where the bucket stands."""


class Cause(StrEnum):
    """Why a bucket is holding."""

    NONE = ""
    APPROVAL = "approval"
    TIME = "time"
    INCIDENT = "incident"
    PERSON = "person"


class Notice(StrEnum):
    """What people are told; the words of ``notify`` in the policy."""

    ROLLBACK = "rollback"
    PROMOTION = "promotion"
    HOLD = "hold"
    APPROVAL_NEEDED = "approval_needed"
    INCIDENT = "incident"


class Event(msgspec.Struct, frozen=True):
    """Something that happened at ``at_s``. ``reason`` is never empty: nothing moves without one.

    ``record`` is the deployment record's hash, for ``CHANGED`` and ``BEGIN``.
    """

    kind: EventKind
    at_s: float
    reason: str
    actor: str = "quantgate"
    record: str = ""

    def __post_init__(self) -> None:
        if not self.reason.strip():
            raise ValueError(f"{self.kind}: an event needs a reason, it goes on record")
        if not self.actor or (self.kind in COMMANDS) == (self.actor == "quantgate"):
            raise ValueError(f"{self.kind}: {self.actor!r} cannot cause it: commands need a person, evidence has none")
