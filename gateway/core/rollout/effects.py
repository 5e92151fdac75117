"""What a transition asks for, as values, in the order in which it must be done: first it is stored, then it acts."""

import msgspec

from gateway.core.rollout.standing import Standing
from gateway.core.rollout.states import EventKind, Notice, State


class Persist(msgspec.Struct, frozen=True):
    """Store ``standing`` if the stored one still has version ``expected``. Nothing after it may be done before."""

    standing: Standing
    expected: int


class Audit(msgspec.Struct, frozen=True):
    """One line of the append-only record, stored together with the standing."""

    identity: str
    bucket: str
    version: int
    at_s: float
    event: EventKind
    before: State
    after: State
    stage: int
    share_bp: int
    reason: str
    actor: str


class StartStage(msgspec.Struct, frozen=True):
    """Begin a stage in the judge. ``new_pool``: forget the money and open blocks of what ran there before.

    ``lump``: whether meters get their lump (also pairs' one at ``first_live`` or a new pool).
    """

    new_pool: bool
    first_live: bool = False


class SetShare(msgspec.Struct, frozen=True):
    """Workers obey this share from now on; -1 = rolled back."""

    identity: str
    bucket: str
    share_bp: int


class Notify(msgspec.Struct, frozen=True):
    """Tell people."""

    notice: Notice
    standing: Standing
    before: State


Effect = Persist | Audit | StartStage | SetShare | Notify
