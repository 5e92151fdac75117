"""The wall clock of evidence, which somebody may set: by minutes at a machine's start, by hours by mistake.

Owns how a step is noticed (the wall clock and a monotonic one disagree about the time between two looks), and what a
moment that was stamped before it is called now. Everything that holds moments moves along with a step, so that a clock
that was ahead blinds nobody until time catches up, and none makes a stage look older than it is. Without the steps,
evidence is by the wall clock, because workers, records and other gateways are. Owned by the engine and the service.
"""

from collections import deque
from collections.abc import Callable

import msgspec
import structlog

from gateway.core.evidence import JudgeState
from gateway.core.evidence.meter import NEVER_FED
from gateway.core.evidence.setting import AHEAD_S, moved
from gateway.core.rollout import Standing

STEP_S = 2.0
"""Less is a clock that is being adjusted, as they all are."""
STAMPED_S = 3_600.0
"""How long after a step outcomes come that were stamped before it; nothing waits longer for them."""
_STEPS_MOST = 8
_LOOK_S = 0.1
_LOOKS = 3

_log = structlog.get_logger("control.rollouts_clock")


def believed(at_s: float, now_s: float) -> float:
    """A moment that another gateway tells; now, if it lies so far in the future that its clock was wrong."""
    return at_s if at_s <= now_s + AHEAD_S else now_s


def is_of_before(at_s: float, was_s: float, set_s: float, shown_s: float) -> bool:
    """Whether a moment was stamped before the clock was set from ``was_s`` to ``set_s``; it went to ``shown_s`` then.

    After a step ahead whatever lies before it, after any step what is still to come.
    """
    return at_s < set_s > was_s or at_s > shown_s + STEP_S


def fed_until(state: JudgeState) -> float:
    """Up to which moment, by the clock of then, any of its meters has judged; 0 = none has."""
    meters = (kept.series.meter for kept in state.series)
    return max((meter.end_s for meter in meters if meter.block != NEVER_FED), default=0.0)


class Clock:
    """The wall clock; ``stepped`` is told of a step, from which moment to which, before anybody sees the new time."""

    def __init__(
        self, wall: Callable[[], float], monotonic: Callable[[], float], stepped: Callable[[float, float], None]
    ) -> None:
        self._wall = wall
        self._monotonic = monotonic
        self._stepped = stepped
        self._seen: tuple[float, float] | None = None

    def __call__(self) -> float:
        """Seconds since the epoch, as the wall clock says."""
        wall_s, ticks_s = self._look()
        seen, self._seen = self._seen, (wall_s, ticks_s)
        if seen is not None:
            was_s = seen[0] + ticks_s - seen[1]
            if abs(wall_s - was_s) >= STEP_S:
                _log.warning("clock_stepped", by_s=round(wall_s - was_s, 3))
                self._stepped(was_s, wall_s)
        return wall_s

    def _look(self) -> tuple[float, float]:
        """Both clocks at one moment: a process that is stopped between two looks at them saw no step."""
        for _ in range(_LOOKS):
            before_s, wall_s, after_s = self._monotonic(), self._wall(), self._monotonic()
            if after_s - before_s < _LOOK_S:
                break
        return wall_s, after_s


class Stamps:
    """What was stamped by the clock before its last steps, in terms of the clock of now.

    A clock is often set by an hour, and by seconds a moment later: each step counts for what was stamped before it.
    """

    def __init__(self) -> None:
        self._steps: deque[tuple[float, float]] = deque(maxlen=_STEPS_MOST)
        self._now_s = 0.0

    def stepped(self, was_s: float, now_s: float) -> None:
        """The clock was set."""
        self._steps.append((was_s, now_s))
        self._now_s = now_s

    def see(self, now_s: float) -> None:
        """The clock shows that."""
        self._now_s = now_s
        if self._steps and now_s - self._steps[-1][1] > STAMPED_S:
            self._steps.clear()

    @property
    def settled(self) -> bool:
        """Nothing can come that was stamped before a step."""
        return not self._steps

    def moment(self, at_s: float) -> float:
        """When it was; what may be of before a step or after it is of after it."""
        moved_s = maybe_s = 0.0
        shown_s = self._now_s
        for was_s, set_s in reversed(self._steps):
            if set_s <= at_s <= shown_s + STEP_S:
                break
            maybe_s += set_s - was_s
            if is_of_before(at_s, was_s, set_s, shown_s):
                moved_s = maybe_s
            shown_s = was_s
        return at_s + moved_s


class SinceState(msgspec.Struct, frozen=True):
    """The beginnings of a state and of its stage as they were stored, and by how much each has moved."""

    said: tuple[float, float] = (0.0, 0.0)
    moved: tuple[float, float] = (0.0, 0.0)


class Since:
    """Since when a standing holds and its stage runs, by the clock of now: what is stored of it stays what it was.

    What lies in the future, by another gateway's clock or by this one before a restart, began when it was first seen.
    """

    def __init__(self) -> None:
        self._said = (0.0, 0.0)
        self._moved = (0.0, 0.0)

    def of(self, standing: Standing, now_s: float) -> tuple[float, float]:
        """The state's beginning, and the stage's."""
        self._take_up(standing)
        since_s, stage_s = (
            now_s if said_s + moved_s > now_s + STEP_S else said_s + moved_s
            for said_s, moved_s in zip(self._said, self._moved, strict=True)
        )
        self._moved = since_s - self._said[0], stage_s - self._said[1]
        return since_s, stage_s

    def began(self, standing: Standing, event_s: float, at_s: float) -> None:
        """What began with an event was stored by the clock of then, which was set meanwhile: it is ``at_s`` now."""
        self._take_up(standing)
        since_by_s, stage_by_s = (
            at_s - event_s if said_s == event_s else moved_s
            for said_s, moved_s in zip(self._said, self._moved, strict=True)
        )
        self._moved = since_by_s, stage_by_s

    def shift(self, standing: Standing, was_s: float, now_s: float) -> None:
        """The clock was set from one moment to another."""
        since_s, stage_s = (moved(at_s, was_s, now_s) for at_s in self.of(standing, was_s))
        self._moved = since_s - self._said[0], stage_s - self._said[1]

    def state(self, standing: Standing) -> SinceState:
        """What must survive a restart."""
        self._take_up(standing)
        return SinceState(self._said, self._moved)

    def restore(self, state: SinceState) -> None:
        """Go on from what was stored."""
        self._said, self._moved = state.said, state.moved

    def _take_up(self, standing: Standing) -> None:
        """What is new in it has not moved."""
        said = (standing.since_s, standing.stage_since_s)
        if said != self._said:
            since_by_s, stage_by_s = self._moved
            self._moved = (
                since_by_s if said[0] == self._said[0] else 0.0,
                stage_by_s if said[1] == self._said[1] else 0.0,
            )
            self._said = said
