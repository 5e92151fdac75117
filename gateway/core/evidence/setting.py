"""A clock that is set: what a moment that was noted before is called from then on.

Owns the one rule, for seconds and for numbers of blocks, and how far clocks may be apart. Set ahead, everything moves
along: no time has passed. Set back, what would lie in the future moves along; the rest may have been noted before the
clock was wrong, and stays. So it looks younger than it is where it was not, and never older: no stage is passed and no
hold ends before its time.
"""

from typing import TypeVar

AHEAD_S = 60.0
"""By how much one gateway's clock may be ahead of the others' and still be believed; by more, it was wrong."""

Moment = TypeVar("Moment", int, float)


def moved(at: Moment, was: Moment, now: Moment) -> Moment:
    """A moment by a clock that was set from ``was`` to ``now``."""
    return at + (now - was) if now > was or at > now else at
