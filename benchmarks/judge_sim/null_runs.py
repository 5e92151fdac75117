"""False trips of pools at or below the limit: the acceptance table (evidence.md 7.6).

Null runs of 20,000 requests with a lump of 0.01 and no drip; the promise is at most 1 % wherever a feed's assumption
holds. The other cells are outside the promise, and are checked because they say by how much.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.judge_sim.drive import equal_blocks, first_trip, runs_to_bad, runs_to_share
from benchmarks.judge_sim.report import Row, share_row
from benchmarks.judge_sim.streams import (
    BURST_BACKGROUND,
    BURST_LENGTH,
    BURST_RATE,
    Conversations,
    bursts,
    conversations,
    independent,
    session_shares,
)
from gateway.core.evidence.feeds import Feed
from gateway.core.evidence.ladders import rate_ladder
from gateway.core.evidence.sessions import MOST_TURNS

LIMIT = 0.01
LUMP = 0.01
REQUESTS = 20_000
RUNS = 10_000
CHUNK = 500
"""Runs drawn at once; bounds memory at about 150 MB."""

HEALTHY = 0.003
BURSTS_AT_LIMIT = (LIMIT - BURST_BACKGROUND) / (BURST_LENGTH * (BURST_RATE - BURST_BACKGROUND))
BURSTS_HEALTHY = 5e-5

FEEDS = ("product", "vote 50/block", "vote 200/block", "session votes")

Traffic = Conversations | NDArray[np.bool_]


class Stream(NamedTuple):
    """A row of the table: how to draw runs, and the expected share of tripped runs per feed, in percent."""

    name: str
    draw: Callable[[np.random.Generator, int], Traffic]
    expected: tuple[float, ...]


def _talk(rate: float, correlation: float) -> Callable[[np.random.Generator, int], Traffic]:
    return lambda rng, runs: conversations(rng, runs, REQUESTS, rate, correlation)


STREAMS = (
    Stream("independent, at the limit", lambda r, n: independent(r, n, REQUESTS, LIMIT), (0.41, 0.29, 0.21)),
    Stream("bursts, at the limit", lambda r, n: bursts(r, n, REQUESTS, BURSTS_AT_LIMIT), (56.0, 1.7, 0.30)),
    Stream("bursts, healthy", lambda r, n: bursts(r, n, REQUESTS, BURSTS_HEALTHY), (5.9, 0.12, 0.0)),
    Stream("conversations 0.1, at the limit", _talk(LIMIT, 0.1), (11.0, 7.4, 2.6, 0.32)),
    Stream("conversations 0.1, healthy", _talk(HEALTHY, 0.1), (0.19, 0.07, 0.0, 0.0)),
    Stream("conversations 0.3, at the limit", _talk(LIMIT, 0.3), (30.0, 19.0, 5.0, 0.40)),
    Stream("conversations 0.3, healthy", _talk(HEALTHY, 0.3), (1.6, 0.60, 0.03, 0.02)),
)

INDEPENDENT_AT_MOST = 0.006
"""The acceptance list's own bound for the first cell: 0.41 % expected, 0.6 % of 10,000 runs allowed."""


def null_rows(runs: int, seed: int = 76) -> Iterator[Row]:
    """Rows of the table, from ``runs`` runs each."""
    for number, stream in enumerate(STREAMS):
        rng = np.random.default_rng([seed, number])
        trips: list[int] = []
        for start in range(0, runs, CHUNK):
            traffic = stream.draw(rng, min(CHUNK, runs - start))
            counts = _trips(traffic)
            trips = [one + other for one, other in zip(trips or [0] * len(counts), counts, strict=True)]
        for feed, expected, count in zip(FEEDS, stream.expected, trips, strict=False):
            yield share_row(f"7.6 {stream.name}: {feed}", expected, count, runs)
        if number == 0 and runs >= RUNS:
            yield _promise_row("11 independent, product", INDEPENDENT_AT_MOST, trips[0], runs)
        if len(trips) > len(stream.expected):
            name = f"7.6 {stream.name}: votes every {MOST_TURNS} turns"
            yield _promise_row(name, LUMP + 3.0 * (LUMP / runs) ** 0.5 if runs < RUNS else LUMP, trips[-1], runs)


def _promise_row(name: str, at_most: float, count: int, runs: int) -> Row:
    share = count / runs
    return Row(name, f"<= {at_most:.2%}", f"{share:.2%}", "none", share <= at_most, f"{runs} runs")


def _trips(traffic: Traffic) -> list[int]:
    """Tripped runs per feed; where there are conversations also session votes, of whole ones and every 20 turns."""
    talk = traffic if isinstance(traffic, Conversations) else None
    bad = traffic.bad if isinstance(traffic, Conversations) else traffic
    ladder = rate_ladder(LIMIT)
    trips = [0, 0, 0] if talk is None else [0, 0, 0, 0, 0]
    for run in range(bad.shape[0]):
        row = bad[run]
        trips[0] += first_trip(ladder, Feed.PRODUCT, LUMP, runs_to_bad(row)) is not None
        trips[1] += first_trip(ladder, Feed.VOTE, LUMP, equal_blocks(row, 50)) is not None
        trips[2] += first_trip(ladder, Feed.VOTE, LUMP, equal_blocks(row, 200)) is not None
        if talk is not None:
            for column, most_turns in ((3, None), (4, MOST_TURNS)):
                shares = runs_to_share(session_shares(talk, run, most_turns))
                trips[column] += first_trip(ladder, Feed.PRODUCT, LUMP, shares) is not None
    return trips
