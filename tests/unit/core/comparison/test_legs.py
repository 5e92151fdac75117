"""Three legs become one value; missing legs are values too."""

import json
import random
from pathlib import Path

import pytest

from gateway.core.comparison.legs import LegState, loss_of_triple, missing
from gateway.core.comparison.parts import Agreement, Kind, Unscored, Verdict
from gateway.core.evidence.pairs import PairLoss

VECTORS = Path(__file__).parents[3] / "data" / "stat_vectors.json"


def scored(score: float) -> Agreement:
    return Agreement(Verdict.COMPARED, Kind.CHAT, score)


REFERENCE_FAILED = Agreement(Verdict.REFERENCE_FAILED, Kind.CHAT, 0.0)
OTHER_FAILED = Agreement(Verdict.OTHER_FAILED, Kind.CHAT, 0.0)
BOTH_FAILED = Agreement(Verdict.BOTH_FAILED, Kind.CHAT, 0.0)
UNSCORED = Agreement(Verdict.UNSCORED, Kind.CHAT, unscored=Unscored.TOO_DEEP)


@pytest.mark.parametrize(
    ("noise", "candidate", "loss"),
    [
        (scored(0.75), scored(0.5), PairLoss(0.25, 0.25)),
        (scored(0.5), scored(0.75), PairLoss(-0.25, -0.25)),
        (scored(0.75), OTHER_FAILED, PairLoss(0.75, 0.75)),
        (OTHER_FAILED, scored(0.5), PairLoss(-0.5, -0.5)),
        (OTHER_FAILED, OTHER_FAILED, PairLoss(0.0, 0.0)),
        (REFERENCE_FAILED, REFERENCE_FAILED, PairLoss(0.0, 0.0)),
        (BOTH_FAILED, REFERENCE_FAILED, PairLoss(0.0, 0.0)),
        (REFERENCE_FAILED, BOTH_FAILED, PairLoss(0.0, 0.0)),
        (BOTH_FAILED, BOTH_FAILED, PairLoss(0.0, 0.0, both_failed=True)),
        (scored(0.75), missing(Kind.CHAT), PairLoss(None, 1.0, unscored=True)),
        (missing(Kind.CHAT), scored(0.5), PairLoss(None, 1.0, unscored=True)),
        (UNSCORED, OTHER_FAILED, PairLoss(None, 1.0, unscored=True)),
        (scored(0.75), LegState.MISSING, PairLoss(None, 1.0, unscored=True)),
        (LegState.NOT_ASKED, scored(0.5), None),
        (scored(0.75), LegState.NOT_ASKED, None),
    ],
)
def test_every_row_of_the_table(
    noise: Agreement | LegState, candidate: Agreement | LegState, loss: PairLoss | None
) -> None:
    """The table in the docstring, row by row: trip value, promotion value, and what counts elsewhere."""
    assert loss_of_triple(noise, candidate) == loss


def test_the_three_leg_vectors() -> None:
    """The statistics page's own vectors come out."""
    for vector in json.loads(VECTORS.read_bytes())["three_legs"]:
        noise, candidate = vector["agreement_baseline_baseline"], vector["agreement_candidate_baseline"]
        loss = loss_of_triple(scored(noise), scored(candidate))
        assert loss is not None
        assert loss.trip == pytest.approx(vector["y"], abs=1e-12)


def test_a_pool_against_itself_has_mean_zero_whatever_fails() -> None:
    """With exchangeable legs that fail 10 % each, dropping nothing leaves no bias: |mean| within 4 standard errors."""
    rng = random.Random(4)
    values: list[float] = []
    for _ in range(20_000):
        fails = [rng.random() < 0.1 for _ in range(3)]
        noise, candidate = (_pair(rng, fails[0], fails[leg]) for leg in (1, 2))
        loss = loss_of_triple(noise, candidate)
        assert loss is not None and loss.trip is not None
        values.append(loss.trip)
    mean = sum(values) / len(values)
    deviation = (sum((value - mean) ** 2 for value in values) / len(values)) ** 0.5
    assert abs(mean) < 4 * deviation / len(values) ** 0.5


def _pair(rng: random.Random, reference_failed: bool, other_failed: bool) -> Agreement:
    if reference_failed or other_failed:
        return BOTH_FAILED if reference_failed and other_failed else OTHER_FAILED if other_failed else REFERENCE_FAILED
    return scored(rng.random())
