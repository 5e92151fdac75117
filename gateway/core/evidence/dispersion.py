"""Dependence between outcomes: the design effect and the correlation of neighbouring blocks' votes.

Owns two running measurements of one series of 0/1 outcomes (evidence.md 6 and 8), in O(1) memory: how much more
block sums vary than independent outcomes would, and whether a block's vote predicts the next one's. The first pays
for clustering at promotion, the second says whether the vote feed's blocks are long enough. Called by series; must
not know limits.
"""

import msgspec

from gateway.core.evidence.setting import moved

LEVELS = 11
"""Block spans 1, 2, 4 … 1,024: dependence may be longer than a block (conversations of minutes over blocks of 10 s)."""
LEAST_GROUPS = 100
LEAST_BAD = 30
"""Fewer bad outcomes leave the variance a guess."""
LEAST_NEIGHBOURS = 100
NOISE = 3.0
"""Standard errors of a correlation, 1 / sqrt(pairs), that chance may explain."""
LAG_LIMIT = 0.05
"""Above this the block length should be doubled."""
DAY_S = 86_400.0


class LevelSums(msgspec.Struct, frozen=True):
    """Sums over groups of blocks: groups, outcomes, bad ones, and bad squared over outcomes."""

    groups: int = 0
    number: int = 0
    bad: int = 0
    squares: float = 0.0


class NeighbourSums(msgspec.Struct, frozen=True):
    """Moments over pairs of neighbouring blocks' votes."""

    pairs: int = 0
    x: float = 0.0
    y: float = 0.0
    xx: float = 0.0
    yy: float = 0.0
    xy: float = 0.0


class DispersionState(msgspec.Struct, frozen=True):
    """Running sums of the current and the previous window, plus the groups that are still being filled."""

    window: int = 0
    levels: tuple[LevelSums, ...] = (LevelSums(),) * LEVELS
    neighbours: NeighbourSums = NeighbourSums()
    past_levels: tuple[LevelSums, ...] = (LevelSums(),) * LEVELS
    past_neighbours: NeighbourSums = NeighbourSums()
    filling: tuple[tuple[int, int, int], ...] = ((-1, 0, 0),) * LEVELS
    last_block: int = -(2**62)
    last_vote: float = 0.0


class Dispersion:
    """Measures one series; estimates cover the last one to two windows of ``window_s``."""

    __slots__ = ("_state", "window_s")

    def __init__(self, window_s: float = DAY_S) -> None:
        self.window_s = window_s
        self._state = DispersionState()

    def add(self, block: int, end_s: float, number: int, bad: int) -> None:
        """Count one fed block, in order; blocks without outcomes need not be given."""
        if number <= 0:
            return
        state = self._turn_window(end_s)
        neighbours = state.neighbours
        vote = bad / number
        if block == state.last_block + 1:
            neighbours = _add_neighbours(neighbours, state.last_vote, vote)
        levels, filling = list(state.levels), list(state.filling)
        for level in range(LEVELS):
            group = block >> level
            held, held_number, held_bad = filling[level]
            if held != group and held_number:
                levels[level] = _add_group(levels[level], held_number, held_bad)
                held_number = held_bad = 0
            filling[level] = (group, held_number + number, held_bad + bad)
        self._state = msgspec.structs.replace(
            state, levels=tuple(levels), filling=tuple(filling), neighbours=neighbours, last_block=block, last_vote=vote
        )

    def design_effect(self) -> float | None:
        """Largest ratio of observed to binomial variance over the spans, at least 1; None while little is known."""
        state = self._state
        ratios = [_ratio(_plus(now, past)) for now, past in zip(state.levels, state.past_levels, strict=True)]
        known = [ratio for ratio in ratios if ratio is not None]
        return max(1.0, *known) if known else None

    def lag_correlation(self) -> float | None:
        """Correlation of neighbouring blocks' votes, as much as is certain: three standard errors below what was
        measured, at least 0. None while too little is known.

        Of some hundred pairs a third measure more than ``LAG_LIMIT`` by chance, and people would be told so for days.
        """
        now, past = self._state.neighbours, self._state.past_neighbours
        pairs = now.pairs + past.pairs
        if pairs < LEAST_NEIGHBOURS:
            return None
        x, y = (now.x + past.x) / pairs, (now.y + past.y) / pairs
        spread_x = (now.xx + past.xx) / pairs - x * x
        spread_y = (now.yy + past.yy) / pairs - y * y
        if spread_x <= 0.0 or spread_y <= 0.0:
            return 0.0
        measured = ((now.xy + past.xy) / pairs - x * y) / (spread_x * spread_y) ** 0.5
        return float(max(0.0, measured - NOISE / pairs**0.5))

    def shift(self, was: int, now: int, block_s: float) -> None:
        """The clock was set from one block to another; groups that are being filled end here."""
        state, days = self._state, (int(was * block_s // self.window_s), int(now * block_s // self.window_s))
        window, last_block = moved(state.window, *days), moved(state.last_block, was, now)
        self._state = msgspec.structs.replace(state, window=window, last_block=last_block)

    def state(self) -> DispersionState:
        """What must survive a restart."""
        return self._state

    def restore(self, state: DispersionState) -> None:
        """Continue from a stored state."""
        self._state = state

    def _turn_window(self, end_s: float) -> DispersionState:
        state = self._state
        window = int(end_s // self.window_s)
        if window <= state.window:
            return state
        fresh = msgspec.structs.replace(
            state, window=window, levels=(LevelSums(),) * LEVELS, neighbours=NeighbourSums()
        )
        if window > state.window + 1:
            return msgspec.structs.replace(fresh, past_levels=fresh.levels, past_neighbours=fresh.neighbours)
        return msgspec.structs.replace(fresh, past_levels=state.levels, past_neighbours=state.neighbours)


def longer_block_s(block_s: float, lag_correlation: float | None) -> float:
    """Block length that the measured correlation asks for: the same, or twice as long."""
    return block_s * 2.0 if lag_correlation is not None and lag_correlation >= LAG_LIMIT else block_s


def _add_group(sums: LevelSums, number: int, bad: int) -> LevelSums:
    return LevelSums(sums.groups + 1, sums.number + number, sums.bad + bad, sums.squares + bad * bad / number)


def _add_neighbours(sums: NeighbourSums, x: float, y: float) -> NeighbourSums:
    return NeighbourSums(sums.pairs + 1, sums.x + x, sums.y + y, sums.xx + x * x, sums.yy + y * y, sums.xy + x * y)


def _plus(one: LevelSums, other: LevelSums) -> LevelSums:
    return LevelSums(
        one.groups + other.groups, one.number + other.number, one.bad + other.bad, one.squares + other.squares
    )


def _ratio(sums: LevelSums) -> float | None:
    """Mean of (bad - n p)^2 / (n p (1 - p)) over groups, from their sums: sum of bad^2/n minus p times all bad."""
    if sums.groups < LEAST_GROUPS or sums.bad < LEAST_BAD or sums.bad == sums.number:
        return None
    rate = sums.bad / sums.number
    return (sums.squares - rate * sums.bad) / ((sums.groups - 1) * rate * (1.0 - rate))
