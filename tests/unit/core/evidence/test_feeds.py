"""Promises of the product and the vote feed."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.evidence.feeds import Feed, Group, count_of, log_factors, log_mean_exp
from gateway.core.evidence.ladders import pair_ladder, rate_ladder

bags = st.dictionaries(st.integers(-100, 100).map(lambda v: v / 100), st.integers(0, 50), max_size=8)


@given(bags, st.randoms(use_true_random=False), st.sampled_from(Feed))
def test_the_order_of_counts_changes_no_bit(counts, rng, feed):
    """A bag filled in another order gives the very same factors."""
    items = list(counts.items())
    rng.shuffle(items)
    ladder = pair_ladder(0.02)
    assert log_factors((Group(ladder, counts),), feed) == log_factors((Group(ladder, dict(items)),), feed)


@given(bags)
def test_product_is_the_sum_over_outcomes(counts):
    """Feeding a bag at once is feeding its outcomes one by one."""
    ladder = pair_ladder(0.05)
    expected = [0.0] * len(ladder.bets)
    for value, count in counts.items():
        for _ in range(count):
            expected = [
                total + math.log1p(bet * (value - 0.05)) for total, bet in zip(expected, ladder.bets, strict=True)
            ]
    got = log_factors((Group(ladder, counts),), Feed.PRODUCT)
    if not any(counts.values()):
        assert got is None
    else:
        assert got == pytest.approx(expected, rel=1e-9, abs=1e-9)


@given(st.integers(0, 40), st.integers(0, 40))
def test_vote_is_one_outcome_at_the_mean(bad, good):
    """A block votes once, with its share of bad outcomes, however many requests it holds."""
    ladder = rate_ladder(0.05)
    got = log_factors((Group(ladder, {1.0: bad, 0.0: good}),), Feed.VOTE)
    if bad + good == 0:
        assert got is None
    else:
        assert got == pytest.approx([math.log1p(bet * (bad / (bad + good) - 0.05)) for bet in ladder.bets], abs=1e-12)


@given(st.floats(0.001, 0.5), st.floats(0.001, 0.5), st.integers(1, 30), st.integers(1, 30))
def test_votes_under_several_limits_are_fair_together(one, other, first, second):
    """Whatever the dependence inside a block, the traffic-weighted vote has expectation 1 at both limits.

    Worst dependence: all outcomes of a limit are bad together. Expectation over the four corners must be 1.
    """
    rungs = len(rate_ladder(one).bets)
    expectation = [0.0] * rungs
    for bad_first in (False, True):
        for bad_second in (False, True):
            weight = (one if bad_first else 1 - one) * (other if bad_second else 1 - other)
            groups = (
                Group(rate_ladder(one), {float(bad_first): first}),
                Group(rate_ladder(other), {float(bad_second): second}),
            )
            steps = log_factors(groups, Feed.VOTE)
            assert steps is not None
            expectation = [total + weight * math.exp(step) for total, step in zip(expectation, steps, strict=True)]
    assert expectation == pytest.approx([1.0] * rungs, rel=1e-9)


def test_a_block_without_outcomes_is_no_block():
    """Empty groups and groups of zeros both mean: factors 1."""
    assert log_factors((), Feed.VOTE) is None
    assert log_factors((Group(rate_ladder(0.1), {1.0: 0}),), Feed.PRODUCT) is None
    assert count_of([Group(rate_ladder(0.1), {1.0: 2, 0.0: 3})]) == 5


@given(st.lists(st.floats(-2000, 2000), min_size=1, max_size=6))
def test_log_mean_exp_survives_any_size(logs):
    """The mean of wealths lies between the largest over their number and the largest."""
    value = log_mean_exp(logs)
    assert max(logs) - math.log(len(logs)) - 1e-9 <= value <= max(logs) + 1e-9


def test_log_mean_exp_is_the_mean():
    """Small numbers agree with the plain formula."""
    logs = [random.Random(1).uniform(-2, 2) for _ in range(5)]
    assert log_mean_exp(logs) == pytest.approx(math.log(sum(map(math.exp, logs)) / 5))
