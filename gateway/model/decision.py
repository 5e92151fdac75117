"""The decision on one request: which pools may serve it, in order, and why."""

from dataclasses import dataclass
from typing import Final


@dataclass(init=False, unsafe_hash=True)
class Exclusion:
    """A pool that was ruled out, and by what: a constraint's name, or model | adapter | context_window |
    rolled_back."""

    pool: Final[str]
    by: Final[str]
    reason: Final[str]

    def __init__(self, pool: str, by: str, reason: str) -> None:
        self.pool = pool
        self.by = by
        self.reason = reason


@dataclass(init=False, unsafe_hash=True)
class Decision:
    """Eligible pools in order of preference. Failover, overflow and canary stay inside ``pools``.

    ``rule`` is the route's name. ``arm``: none | candidate | baseline | control, set by a rollout named ``rollout``.
    ``pools`` empty = refuse with 503 and ``exclusions``; never a silent downgrade.
    """

    rule: Final[str]
    pools: Final[tuple[str, ...]]
    exclusions: Final[tuple[Exclusion, ...]]
    constraints: Final[tuple[str, ...]]
    arm: Final[str]
    rollout: Final[str | None]

    def __init__(
        self,
        rule: str,
        pools: tuple[str, ...],
        exclusions: tuple[Exclusion, ...] = (),
        constraints: tuple[str, ...] = (),
        arm: str = "none",
        rollout: str | None = None,
    ) -> None:
        self.rule = rule
        self.pools = pools
        self.exclusions = exclusions
        self.constraints = constraints
        self.arm = arm
        self.rollout = rollout

    def apart(self) -> "Decision":
        """The same pools, for a request that is no part of a rollout's evidence."""
        return Decision(self.rule, self.pools, self.exclusions, self.constraints)

    def changed(
        self,
        *,
        pools: tuple[str, ...] | None = None,
        arm: str | None = None,
        excluded: tuple[Exclusion, ...] = (),
        constraints: tuple[str, ...] = (),
    ) -> "Decision":
        """The same with other pools or another arm; ``excluded`` and ``constraints`` are added to what is there."""
        return Decision(
            self.rule,
            self.pools if pools is None else pools,
            self.exclusions + excluded,
            self.constraints + constraints,
            self.arm if arm is None else arm,
            self.rollout,
        )
