"""The judge's statistics: from streams of outcomes to "leave", "advance" or "cannot say yet", with stated error rates.

Pure: time is an argument, there is no randomness and no I/O. The map, in the order in which an outcome travels:

- ``pairs``, ``sessions``, ``shares``, ``latency``  what one outcome is worth, before it is counted
- ``turns``  how long conversations are, until ``dispersion`` knows how far their outcomes repeat each other
- ``blocks``, ``timeline``  mergeable counts by dispatch time; which blocks are ripe
- ``readings``, ``ladders``, ``feeds``  what a closed block says, and how much is staked on it
- ``meter``  the suspicion meter: seed, multiply, trip, reset
- ``promotion``, ``intervals``, ``dispersion``  evidence for advancing, numbers for screens, dependence
- ``merging``  one judge's blocks from several processes' reports
- ``setting``  a clock that is set: what all moments are called from then on
- ``series``, ``values``  one guard on one pool in one bucket; ``judge``  all of them, with ``budget`` and ``twin``

The rollout engine uses ``Judge``; the vectors' runner and the simulations use the same parts underneath.
"""

from gateway.core.evidence.blocks import BASELINE, CANDIDATE, BlockRecord, Overdue, merge
from gateway.core.evidence.budget import PAIR_LUMP, STAGE_LUMP, Budget
from gateway.core.evidence.feeds import Feed
from gateway.core.evidence.intervals import Interval
from gateway.core.evidence.judge import (
    Judge,
    JudgeState,
    KeyedBlock,
    SeriesTrip,
    TooManySeriesError,
    UnknownSeriesError,
)
from gateway.core.evidence.merging import Merger, Report, Watched, name_of
from gateway.core.evidence.meter import Step, suspicion_of
from gateway.core.evidence.promotion import Outcome, PromotionRule, Verdict, release_by_slice
from gateway.core.evidence.readings import Form
from gateway.core.evidence.series import Series
from gateway.core.evidence.twin import Response, TripDecision
from gateway.core.evidence.values import FedBlock, SeriesKey, SeriesSpec, SeriesState, Trip

__all__ = [
    "BASELINE",
    "CANDIDATE",
    "PAIR_LUMP",
    "STAGE_LUMP",
    "BlockRecord",
    "Budget",
    "FedBlock",
    "Feed",
    "Form",
    "Interval",
    "Judge",
    "JudgeState",
    "KeyedBlock",
    "Merger",
    "Outcome",
    "Overdue",
    "PromotionRule",
    "Report",
    "Response",
    "Series",
    "SeriesKey",
    "SeriesSpec",
    "SeriesState",
    "SeriesTrip",
    "Step",
    "TooManySeriesError",
    "Trip",
    "TripDecision",
    "UnknownSeriesError",
    "Verdict",
    "Watched",
    "merge",
    "name_of",
    "release_by_slice",
    "suspicion_of",
]
