"""Delay on a fresh canary: how many requests or pairs until a bad pool trips (evidence.md 7.2)."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from benchmarks.judge_sim.drive import Counts
from benchmarks.judge_sim.report import Row
from gateway.core.evidence.feeds import Feed, Group, log_factors
from gateway.core.evidence.ladders import Ladder, pair_ladder, rate_ladder
from gateway.core.evidence.meter import Meter

RUNS = 4_000
WITHIN = 0.10

RATE_LIMIT = 0.01
TOLERANCE = 0.02


class Effect(NamedTuple):
    """A bad pool: chance that an outcome is a loss (1) and a win (-1); a rate guard knows no wins."""

    name: str
    ladder: Ladder
    loss: float
    win: float
    mean_by_lump: tuple[tuple[float, float], ...]


def _rate(name: str, rate: float, *means: tuple[float, float]) -> Effect:
    return Effect(name, rate_ladder(RATE_LIMIT), rate, 0.0, means)


def _pair(points: float, discordant: float, *means: tuple[float, float]) -> Effect:
    name = f"loss {points:.0f} points, {discordant:.0%} discordant"
    loss = points / 100.0
    return Effect(name, pair_ladder(TOLERANCE), (discordant + loss) / 2.0, (discordant - loss) / 2.0, means)


EFFECTS = (
    _rate("errors 1 % -> 3 %", 0.03, (1e-3, 665.0), (1e-5, 1024.0)),
    _rate("errors 1 % -> 10 %", 0.10, (1e-3, 64.0), (1e-5, 98.0)),
    _pair(5.0, 0.05, (1e-3, 590.0), (1e-5, 914.0)),
    _pair(5.0, 0.10, (1e-3, 1698.0), (1e-5, 2705.0)),
    _pair(5.0, 0.20, (1e-3, 3711.0), (1e-5, 5914.0)),
    _pair(10.0, 0.10, (1e-3, 182.0), (1e-5, 279.0)),
    _pair(10.0, 0.20, (1e-3, 494.0), (1e-5, 791.0)),
)


def delay_rows(runs: int, seed: int = 72) -> Iterator[Row]:
    """Mean delays against the documented ones, within 10 % (plus three standard errors when runs are few)."""
    for number, effect in enumerate(EFFECTS):
        for lump, expected in effect.mean_by_lump:
            rng = np.random.default_rng([seed, number, round(-math.log10(lump))])
            delays = np.array([_delay(rng, effect, lump) for _ in range(runs)])
            mean = float(delays.mean())
            slack = WITHIN * expected
            if runs < RUNS:
                slack += 3.0 * float(delays.std()) / math.sqrt(runs)
            yield Row(
                f"7.2 {effect.name}, lump {lump:.0e}",
                f"{expected:.0f}",
                f"{mean:.0f}",
                f"± {slack:.0f}",
                abs(mean - expected) <= slack,
                f"median {np.median(delays):.0f}, P90 {np.quantile(delays, 0.9):.0f}, {runs} runs",
            )


def _delay(rng: np.random.Generator, effect: Effect, lump: float) -> int:
    """Outcomes until a fresh meter trips, which can only happen at a loss."""
    meter = Meter(len(effect.ladder.bets), 0.0, 0.0)
    meter.grant(0, lump)
    seen = 0
    for number, counts in enumerate(_blocks_to_loss(rng, effect)):
        seen += sum(counts.values())
        if meter.feed(number, float(number), log_factors((Group(effect.ladder, counts),), Feed.PRODUCT)).tripped:
            return seen
    raise AssertionError("the stream has no end")


def _blocks_to_loss(rng: np.random.Generator, effect: Effect) -> Iterator[Counts]:
    """Endless blocks, each up to and with the next loss: a geometric gap whose members are wins or ties."""
    win_else = effect.win / (1.0 - effect.loss)
    while True:
        gaps = rng.geometric(effect.loss, size=64) - 1
        wins = rng.binomial(gaps, win_else)
        for gap, won in zip(gaps.tolist(), wins.tolist(), strict=True):
            yield {value: count for value, count in ((0.0, gap - won), (-1.0, won), (1.0, 1)) if count}
