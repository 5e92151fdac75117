"""Merging: one judge's blocks from the reports of several processes that each see a part of the traffic.

Owns the question when a block is complete: every process that is alive has said that it will report nothing more of
it. The answer follows from the reports and their order alone, so whoever reads the same reports in the same order
closes the same blocks with the same counts. Each process speaks of seconds by its own clock, and a clock that differs
only holds the others up. A process is not waited for once another has reported ``GONE_REPORTS`` times since its last
word; what it brings later of closed blocks is late. A process closes a block once, so what it says of one again is the
same message, or was lost with its restart, and counts once. Pure; called by ``control.rollouts_sharing``.
"""

from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import NamedTuple

import msgspec

from gateway.core.evidence.blocks import BlockRecord, OpenBlock
from gateway.core.evidence.judge import KeyedBlock
from gateway.core.evidence.setting import AHEAD_S, moved
from gateway.core.evidence.timeline import block_number
from gateway.core.evidence.values import SeriesKey, SeriesSpec

GONE_REPORTS = 10
NO_BLOCK = -(2**62)
UNKNOWN_S = 900.0
"""How long blocks of a series are kept that is not watched here (yet)."""


class Report(msgspec.Struct, frozen=True, array_like=True):
    """What one process adds at ``at_s`` by its clock: ``blocks`` that it has closed, by the name of their series.

    ``held`` names the series whose blocks it still holds open longer than the time alone would, with the first of
    them; of every other series it has reported all that ended ``lag_s`` before ``at_s``. ``leaving``: it stops.
    ``set_back``: its clock was, so what it has reported from there on was another time.
    """

    process: str
    at_s: float
    blocks: tuple[tuple[str, BlockRecord], ...] = ()
    held: dict[str, int] = {}
    leaving: bool = False
    set_back: bool = False

    def shifted(self, watched: Mapping[str, "Watched"], was_s: float, now_s: float) -> "Report":
        """The same by a clock that was set from one moment to another."""
        moved = {name: one.blocks_between(was_s, now_s) for name, one in watched.items()}
        return msgspec.structs.replace(
            self,
            at_s=self.at_s + now_s - was_s,
            blocks=tuple(
                (name, msgspec.structs.replace(record, number=record.number + moved.get(name, 0)))
                for name, record in self.blocks
            ),
            held={name: first + moved.get(name, 0) for name, first in self.held.items()},
        )


class Moved(NamedTuple):
    """The clock that all were waiting for was set back: the last block that was complete of a series is ``now``."""

    key: SeriesKey
    was: int
    now: int

    def block(self, block: KeyedBlock) -> KeyedBlock:
        """A block that was complete before, by the clock of now."""
        if block.key != self.key:
            return block
        number = moved(block.record.number, self.was, self.now)
        return block._replace(record=msgspec.structs.replace(block.record, number=number))


class Watched(msgspec.Struct, frozen=True):
    """A series that is judged here."""

    key: SeriesKey
    block_s: float
    lag_s: float

    def blocks_between(self, was_s: float, now_s: float) -> int:
        """By how many blocks a clock moves that is set from one moment to another."""
        return block_number(now_s, self.block_s) - block_number(was_s, self.block_s)


class _Waiting:
    """Blocks of one series on their way to completeness; ``through``: the first block that is not closed yet."""

    __slots__ = ("blocks", "reported_by", "through", "touched_s")

    def __init__(self) -> None:
        self.blocks: dict[int, OpenBlock] = {}
        self.reported_by: dict[int, set[str]] = {}
        self.through = NO_BLOCK
        self.touched_s = 0.0


class Merger:
    """State of the merge after the reports so far. ``late`` counts outcomes of blocks that were closed without them."""

    def __init__(self) -> None:
        self.late = 0
        self.now_s = 0.0
        self._alive: dict[str, Report] = {}
        self._since: dict[str, dict[str, int]] = {}  # by process: others' reports since its last
        self._waiting: dict[str, _Waiting] = {}

    @property
    def alive(self) -> int:
        """Processes that are waited for."""
        return len(self._alive)

    @property
    def behind_s(self) -> float:
        """How far the clocks of those that are alive are apart, as of their last reports."""
        moments = [report.at_s for report in self._alive.values()]
        return max(moments) - min(moments) if moments else 0.0

    def take(self, report: Report, watched: Mapping[str, Watched]) -> Iterator[KeyedBlock | Moved]:
        """Add a report; the blocks that are complete by it, in the order of each series. Consume it fully.

        Before them what moved, for all that was complete before.
        """
        self.now_s = max(self.now_s, report.at_s)
        if report.set_back:
            self._set_back(report, watched)
        for name, record in report.blocks:
            self._add(report.process, name, record)
        self._hear(report)
        if report.set_back:
            yield from self._follow(watched)
        for name in list(self._waiting):
            one = watched.get(name)
            if one is not None:
                yield from self._complete(name, one)
            elif self.now_s - self._waiting[name].touched_s > UNKNOWN_S:
                del self._waiting[name]

    def _hear(self, report: Report) -> None:
        """Remember its promise (its blocks are in ``_waiting`` now), and see who has gone."""
        self._alive[report.process] = msgspec.structs.replace(report, blocks=())
        self._since[report.process] = {}
        for process in list(self._alive):
            others = self._since[process]
            if process != report.process:
                others[report.process] = others.get(report.process, 0) + 1
            if self._alive[process].leaving or max(others.values(), default=0) > GONE_REPORTS:
                del self._alive[process], self._since[process]

    def shift(self, watched: Mapping[str, Watched], was_s: float, now_s: float) -> None:
        """The clock of the only process was set: nobody else has heard of its seconds."""
        self.now_s += now_s - was_s
        self._alive = {name: report.shifted(watched, was_s, now_s) for name, report in self._alive.items()}
        for name, waiting in self._waiting.items():
            moved = watched[name].blocks_between(was_s, now_s) if name in watched else 0
            waiting.blocks = {number + moved: block for number, block in waiting.blocks.items()}
            waiting.reported_by = {number + moved: by for number, by in waiting.reported_by.items()}
            waiting.through += moved
            waiting.touched_s += now_s - was_s

    def _set_back(self, report: Report, watched: Mapping[str, Watched]) -> None:
        """What it will report of blocks that it has reported already is no second word: other requests."""
        for name, waiting in self._waiting.items():
            if (one := watched.get(name)) is None:
                continue
            again = block_number(report.at_s - one.lag_s, one.block_s)
            for number, by in waiting.reported_by.items():
                if number >= again:
                    by.discard(report.process)

    def _follow(self, watched: Mapping[str, Watched]) -> Iterator[Moved]:
        """Where all clocks were ahead the first one that is right is the slowest: blocks are complete by its time."""
        for name, waiting in self._waiting.items():
            one = watched.get(name)
            if one is None or waiting.through == NO_BLOCK:
                continue
            was, now = waiting.through, self._promised(name, one, waiting.through)
            if (was - now) * one.block_s <= AHEAD_S:
                continue  # within what clocks differ by: the others wait for it
            waiting.through = now
            yield Moved(one.key, was - 1, now - 1)

    def _promised(self, name: str, one: Watched, nobody: int) -> int:
        """The first block that somebody may still add to; ``nobody`` with nobody left alive."""
        return min(
            (
                report.held.get(name, block_number(report.at_s - one.lag_s, one.block_s))
                for report in self._alive.values()
            ),
            default=nobody,
        )

    def _add(self, process: str, name: str, record: BlockRecord) -> None:
        waiting = self._waiting.setdefault(name, _Waiting())
        waiting.touched_s = self.now_s
        if record.number < waiting.through:
            self.late += record.outcomes
            return
        by = waiting.reported_by.setdefault(record.number, set())
        if process in by:
            return
        by.add(process)
        waiting.blocks.setdefault(record.number, OpenBlock()).absorb(record)

    def _complete(self, name: str, one: Watched) -> Iterator[KeyedBlock]:
        waiting = self._waiting[name]
        if not waiting.blocks:
            return
        # With nobody left alive what was reported is all there is.
        through = self._promised(name, one, max(waiting.blocks) + 1)
        waiting.through = max(waiting.through, through)
        for number in sorted(number for number in waiting.blocks if number < waiting.through):
            del waiting.reported_by[number]
            yield KeyedBlock(one.key, waiting.blocks.pop(number).record(number))


def name_of(key: SeriesKey, spec: SeriesSpec, salt: str) -> str:
    """A series' name in reports: another null hypothesis, another cut into blocks, another policy, another name."""
    parts = (
        salt,
        key.guard,
        key.bucket,
        key.pool,
        spec.form,
        spec.limit,
        spec.feed,
        spec.tolerated_ratio,
        spec.block_s,
    )
    return blake2b("\x1f".join(str(part) for part in parts).encode(), digest_size=12).hexdigest()
