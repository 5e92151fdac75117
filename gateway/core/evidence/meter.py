"""The suspicion meter: a little money that bets against one pool.

Owns the one step of evidence.md 2.2: add the seed (drip and lumps), multiply by the block's factors, trip at 1,
start again at 0. The expected number of false trips is at most the money put in, whatever the traffic and whenever
anybody looks; that holds only if every block is fed once, in order, and the seed is added first, so this module
enforces both. Must not know outcomes, clocks or limits: factors and times are arguments. Called by series, by
simulations and by the vectors' runner.
"""

from bisect import insort
from collections.abc import Sequence
from math import exp, log10

import msgspec

from gateway.core.evidence.setting import moved

TRIP_AT = 1.0
OVERFLOW_LOG = 700.0
"""exp(709) is the largest double; stakes are below 1 before a step, so a clamp at 700 keeps six of them summable."""
LOWEST_SUSPICION = -10.0
"""Floor of the displayed scale; the money itself may be smaller."""
NEVER_FED = -(2**62)
"""Block number of a meter that was never fed; below any real one."""


class BlockRefusedError(ValueError):
    """A block was fed twice or out of order; feeding it would stake the same outcomes again."""


class Lump(msgspec.Struct, frozen=True, order=True, gc=False):
    """Money granted at a stage start; joins the seed of the first fed block numbered ``block`` or later."""

    block: int
    amount: float


class MeterState(msgspec.Struct, frozen=True):
    """What must survive a restart; ``bets`` are the stakes R after block ``block``, which ended at ``end_s``.
    ``unearned`` is 0 in what releases before it stored."""

    bets: tuple[float, ...]
    block: int
    end_s: float
    trips: int = 0
    last_trip_s: float | None = None
    lumps: tuple[Lump, ...] = ()
    unearned: float = 0.0


class Step(msgspec.Struct, frozen=True, gc=False):
    """One fed block: the stakes and their sum before a trip resets them."""

    block: int
    end_s: float
    bets: tuple[float, ...]
    total: float
    tripped: bool


def suspicion_of(total: float) -> float:
    """Displayed suspicion: log10 of the money, from -10 to about 0 (at 0 the meter trips)."""
    return max(LOWEST_SUSPICION, log10(total)) if total > 0.0 else LOWEST_SUSPICION


class Meter:
    """Stakes of one series; ``drip_per_s`` flows for ever, from ``start_s`` on."""

    __slots__ = ("_bets", "_lumps", "_unearned", "block", "drip_per_s", "end_s", "last_trip_s", "trips")

    def __init__(self, rungs: int, drip_per_s: float, start_s: float) -> None:
        if drip_per_s < 0.0:
            raise ValueError(f"a drip cannot be negative, got {drip_per_s!r}")
        self._bets = [0.0] * rungs
        self._lumps: list[Lump] = []
        self._unearned = 0.0
        self.drip_per_s = drip_per_s
        self.end_s = start_s
        self.block = NEVER_FED
        self.trips = 0
        self.last_trip_s: float | None = None

    def grant(self, block: int, amount: float) -> None:
        """Put ``amount`` into the seed of the first fed block >= ``block``; to be decided before its outcomes."""
        if not 0.0 <= amount < TRIP_AT:
            raise ValueError(
                f"a lump must be at least 0 and below {TRIP_AT}, got {amount!r}: it is the chance of a false trip"
            )
        insort(self._lumps, Lump(block, amount))

    def seed_by(self, block: int, end_s: float) -> float:
        """Seed of a block numbered ``block`` that ends at ``end_s``: lumps due plus drip since the last fed one."""
        seed = self.drip_per_s * (end_s - self.end_s)
        for lump in self._lumps:
            if lump.block > block:
                break
            seed += lump.amount
        return seed

    def feed(self, block: int, end_s: float, log_factors: Sequence[float] | None) -> Step:
        """Stake one block (None: no outcomes); raises BlockRefusedError unless it is newer than the last one."""
        if block <= self.block or end_s < self.end_s:
            raise BlockRefusedError(
                f"block {block} ending at {end_s} s: already fed up to block {self.block}, {self.end_s} s"
            )
        seed = self.seed_by(block, end_s)
        share = seed / len(self._bets)
        self._unearned = min(self._unearned, self.total) + seed
        if log_factors is None:
            bets = [stake + share for stake in self._bets]
        else:
            bets = [
                (stake + share) * exp(step if step < OVERFLOW_LOG else OVERFLOW_LOG)
                for stake, step in zip(self._bets, log_factors, strict=True)
            ]
        self.block = block
        self.end_s = end_s
        if self._lumps:
            self._lumps = [lump for lump in self._lumps if lump.block > block]
        total = sum(bets)
        tripped = total >= TRIP_AT
        if tripped:
            self.trips += 1
            self.last_trip_s = end_s
            self._bets = [0.0] * len(bets)
            self._unearned = 0.0
        else:
            self._bets = bets
        return Step(block, end_s, tuple(bets), total, tripped)

    def bets_at(self, block: int, end_s: float) -> tuple[float, ...]:
        """Stakes at ``end_s`` if the blocks since the last fed one, up to ``block``, were empty; changes nothing."""
        share = self.seed_by(block, max(end_s, self.end_s)) / len(self._bets)
        return tuple(stake + share for stake in self._bets)

    def unearned_by(self, block: int, end_s: float) -> float:
        """How much of what ``bets_at`` gives was put in, and not won, since the money was last at its lowest."""
        return min(self._unearned, self.total) + self.seed_by(block, max(end_s, self.end_s))

    @property
    def total(self) -> float:
        """Money after the last fed block."""
        return sum(self._bets)

    def empty(self, block: int, end_s: float) -> None:
        """Take all money out, lumps too, and skip to the end of ``block``: it was staked on another pool."""
        self._bets = [0.0] * len(self._bets)
        self._unearned = 0.0
        self._lumps = [lump for lump in self._lumps if lump.block > block]
        self.block = max(self.block, block)
        self.end_s = max(self.end_s, end_s)

    def shift(self, was: int, now: int, block_s: float) -> None:
        """The clock was set from one block to another: no drip for time that did not pass, none twice for what did."""
        end_s = moved(self.end_s, (was + 1) * block_s, (now + 1) * block_s)
        if end_s != self.end_s:
            self.block += now - was if self.block != NEVER_FED else 0
            self.end_s = end_s
        self._lumps = [Lump(moved(lump.block, was, now), lump.amount) for lump in self._lumps]
        if self.last_trip_s is not None:
            self.last_trip_s = moved(self.last_trip_s, was * block_s, now * block_s)

    def state(self) -> MeterState:
        """Everything needed to continue identically."""
        return MeterState(
            bets=tuple(self._bets),
            block=self.block,
            end_s=self.end_s,
            trips=self.trips,
            last_trip_s=self.last_trip_s,
            lumps=tuple(self._lumps),
            unearned=self._unearned,
        )

    def restore(self, state: MeterState) -> None:
        """Continue from a stored state; the number of bets must be the same."""
        if len(state.bets) != len(self._bets):
            raise ValueError(
                f"stored meter has {len(state.bets)} bets, this one {len(self._bets)}: another kind of guard"
            )
        self._bets = list(state.bets)
        self._lumps = sorted(state.lumps)
        self._unearned = state.unearned
        self.block = state.block
        self.end_s = state.end_s
        self.trips = state.trips
        self.last_trip_s = state.last_trip_s
