"""The decision on one request: which pools may serve it, in order, and why."""

import msgspec


class Exclusion(msgspec.Struct, frozen=True):
    """A pool that was ruled out, and by what: a constraint's name, or model | adapter | context_window |
    rolled_back."""

    pool: str
    by: str
    reason: str


class Decision(msgspec.Struct, frozen=True):
    """Eligible pools in order of preference. Failover, overflow and canary stay inside ``pools``.

    ``rule`` is the route's name. ``arm``: none | candidate | baseline | control, set by a rollout named ``rollout``.
    ``pools`` empty = refuse with 503 and ``exclusions``; never a silent downgrade.
    """

    rule: str
    pools: tuple[str, ...]
    exclusions: tuple[Exclusion, ...] = ()
    constraints: tuple[str, ...] = ()
    arm: str = "none"
    rollout: str | None = None
