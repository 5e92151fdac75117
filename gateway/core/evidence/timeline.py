"""The timeline of a series: which block a request belongs to, when a block is ripe, and what comes too late.

Owns the order: blocks are cut by DISPATCH time, closed strictly in that order, and closed for good. Feeding outcomes
as they complete would show quick failures before slow successes and trip on healthy pools, so completion times do not
exist here. A block is ripe when it has ended and all its announced requests are resolved, or when its end is older
than the deadline. Must not know outcomes' meaning. Called by series only.
"""

from collections.abc import Iterator
from math import ceil, floor

import msgspec

from gateway.core.evidence.blocks import BlockRecord, OpenBlock

_BORDER_SLACK = 1e-9
"""Share of a block by which rounding may miss a border: 0.3 / 0.1 must be block 3, not 2."""


def block_number(at_s: float, block_s: float) -> int:
    """Number of the block of length ``block_s`` that holds the moment ``at_s``; blocks are aligned to second 0."""
    return floor(at_s / block_s + _BORDER_SLACK)


class TimelineState(msgspec.Struct, frozen=True):
    """Where a timeline stands, and the blocks that are open."""

    next_block: int
    late: int = 0
    pending: tuple[BlockRecord, ...] = ()


class Timeline:
    """Blocks of ``block_s`` seconds from the one that holds ``start_s`` on.

    ``deadline_s`` is how long after its end a block may wait for outcomes. With ``announced`` the caller reports every
    dispatch, so a block whose requests are all resolved ripens ``grace_s`` after its end already (the grace covers the
    batching of announcements); without, nobody knows what is missing and every block waits for its deadline.
    """

    __slots__ = ("announced", "block_s", "deadline_s", "grace_s", "late", "next_block", "pending")

    def __init__(
        self, block_s: float, deadline_s: float, start_s: float, *, announced: bool = False, grace_s: float = 0.0
    ) -> None:
        if block_s <= 0.0 or deadline_s < 0.0 or grace_s < 0.0:
            raise ValueError(
                f"need block_s > 0, deadline_s >= 0, grace_s >= 0; got block_s={block_s!r}, deadline_s={deadline_s!r}, "
                f"grace_s={grace_s!r}"
            )
        self.block_s = block_s
        self.deadline_s = deadline_s
        self.announced = announced
        self.grace_s = min(grace_s, deadline_s)
        self.next_block = block_number(start_s, block_s)
        self.pending: dict[int, OpenBlock] = {}
        self.late = 0

    def number_at(self, at_s: float) -> int:
        """Block that holds the moment ``at_s``."""
        return block_number(at_s, self.block_s)

    def end_of(self, number: int) -> float:
        """Second at which block ``number`` ends."""
        return (number + 1) * self.block_s

    def first_whole_block(self, at_s: float) -> int:
        """First block that begins at ``at_s`` or later."""
        return ceil(at_s / self.block_s - _BORDER_SLACK)

    def is_closed(self, dispatched_s: float) -> bool:
        """Whether what was dispatched at ``dispatched_s`` comes too late."""
        return self.number_at(dispatched_s) < self.next_block

    def open_at(self, dispatched_s: float, count: int) -> OpenBlock | None:
        """Block for a request dispatched at ``dispatched_s``; None, and ``count`` more late ones, if it is closed."""
        return self.open_number(self.number_at(dispatched_s), count)

    def open_number(self, number: int, count: int) -> OpenBlock | None:
        """The same by block number."""
        if number < self.next_block:
            self.late += count
            return None
        block = self.pending.get(number)
        if block is None:
            block = self.pending[number] = OpenBlock()
        return block

    def take_ripe(self, now_s: float) -> Iterator[tuple[int, OpenBlock]]:
        """Close and yield the ripe blocks that hold anything, in order; consume it fully."""
        overdue_before = self.number_at(now_s - self.deadline_s)
        ended_before = self.number_at(now_s - self.grace_s) if self.announced else overdue_before
        while self.pending:
            number = min(self.pending)
            if number >= ended_before:
                break
            if number >= overdue_before and self.pending[number].open_requests():
                self.next_block = max(self.next_block, number)
                return
            self.next_block = number + 1
            yield number, self.pending.pop(number)
        self.next_block = max(self.next_block, ended_before)

    def skip_before(self, number: int) -> None:
        """Forget and close every block before ``number``."""
        self.pending = {kept: block for kept, block in self.pending.items() if kept >= number}
        self.next_block = max(self.next_block, number)

    def shift(self, was_s: float, now_s: float) -> None:
        """The clock was set from one moment to another: what is open and what is closed moves along by whole blocks."""
        blocks = self.number_at(now_s) - self.number_at(was_s)
        self.next_block += blocks
        self.pending = {number + blocks: block for number, block in self.pending.items()}

    def state(self) -> TimelineState:
        """What must survive a restart."""
        pending = tuple(block.record(number) for number, block in sorted(self.pending.items()))
        return TimelineState(self.next_block, self.late, pending)

    def restore(self, state: TimelineState) -> None:
        """Go on from what was stored of a timeline whose blocks are as long."""
        self.next_block = state.next_block
        self.late = state.late
        self.pending = {}
        for record in state.pending:
            block = self.open_number(record.number, 0)
            if block is not None:
                block.absorb(record)
