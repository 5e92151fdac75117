"""Margins: how much worse than the baseline a candidate does on live traffic, as differences of disjoint groups.

Owns the blocks of both arms until they are complete and the drawing of groups. A difference of means is judged as a
pair's loss: its mean is at most the margin if the candidate's rate is at most the baseline's plus the margin. Called by
``rollouts_feeds``.
"""

import random
from collections.abc import Iterator

from gateway.control import guards
from gateway.control.guards import Wanted
from gateway.core.evidence import BASELINE, CANDIDATE
from gateway.core.evidence.timeline import Timeline, TimelineState


class Margins:
    """Blocks of both arms on their way to differences: candidate minus baseline, over groups that share no outcome.

    As many groups as the smaller arm has outcomes; each holds one of the smaller and a like number of the larger arm,
    drawn by a hash of the block and never by the outcomes. A block without traffic on one side says nothing.
    """

    __slots__ = ("_deadline_s", "_name", "timeline")

    def __init__(self, one: Wanted, start_s: float) -> None:
        guard = one.guard
        by_conversation = guard.feed == "session"
        self._deadline_s = guards.conversation_s(guard) + guards.TURN_S if by_conversation else guards.outcome_s(guard)
        self._name = one.name
        self.timeline = Timeline(guard.block_s, self._deadline_s, start_s)

    def add(self, second: int, value: float, *, candidate: bool) -> None:
        """One outcome of an arm."""
        block = self.timeline.open_at(second, 1)
        if block is not None:
            block.add(value, lane=CANDIDATE if candidate else BASELINE)

    def skip(self, at_s: float) -> None:
        """Forget what was dispatched before the first whole block after ``at_s``."""
        self.timeline.skip_before(self.timeline.first_whole_block(at_s))

    def shift(self, was_s: float, now_s: float) -> None:
        """The clock was set from one moment to another."""
        self.timeline.shift(was_s, now_s)

    def state(self) -> TimelineState:
        """What must survive a restart."""
        return self.timeline.state()

    def restore(self, state: TimelineState) -> None:
        """Go on from what was stored of the same guard."""
        self.timeline.restore(state)

    def ripe(self, now_s: float) -> Iterator[tuple[float, float, int]]:
        """Differences of the blocks that are complete, with counts, and when their block became that.

        That moment follows from the block alone. What is found again after a restart is then said of the same second,
        and other gateways that heard of it before know it.
        """
        for number, block in self.timeline.take_ripe(now_s):
            complete_s = self.timeline.end_of(number) + self._deadline_s
            arms: dict[float, list[float]] = {CANDIDATE: [], BASELINE: []}
            for (lane, value), count in sorted(block.cells.items()):
                arms[lane].extend([value] * count)
            for loss, count in _differences(arms[CANDIDATE], arms[BASELINE], f"{self._name}/{number}"):
                yield complete_s, loss, count


def _differences(candidate: list[float], baseline: list[float], seed: str) -> Iterator[tuple[float, int]]:
    groups = min(len(candidate), len(baseline))
    draw = random.Random(seed)  # noqa: S311 - a reproducible shuffle that must not depend on outcomes
    draw.shuffle(candidate)
    draw.shuffle(baseline)
    counts: dict[float, int] = {}
    for group in range(groups):
        mine, theirs = candidate[group::groups], baseline[group::groups]
        # Hundredths would round one failure among 200 away, and it is always the larger arm's.
        loss = round(sum(mine) / len(mine) - sum(theirs) / len(theirs), 4) + 0.0
        counts[loss] = counts.get(loss, 0) + 1
    yield from sorted(counts.items())
