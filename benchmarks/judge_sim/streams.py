"""Simulated outcomes: independent, in bursts, or clustered in conversations. Numpy arrays, one row per run, seeded by
the caller.

The models and their numbers are those of the acceptance table: bursts of 30 requests at 80 % bad over a background of
0.2 %; 20 interleaved conversations of geometric length (mean 10 turns), each with its own Beta-distributed rate.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]

BURST_LENGTH = 30
BURST_RATE = 0.80
BURST_BACKGROUND = 0.002
CONVERSATIONS = 20
MEAN_TURNS = 10
VOTE_TURNS = 20
"""A session vote closes at 20 turns; longer conversations go on as another vote."""


def independent(rng: np.random.Generator, runs: int, requests: int, rate: float) -> Bools:
    """Independent outcomes at ``rate``."""
    return rng.random((runs, requests)) < rate


def bursts(rng: np.random.Generator, runs: int, requests: int, start_rate: float) -> Bools:
    """Background failures and bursts that start with probability ``start_rate`` at each request outside a burst."""
    rates = np.full((runs, requests), BURST_BACKGROUND)
    for run in range(runs):
        at = int(rng.geometric(start_rate))
        while at < requests:
            rates[run, at : at + BURST_LENGTH] = BURST_RATE
            at += BURST_LENGTH + int(rng.geometric(start_rate))
    return rng.random((runs, requests)) < rates


class Conversations(NamedTuple):
    """Outcomes in order of the requests, and for each request the number of the session vote it belongs to.

    ``closed`` tells for each (run, vote) whether that vote was complete within the run.
    """

    bad: Bools
    votes: NDArray[np.int32]
    closed: Bools


def conversations(rng: np.random.Generator, runs: int, requests: int, rate: float, correlation: float) -> Conversations:
    """Each request belongs to a random one of the open conversations; a finished one is replaced by a new one.

    ``correlation`` is the one between outcomes of the same conversation: rates are Beta with mean ``rate``.
    """
    strength = (1.0 - correlation) / correlation
    alpha, beta = rate * strength, (1.0 - rate) * strength
    every = np.arange(runs)
    rates = rng.beta(alpha, beta, size=(runs, CONVERSATIONS))
    left = rng.geometric(1.0 / MEAN_TURNS, size=(runs, CONVERSATIONS))
    turns = np.zeros((runs, CONVERSATIONS), dtype=np.int32)
    vote = np.tile(np.arange(CONVERSATIONS, dtype=np.int32), (runs, 1))
    next_vote = np.full(runs, CONVERSATIONS, dtype=np.int32)
    bad = np.empty((runs, requests), dtype=np.bool_)
    votes = np.empty((runs, requests), dtype=np.int32)
    closed = np.zeros((runs, requests + CONVERSATIONS), dtype=np.bool_)
    for at in range(requests):
        which = rng.integers(CONVERSATIONS, size=runs)
        bad[:, at] = rng.random(runs) < rates[every, which]
        votes[:, at] = vote[every, which]
        left[every, which] -= 1
        turns[every, which] += 1
        over = left[every, which] <= 0
        done = every[over | (turns[every, which] >= VOTE_TURNS)]
        if done.size:
            closed[done, vote[done, which[done]]] = True
            vote[done, which[done]] = next_vote[done]
            next_vote[done] += 1
            turns[done, which[done]] = 0
        ended = every[over]
        if ended.size:
            rates[ended, which[ended]] = rng.beta(alpha, beta, size=ended.size)
            left[ended, which[ended]] = rng.geometric(1.0 / MEAN_TURNS, size=ended.size)
    return Conversations(bad, votes, closed)


def session_shares(traffic: Conversations, run: int) -> NDArray[np.float64]:
    """Shares of bad turns of the run's complete votes, in order of their first turns."""
    votes = traffic.votes[run]
    turns = np.bincount(votes, minlength=traffic.closed.shape[1])
    bad = np.bincount(votes, weights=traffic.bad[run], minlength=traffic.closed.shape[1])
    complete = traffic.closed[run] & (turns > 0)
    shares: NDArray[np.float64] = bad[complete] / turns[complete]
    return shares
