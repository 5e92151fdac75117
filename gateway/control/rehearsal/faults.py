"""What is made to go wrong in a rehearsal: a guard's bad share raised, in the candidate alone or in every pool."""

import re
from collections.abc import Iterator

import msgspec

from gateway.control import guards as guarding
from gateway.control.rehearsal.levels import bound_of
from gateway.model.table import Table

_SPELLED = re.compile(r"(?:(platform):)?([A-Za-z0-9._-]+)=(\d+(?:\.\d+)?)%?")


class Fault(msgspec.Struct, frozen=True):
    """``guard``'s outcomes are bad with share ``level`` from the fault on. ``everywhere``: in the baseline too."""

    guard: str
    level: float
    everywhere: bool = False

    @property
    def name(self) -> str:
        """As a person writes it."""
        return f"{'platform:' if self.everywhere else ''}{self.guard}={self.level * 100:g}%"


def read_fault(text: str, table: Table) -> Fault:
    """``json=100%``, ``errors=3%``, ``platform:errors=30%``. Raises ValueError with the mend."""
    match = _SPELLED.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is no fault. Write GUARD=SHARE%, such as json=100%, or platform:errors=30%.")
    names = {name for plan in table.rollouts for name in plan.guards}
    if match[2] not in names:
        raise ValueError(f"{text!r}: no rollout has a guard {match[2]}. There are: {', '.join(sorted(names))}.")
    level = float(match[3]) / 100.0
    if not 0.0 < level <= 1.0:
        raise ValueError(f"{text!r}: the share must be above 0 and at most 100%.")
    return Fault(match[2], level, match[1] is not None)


def default_faults(table: Table) -> Iterator[Fault]:
    """For every guard 3 and 10 times its bound and all bad; and one incident of the platform."""
    names = sorted({name for plan in table.rollouts for name in plan.guards})
    for name in names:
        guard = table.guards[name]
        bound = bound_of(guard)
        levels = (bound + 0.05, bound + 0.2) if guard.metric in guarding.PAIRS else (3 * bound, 10 * bound, 1.0)
        for level in dict.fromkeys(min(1.0, level) for level in levels):
            yield Fault(name, round(level, 6))
    for name in names:
        if table.guards[name].metric == "error_rate" and table.guards[name].limit is not None:
            yield Fault(name, min(1.0, round(20 * bound_of(table.guards[name]), 6)), everywhere=True)
            return
