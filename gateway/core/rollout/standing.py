"""Where one (rollout, bucket) stands: the row that is stored, compared and set.

Owns the value and what follows from it directly (its share). Must not decide; ``transitions`` builds new ones.
"""

import msgspec

from gateway.core.rollout.states import Cause, State
from gateway.model.proving import Rollout

ENGINE = "quantgate"
NO_SHARE_BP = 0
ROLLED_BACK_BP = -1


class Vote(msgspec.Struct, frozen=True):
    """A person's yes to the step from one stage to the next. ``kind``: approve | promote."""

    actor: str
    kind: str
    at_s: float


class Standing(msgspec.Struct, frozen=True):
    """``below`` is what a hold, pause or freeze goes back to. ``share_bp`` is what workers obey.

    ``paused_bp`` is the share that a pause took away. ``stages`` are those that ``stage`` counts in, as text.

    ``record``: hash of the deployment that the evidence speaks of. ``entries``: how often that deployment came in
    again after it was out; each entry halves the promotion error level. ``automatic``: how many of those in a row were
    the re-entry rule's. ``slices`` are the wider views that its outcomes also count in. ``version`` counts stored
    changes; a store refuses to overwrite a newer one.
    """

    rollout: str
    identity: str
    bucket: str
    candidate: str
    baseline: str
    state: State = State.PENDING
    below: State = State.PENDING
    stage: int = 0
    share_bp: int = NO_SHARE_BP
    cause: Cause = Cause.NONE
    reason: str = ""
    actor: str = ENGINE
    since_s: float = 0.0
    stage_since_s: float = 0.0
    record: str = ""
    entries: int = 0
    automatic: int = 0
    votes: tuple[Vote, ...] = ()
    slices: tuple[str, ...] = ()
    version: int = 0
    paused_bp: int = NO_SHARE_BP
    stages: str = ""

    @property
    def live(self) -> bool:
        """Whether the candidate gets requests of clients."""
        return self.share_bp > 0

    @property
    def watched(self) -> bool:
        """Whether evidence is being collected for a stage."""
        return State.PENDING is not self.below and self.state is not State.ROLLED_BACK

    def voters(self, kind: str) -> frozenset[str]:
        """Different people who said yes."""
        return frozenset(vote.actor for vote in self.votes if vote.kind == kind)


def stages_of(plan: Rollout) -> str:
    """What makes a stage's number mean the same: kinds and shares, in order."""
    return " ".join(f"{stage.kind}:{stage.share_bp}" for stage in plan.stages)


def is_placed(plan: Rollout, standing: Standing) -> bool:
    """Whether its stage is one of the plan's: a reload, here or at another gateway, may have changed them since."""
    if standing.below is State.PENDING:
        return True
    if standing.stages:
        return standing.stages == stages_of(plan)
    # An earlier release, perhaps still another gateway's, does not say: its stage has the kind and share of the plan's.
    return (
        standing.stage < len(plan.stages)
        and standing.below in (State.PROMOTED, stage_state(plan, standing.stage))
        and standing.share_bp == share_of_standing(plan, standing)
    )


def stage_state(plan: Rollout, stage: int) -> State:
    """What a bucket is while that stage runs."""
    return State.SHADOWING if plan.stages[stage].kind == "shadow" else State.STEPPING


def share_of_standing(plan: Rollout, standing: Standing) -> int:
    """The share that follows from the state; the one place that says so."""
    if standing.state is State.ROLLED_BACK:
        return ROLLED_BACK_BP
    running = standing.below if standing.state in (State.HOLDING, State.FROZEN) else standing.state
    if running in (State.STEPPING, State.PROMOTED):
        return plan.stages[standing.stage].share_bp
    return NO_SHARE_BP


def is_last(plan: Rollout, stage: int) -> bool:
    """Whether no stage comes after it."""
    return stage >= len(plan.stages) - 1
