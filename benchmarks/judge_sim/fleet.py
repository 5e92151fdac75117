"""The fleet's budget: 200 series exactly at their limit, one budget, through the whole judge (evidence.md 7.5)."""

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from benchmarks.judge_sim.report import Row
from gateway.core.evidence.budget import YEAR_S, Budget
from gateway.core.evidence.judge import Judge
from gateway.core.evidence.readings import Form
from gateway.core.evidence.values import SeriesKey, SeriesSpec

SERIES = 200
LIMIT = 0.01
BUSIEST_PER_S, QUIETEST_PER_S = 2.0, 0.002
BUDGET_PER_DAY = 5.0
BLOCK_S = 10.0
DAY_S = 86_400.0
DAYS = 45
CHUNK_BLOCKS = 360

SCENARIOS = (
    ("independent", False, LIMIT, 1.5, 0.2),
    ("perfectly dependent", True, LIMIT, 1.7, 0.1),
    ("all at half the limit", False, LIMIT / 2.0, 0.05, 0.05),
)
"""Name, whether all series share their luck, true rate, expected trips a day and their standard error."""


def fleet_rows(days: float, seed: int = 75) -> Iterator[Row]:
    """Trips a day against the documented ones and against the budget."""
    for number, (name, dependent, rate, expected, reference_error) in enumerate(SCENARIOS):
        # Where hardly anything trips, fewer days show it as well.
        simulated = days if expected >= 1.0 else days / 3.0
        trips = fleet_trips(np.random.default_rng([seed, number]), simulated, rate, dependent=dependent)
        per_day = trips / simulated
        # Shared luck makes trips come together; the error is then that of fewer, larger events.
        error = math.sqrt(max(per_day, expected) * (3.0 if dependent else 1.0) / simulated)
        slack = 3.0 * math.hypot(error, reference_error)
        yield Row(
            f"7.5 {name}: trips a day",
            f"{expected:g}",
            f"{per_day:.2f}",
            f"± {slack:.2f}, <= {BUDGET_PER_DAY:g}",
            abs(per_day - expected) <= slack and per_day <= BUDGET_PER_DAY,
            f"{simulated:g} days, {SERIES} series",
        )


def fleet_trips(rng: np.random.Generator, days: float, rate: float, *, dependent: bool) -> int:
    """False trips of the whole fleet in ``days``, counted by the judge itself."""
    # Half of a budget drips; this simulation has no stages, so the drip alone is the budget of the claim.
    judge = Judge(Budget(2.0 * BUDGET_PER_DAY * YEAR_S / DAY_S, SERIES))
    spec = SeriesSpec(Form.RATE, LIMIT, block_s=BLOCK_S, deadline_s=0.0)
    keys = [SeriesKey("errors", f"bucket-{index}", "candidate") for index in range(SERIES)]
    for key in keys:
        judge.register(key, spec, 0.0)
    traffic = _traffic_per_s()
    blocks = int(days * DAY_S / BLOCK_S)
    trips = 0
    for first in range(0, blocks, CHUNK_BLOCKS):
        number = min(CHUNK_BLOCKS, blocks - first)
        requests = rng.poisson(traffic * BLOCK_S, size=(number, SERIES))
        bad = _shared_luck(rng, requests, rate) if dependent else rng.binomial(requests, rate)
        for offset in range(number):
            inside = (first + offset + 0.5) * BLOCK_S
            for index in np.flatnonzero(requests[offset]).tolist():
                failed = int(bad[offset, index])
                judge.accept(keys[index], inside, 0.0, int(requests[offset, index]) - failed)
                if failed:
                    judge.accept(keys[index], inside, 1.0, failed)
            trips += len(judge.advance((first + offset + 1) * BLOCK_S))
    return trips


def _traffic_per_s() -> NDArray[np.float64]:
    """Zipf traffic from the busiest to the quietest series."""
    exponent = math.log(BUSIEST_PER_S / QUIETEST_PER_S) / math.log(SERIES)
    ranks: NDArray[np.float64] = np.arange(1, SERIES + 1, dtype=np.float64)
    return BUSIEST_PER_S / ranks**exponent


def _shared_luck(rng: np.random.Generator, requests: NDArray[np.int64], rate: float) -> NDArray[np.int64]:
    """Bad counts when the k-th request of a block fails in all series at once or in none."""
    most = int(requests.max())
    failed = np.cumsum(rng.random((len(requests), most)) < rate, axis=1)
    so_far: NDArray[np.int64] = np.concatenate([np.zeros((len(requests), 1), dtype=np.int64), failed], axis=1)
    shared: NDArray[np.int64] = np.take_along_axis(so_far, requests, axis=1)
    return shared
