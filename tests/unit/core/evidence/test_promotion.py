"""Promises of promotion evidence and the three verdicts."""

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.evidence.feeds import Group
from gateway.core.evidence.ladders import promotion_pair_ladder, promotion_rate_ladder
from gateway.core.evidence.promotion import (
    Evidence,
    Outcome,
    PromotionRule,
    alpha_after_reentries,
    conversation_design_effect,
    decide_promotion,
    release_by_slice,
)

RULE = PromotionRule(alpha=0.05, least_outcomes=300, least_s=1800.0)


def _verdict(**changes):
    numbers = {"tripped": False, "log_evidence": 10.0, "number": 500, "stage_s": 3600.0, "total": 0.0, "rule": RULE}
    return decide_promotion(**(numbers | changes))


SAMPLES = {
    0.001: {0: 3530, 1: 6608, 2: 8939, 3: 10955, 5: 14548, 10: 22537},
    0.01: {0: 352, 1: 659, 2: 891, 3: 1092, 5: 1451, 10: 2248},
    0.05: {0: 69, 1: 130, 2: 176, 3: 216, 5: 287, 10: 445},
}
"""Requests until the evidence is enough, by limit and bad ones among them (docs/evidence.md, section 6)."""


@pytest.mark.parametrize(("limit", "bad", "number"), [(m, b, n) for m, row in SAMPLES.items() for b, n in row.items()])
def test_samples_until_pass_are_the_documented_ones(limit, bad, number):
    """Exactly as many requests as documented are enough, and one fewer is not."""

    def enough(total: int) -> bool:
        evidence = Evidence(5)
        evidence.add((Group(promotion_rate_ladder(limit), {1.0: bad, 0.0: total - bad}),))
        return evidence.log_value >= RULE.needed_log

    assert enough(number)
    assert not enough(number - 1)


def test_pass_says_with_what():
    """A pass names its evidence."""
    verdict = _verdict()
    assert verdict.outcome is Outcome.PASS
    assert verdict.reasons == ("evidence 2.2e+04 from 500 outcomes is enough",)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"number": 299}, "299 of at least 300 outcomes"),
        ({"stage_s": 1799.0}, "stage runs 1799 s of at least 1800 s"),
        ({"log_evidence": 2.0}, "evidence 7.39 of 20 needed"),
        ({"total": 0.01}, "suspicion 0.01 is not below 0.01"),
        ({"rule": PromotionRule(design_effect=4.0)}, "evidence 2.2e+04 of 1.6e+05 needed (design effect 4)"),
    ],
)
def test_each_missing_condition_alone_is_not_enough(changes, reason):
    """Every condition is necessary, and the verdict says which one is missing."""
    verdict = _verdict(**changes)
    assert verdict.outcome is Outcome.NOT_ENOUGH
    assert verdict.reasons == (reason,)


@given(st.floats(-50, 500), st.integers(0, 10**6), st.floats(0, 1e7), st.floats(0, 0.99))
def test_a_trip_is_a_fail_whatever_else(log_evidence, number, stage_s, total):
    """The best evidence does not outweigh a trip."""
    verdict = _verdict(tripped=True, log_evidence=log_evidence, number=number, stage_s=stage_s, total=total)
    assert verdict.outcome is Outcome.FAIL


@given(st.floats(0, 1e9), st.floats(1e-300, 0.99))
def test_no_data_is_never_a_pass(stage_s, alpha):
    """Not even with a rule that asks for nothing: without outcomes the evidence is 1."""
    rule = PromotionRule(alpha=alpha, least_outcomes=0)
    verdict = _verdict(log_evidence=Evidence(5).log_value, number=0, stage_s=stage_s, rule=rule)
    assert verdict.outcome is Outcome.NOT_ENOUGH
    assert "no data" in verdict.reasons


def test_the_evidence_of_a_pool_at_its_limit_is_one_on_average():
    """E[e] = 1 at the limit: the chance of ever promoting a bad pool at level alpha is at most alpha."""
    limit, number = 0.2, 12
    mean = 0.0
    for bad in range(number + 1):
        evidence = Evidence(5)
        evidence.add((Group(promotion_rate_ladder(limit), {1.0: bad, 0.0: number - bad}),))
        mean += math.comb(number, bad) * limit**bad * (1 - limit) ** (number - bad) * evidence.value
    assert mean == pytest.approx(1.0)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 50)), max_size=20), st.integers(0, 19))
def test_evidence_continues_after_a_restart(blocks, cut):
    """Stored and restored in the middle, the evidence is the same to the bit."""
    straight, restarted = Evidence(5), Evidence(5)
    for index, (bad, good) in enumerate(blocks):
        if index == cut:
            state = msgspec.json.decode(msgspec.json.encode(restarted.state()), type=type(restarted.state()))
            restarted = Evidence(5)
            restarted.restore(state)
        for evidence in (straight, restarted):
            evidence.add((Group(promotion_pair_ladder(0.02), {1.0: bad, 0.0: good}),))
    assert straight.state() == restarted.state()
    straight.restart()
    assert straight.state() == Evidence(5).state()


def test_evidence_survives_any_amount_of_good_data():
    """A million good requests overflow no float."""
    evidence = Evidence(5)
    evidence.add((Group(promotion_rate_ladder(0.05), {0.0: 10**6}),))
    assert evidence.log_value > 10_000
    assert math.isfinite(evidence.value)
    assert "e^" in _verdict(log_evidence=evidence.log_value).reasons[0]


def test_evidence_of_another_ladder_does_not_fit():
    """A stored state must have the same bets."""
    with pytest.raises(ValueError, match="bets"):
        Evidence(5).restore(Evidence(6).state())


def test_a_slice_releases_a_thin_bucket_that_is_calm():
    """By slice only from 'not enough', only by a pass, only with a calm meter; and it is marked."""
    thin, wide = _verdict(number=10), _verdict()
    released = release_by_slice(thin, wide)
    assert released.outcome is Outcome.PASS
    assert released.by_slice
    assert released.reasons[0].startswith("by slice: ")
    assert release_by_slice(thin, _verdict(number=10)) is thin
    nervous = _verdict(number=10, total=0.02)
    assert release_by_slice(nervous, wide) is nervous
    failed = _verdict(tripped=True)
    assert release_by_slice(failed, wide) is failed


def test_each_reentry_halves_alpha():
    """Trying again and again must not add up to a promotion by luck."""
    assert [alpha_after_reentries(0.05, tries) for tries in range(3)] == [0.05, 0.025, 0.0125]
    assert sum(alpha_after_reentries(0.05, tries) for tries in range(50)) <= 0.1


def test_the_design_effect_of_conversations():
    """Ten turns at correlation 0.1 need 2.8 times the log evidence; single turns and no correlation need no more."""
    assert conversation_design_effect(10.0, 0.1) == pytest.approx(2.8)
    assert conversation_design_effect(1.0, 0.5) == 1.0
    assert conversation_design_effect(10.0, -0.1) == 1.0


@pytest.mark.parametrize("fields", [{"alpha": 0.0}, {"alpha": 1.0}, {"design_effect": 0.9}])
def test_a_rule_cannot_ask_for_less_than_nothing(fields):
    """Levels outside (0, 1) and design effects below 1 are refused."""
    with pytest.raises(ValueError, match="alpha"):
        PromotionRule(**fields)
