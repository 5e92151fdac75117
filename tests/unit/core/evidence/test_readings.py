"""Promises of readings: what a block says under each form of guard."""

import math

import pytest

from gateway.core.evidence.blocks import BAD, BASELINE, CANDIDATE, GOOD, OpenBlock
from gateway.core.evidence.ladders import rate_ladder
from gateway.core.evidence.readings import Form, read_block, rungs_of


def _block(cells, announced=(), unscored: int = 0) -> OpenBlock:
    block = OpenBlock()
    for lane, value, count in cells:
        block.add(value, count, lane)
    for lane, count in announced:
        block.announce(count, lane)
    block.add_unscored(unscored)
    return block


def test_a_rate_stakes_every_outcome_on_its_limit():
    """Counts go to the rate ladder of the guard's limit, and turned round to promotion."""
    reading = read_block(Form.RATE, 0.05, 1.0, _block([(0.0, BAD, 2), (0.0, GOOD, 8)]))
    (group,), (promotion,) = reading.groups, reading.promotion_groups
    assert group.ladder is rate_ladder(0.05)
    assert dict(group.counts) == dict(promotion.counts) == {BAD: 2, GOOD: 8}
    assert promotion.ladder.bets[0] < 0.0
    assert (reading.number, reading.bad) == (10, 2.0)


def test_an_unscored_pair_trips_nothing_and_promotes_nothing():
    """It has no value for suspicion and the worst loss for promotion."""
    reading = read_block(Form.PAIR, 0.02, 1.0, _block([(0.0, 1.0, 1), (0.0, 0.0, 4)], unscored=3))
    assert dict(reading.groups[0].counts) == {1.0: 1, 0.0: 4}
    assert dict(reading.promotion_groups[0].counts) == {1.0: 4, 0.0: 4}
    assert reading.number == 5


def test_a_slice_keeps_each_requests_own_limit():
    """One group per limit, each on its own ladder."""
    reading = read_block(Form.SLICE, math.nan, 1.0, _block([(0.01, BAD, 1), (0.05, BAD, 2), (0.05, GOOD, 3)]))
    assert [(group.ladder.limit, dict(group.counts)) for group in reading.groups] == [
        (0.01, {BAD: 1}),
        (0.05, {GOOD: 3, BAD: 2}),
    ]
    assert reading.number == 6


def test_a_share_counts_failures_only_and_takes_its_limit_from_traffic():
    """Requests that did not fail set the limit and are no outcomes."""
    cells = [(CANDIDATE, BAD, 3), (CANDIDATE, GOOD, 47), (BASELINE, BAD, 9), (BASELINE, GOOD, 941)]
    (group,) = read_block(Form.SHARE, math.nan, 1.0, _block(cells)).groups
    assert group.ladder.limit == pytest.approx(0.05)
    assert dict(group.counts) == {BAD: 3, GOOD: 9}


def test_open_requests_are_traffic_of_a_share():
    """A request that was dispatched and is still open belongs to its arm's part of the traffic."""
    cells = [(CANDIDATE, BAD, 1), (BASELINE, GOOD, 10)]
    reading = read_block(Form.SHARE, math.nan, 1.0, _block(cells, announced=[(CANDIDATE, 10), (BASELINE, 10)]))
    assert reading.groups[0].ladder.limit == pytest.approx(0.5)


@pytest.mark.parametrize(
    "cells",
    [
        [(CANDIDATE, GOOD, 5), (BASELINE, GOOD, 5)],
        [(CANDIDATE, BAD, 5)],
        [(BASELINE, BAD, 5)],
    ],
)
def test_a_share_without_failures_or_without_an_arm_is_empty(cells):
    """No failure, or nobody to compare with, says nothing about blame."""
    assert read_block(Form.SHARE, math.nan, 1.0, _block(cells)).groups == ()


@pytest.mark.parametrize(
    ("form", "value", "lane"),
    [
        (Form.RATE, 0.5, 0.0),
        (Form.RATE, 1.0, 1.0),
        (Form.SESSION, 1.5, 0.0),
        (Form.PAIR, -1.5, 0.0),
        (Form.SHARE, 0.5, CANDIDATE),
        (Form.SHARE, 1.0, 2.0),
        (Form.SLICE, 1.0, 0.0),
        (Form.RATE, math.nan, 0.0),
    ],
)
def test_outcomes_a_form_cannot_bet_on_are_refused(form, value, lane):
    """A value or lane that would make the bets unfair must never be counted."""
    with pytest.raises(ValueError, match="guard"):
        form.check(value, lane)


@pytest.mark.parametrize(
    ("form", "value", "lane"),
    [
        (Form.RATE, 1.0, 0.0),
        (Form.SESSION, 0.3, 0.0),
        (Form.PAIR, -0.3, 0.0),
        (Form.SHARE, 0.0, BASELINE),
        (Form.SLICE, 0.2, 0.01),
    ],
)
def test_legal_outcomes_pass(form, value, lane):
    """What a form is for is accepted."""
    form.check(value, lane)


def test_pairs_have_five_bets_and_rates_six():
    """The number of stakes of each form."""
    assert rungs_of(Form.PAIR) == (5, 5)
    assert rungs_of(Form.SHARE) == (6, 5)
    assert (Form.PAIR.relative, Form.SHARE.relative, Form.RATE.relative) == (True, True, False)
