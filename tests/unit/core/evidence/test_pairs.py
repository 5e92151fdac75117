"""Promises of pairs: a missing leg is a value."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.evidence.pairs import GapScale, Missing, PairLoss, in_hundredths, pair_loss, three_leg_loss

FAILED, UNSCORED = Missing.FAILED, Missing.UNSCORED
scores = st.floats(0.0, 1.0)


@pytest.mark.parametrize(
    ("baseline", "candidate", "expected"),
    [
        (0.8, 0.5, PairLoss(0.8 - 0.5, 0.8 - 0.5)),
        (0.8, FAILED, PairLoss(0.8, 0.8)),
        (FAILED, 0.7, PairLoss(-0.7, -0.7)),
        (FAILED, FAILED, PairLoss(0.0, 0.0, both_failed=True)),
        (0.8, UNSCORED, PairLoss(None, 1.0, unscored=True)),
        (UNSCORED, 0.8, PairLoss(None, 1.0, unscored=True)),
        (FAILED, UNSCORED, PairLoss(None, 1.0, unscored=True)),
    ],
)
def test_every_combination_of_legs_has_its_loss(baseline, candidate, expected):
    """The table of docs/evidence.md: failures count, broken scorers neither trip nor promote."""
    assert pair_loss(baseline, candidate) == expected


@given(st.one_of(scores, st.just(FAILED)), st.one_of(scores, st.just(FAILED)))
def test_exchanging_the_arms_turns_the_sign(one, other):
    """Neither arm is favoured, so two equal pools have mean loss 0 whatever fails how often."""
    assert pair_loss(one, other).trip == -pair_loss(other, one).trip


def test_equal_pools_that_fail_at_random_have_no_loss():
    """Conditioning on the baseline's success would show 5 points here; values for missing legs show none."""
    rng = random.Random(5)
    losses = []
    for _ in range(20_000):
        legs = [FAILED if rng.random() < 0.05 else 1.0 for _ in range(2)]
        losses.append(pair_loss(*legs).trip)
    assert abs(sum(losses) / len(losses)) < 0.007


def test_three_legs_subtract_the_baselines_own_noise():
    """Disagreeing no more than the baseline with itself is no loss; without the noise leg there is no value."""
    assert three_leg_loss(0.7, 0.7).trip == 0.0
    assert three_leg_loss(1.0, 0.4).trip == pytest.approx(0.6)
    assert three_leg_loss(0.9, FAILED).trip == 0.9
    assert three_leg_loss(None, 0.1) is None


@pytest.mark.parametrize("score", [-0.1, 1.1])
def test_scores_outside_the_unit_interval_are_refused(score):
    """Bets are only fair on bounded losses."""
    with pytest.raises(ValueError, match="score"):
        pair_loss(score, 0.5)


@given(st.floats(-1.0, 1.0))
def test_hundredths_are_close_and_few(loss):
    """Rounded losses are within half a hundredth, legal, and never -0.0."""
    rounded = in_hundredths(loss)
    assert abs(rounded - loss) <= 0.005 + 1e-12
    assert -1.0 <= rounded <= 1.0
    assert str(rounded) != "-0.0"


@given(st.floats(0.001, 10.0), st.floats(0.0, 10.0), st.floats(-100.0, 100.0))
def test_scaled_gaps_are_legal_losses(tolerance, noise_sd, gap):
    """Clipping keeps every loss in [-1, 1], and a gap at the tolerance is a loss at the limit."""
    scale = GapScale(tolerance, noise_sd)
    assert -1.0 <= scale.loss(gap) <= 1.0
    assert scale.loss(tolerance) == pytest.approx(scale.limit)
    assert scale.span == pytest.approx(3.0 * max(tolerance, noise_sd))
    assert 0.0 < scale.limit <= 1.0 / 3.0 + 1e-12


@pytest.mark.parametrize(("tolerance", "noise_sd"), [(0.0, 1.0), (1.0, -1.0)])
def test_a_scale_needs_a_tolerance(tolerance, noise_sd):
    """Without tolerance there is no unit to measure gaps in."""
    with pytest.raises(ValueError, match="tolerance"):
        GapScale(tolerance, noise_sd)
