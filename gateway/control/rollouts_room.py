"""What the baseline could not take back: requests of buckets that are out, refused for want of room, by tier.

Owns the count. Admission has refused them, lower tiers first where the policy ranks them; here it is told, because
nobody looks for refusals of the baseline when a candidate was rolled back. Fed with every batch of outcomes.
"""

from collections.abc import Callable, Sequence

from gateway.control.series import NONE, Counter
from gateway.core.rollout import Standing, State
from gateway.model.enums import Result
from gateway.model.outcome import Outcome

_OUT = (State.ROLLED_BACK, State.PAUSED)


class Room:
    """``standing`` gives where a bucket of a rollout stands, by the rollout's name; None = unknown."""

    def __init__(self, standing: Callable[[str, str], Standing | None]) -> None:
        self.shed = Counter(
            "quantgate_rollout_shed_total",
            "Requests of buckets that a rollout has left, refused because the pools that remain had no room.",
            ("bucket", "rollout", "tier"),
        )
        self._standing = standing

    def take_outcomes(self, batch: Sequence[Outcome]) -> None:
        """Count what was refused for want of room."""
        for outcome in batch:
            if outcome.kind.result == Result.SHED and outcome.kind.rollout:
                standing = self._standing(outcome.kind.rollout, outcome.kind.bucket)
                if standing is not None and standing.state in _OUT:
                    self.shed.add((outcome.kind.bucket, standing.rollout, outcome.kind.tier or NONE))
