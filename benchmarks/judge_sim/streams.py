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
    """Outcomes in order of the requests, and for each request the number of its conversation.

    ``closed`` tells for each (run, conversation) whether it ended within the run.
    """

    bad: Bools
    talks: NDArray[np.int32]
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
    talk = np.tile(np.arange(CONVERSATIONS, dtype=np.int32), (runs, 1))
    next_talk = np.full(runs, CONVERSATIONS, dtype=np.int32)
    bad = np.empty((runs, requests), dtype=np.bool_)
    talks = np.empty((runs, requests), dtype=np.int32)
    closed = np.zeros((runs, requests + CONVERSATIONS), dtype=np.bool_)
    for at in range(requests):
        which = rng.integers(CONVERSATIONS, size=runs)
        bad[:, at] = rng.random(runs) < rates[every, which]
        talks[:, at] = talk[every, which]
        left[every, which] -= 1
        ended = every[left[every, which] <= 0]
        if ended.size:
            slots = which[ended]
            closed[ended, talk[ended, slots]] = True
            talk[ended, slots] = next_talk[ended]
            next_talk[ended] += 1
            rates[ended, slots] = rng.beta(alpha, beta, size=ended.size)
            left[ended, slots] = rng.geometric(1.0 / MEAN_TURNS, size=ended.size)
    return Conversations(bad, talks, closed)


def session_shares(traffic: Conversations, run: int, most_turns: int | None) -> NDArray[np.float64]:
    """Shares of bad turns of the run's finished conversations, in order of their first turns.

    With ``most_turns`` a longer conversation casts a vote for each so many turns, as the engine's session votes do.
    """
    talks = traffic.talks[run]
    order = np.argsort(talks, kind="stable")
    counts = np.bincount(talks, minlength=traffic.closed.shape[1])
    turn = np.arange(len(talks)) - (np.cumsum(counts) - counts)[talks[order]]
    begins = turn % most_turns == 0 if most_turns else turn == 0
    vote = np.cumsum(begins) - 1
    turns = np.bincount(vote)
    shares: NDArray[np.float64] = np.bincount(vote, weights=traffic.bad[run][order]) / turns
    finished = traffic.closed[run][talks[order[begins]]]
    if most_turns:
        finished = finished | (turns == most_turns)
    by_first_turn = np.argsort(order[begins], kind="stable")
    in_order: NDArray[np.float64] = shares[by_first_turn][finished[by_first_turn]]
    return in_order
