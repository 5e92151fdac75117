"""Values of a series: its key, its specification, what it reports, and the state that survives a restart.

Owns no behaviour but the question when stored money may go on betting, and the conversion of a stored state to another
block length. Called by series, by the judge and by whoever stores or shows them.
"""

from math import ceil, floor

import msgspec

from gateway.core.evidence.blocks import BlockRecord, Overdue
from gateway.core.evidence.dispersion import DispersionState
from gateway.core.evidence.feeds import Feed
from gateway.core.evidence.intervals import MeanState
from gateway.core.evidence.meter import Lump, MeterState, Step
from gateway.core.evidence.promotion import EvidenceState
from gateway.core.evidence.readings import Form


class SeriesKey(msgspec.Struct, frozen=True, order=True):
    """Guard × bucket × pool; slices name what they span as their bucket (``*``, ``task=chat``)."""

    guard: str
    bucket: str
    pool: str

    def __str__(self) -> str:
        return f"{self.guard} of {self.pool} in {self.bucket}"


class SeriesSpec(msgspec.Struct, frozen=True):
    """What a series is. ``limit`` is ignored by slices (each outcome brings its own) and shares (traffic sets it).

    ``block_s`` and ``deadline_s`` are T and D of evidence.md 2.1. ``announced`` series are told every dispatch. Set
    ``measures_dependence`` on baseline series: their design effect and vote correlation are used for all pools.
    """

    form: Form
    limit: float
    feed: Feed = Feed.PRODUCT
    block_s: float = 10.0
    deadline_s: float = 30.0
    announced: bool = False
    overdue: Overdue = Overdue.DROP
    tolerated_ratio: float = 1.0
    grace_s: float = 1.0
    interval_alpha: float = 0.05
    measures_dependence: bool = False

    def same_stakes(self, other: "SeriesSpec") -> bool:
        """Whether money won under ``other`` may go on betting here: it was staked on the same null hypothesis."""
        return (self.form, self.limit, self.feed, self.tolerated_ratio) == (
            other.form,
            other.limit,
            other.feed,
            other.tolerated_ratio,
        )

    @property
    def lag_s(self) -> float:
        """How long after its end a block may still get outcomes nobody has announced."""
        return min(self.grace_s, self.deadline_s) if self.announced else self.deadline_s


class Trip(msgspec.Struct, frozen=True):
    """A meter reached 1: the evidence as it stood, before the reset."""

    block: int
    block_end_s: float
    noticed_s: float
    total: float
    bets: tuple[float, ...]
    number: int
    bad: float


class SeriesState(msgspec.Struct, frozen=True):
    """Everything needed to continue identically after a restart."""

    spec: SeriesSpec
    meter: MeterState
    evidence: EvidenceState
    mean: MeanState
    bad: float
    pending: tuple[BlockRecord, ...]
    next_block: int
    late: int
    stage_s: float
    stage_block: int
    trip: Trip | None = None
    dispersion: DispersionState | None = None


class FedBlock(msgspec.Struct, frozen=True, gc=False):
    """A fed block for the audit trail: the meter's step and what it was made of."""

    step: Step
    number: int
    bad: float


def recut(state: SeriesState, block_s: float) -> SeriesState:
    """The state with block numbers of another length; what was measured over the old blocks is forgotten."""
    ratio = state.spec.block_s / block_s
    next_block = ceil(state.next_block * ratio)
    lumps = tuple(Lump(max(next_block, floor(lump.block * ratio)), lump.amount) for lump in state.meter.lumps)
    dropped = sum(record.outcomes for record in state.pending)
    return msgspec.structs.replace(
        state,
        meter=msgspec.structs.replace(state.meter, block=next_block - 1, lumps=lumps),
        pending=(),
        next_block=next_block,
        late=state.late + dropped,
        stage_block=max(next_block, ceil(state.stage_block * ratio)),
        dispersion=None,
    )
