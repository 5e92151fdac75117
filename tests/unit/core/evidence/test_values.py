"""Promises of a series' values: when stored money may go on betting."""

import msgspec
import pytest

from gateway.core.evidence.feeds import Feed
from gateway.core.evidence.readings import Form
from gateway.core.evidence.series import Series
from gateway.core.evidence.values import SeriesKey, SeriesSpec, recut

SPEC = SeriesSpec(Form.RATE, 0.05, block_s=10.0, deadline_s=30.0)


@pytest.mark.parametrize(
    ("changes", "same"),
    [
        ({"deadline_s": 5.0}, True),
        ({"block_s": 20.0}, True),
        ({"limit": 0.06}, False),
        ({"feed": Feed.VOTE}, False),
        ({"form": Form.SESSION}, False),
        ({"tolerated_ratio": 1.1}, False),
    ],
)
def test_money_belongs_to_a_null_hypothesis(changes, same):
    """Another limit, form, feed or ratio is another null; lengths of time are not."""
    assert SPEC.same_stakes(msgspec.structs.replace(SPEC, **changes)) is same


@pytest.mark.parametrize("block_s", [20.0, 5.0, 30.0])
def test_money_and_lumps_survive_another_block_length(block_s):
    """After re-cutting, money and coming lumps are the same, order is kept, and open counts are counted as late."""
    series = Series(SPEC, 1e-9, 0.0)
    series.grant(0.0, 1e-3)
    series.accept(5.0, 1.0, 2)
    series.advance(100.0)
    series.grant(115.0, 1e-4)
    series.accept(112.0, 0.0, 7)
    money = series.meter.total
    longer = Series(msgspec.structs.replace(SPEC, block_s=block_s), 1e-9, 0.0)
    longer.restore(series.state())
    assert longer.meter.total == money
    assert longer.timeline.late == 7
    assert not longer.accept(69.0, 1.0)
    assert longer.accept(130.0, 0.0)
    assert longer.advance(10_000.0) is None
    assert sum(longer.meter.bets_at(10**6, 10_000.0)) > 1e-5
    assert longer.state().meter.lumps == ()


def test_recut_starts_at_a_block_that_is_wholly_new():
    """No second that was fed is fed again."""
    series = Series(SPEC, 0.0, 0.0)
    series.advance(40.0)
    assert series.timeline.next_block == 1
    assert recut(series.state(), 20.0).next_block == 1


def test_keys_read_like_words():
    """A key in a log line says guard, pool and bucket."""
    assert str(SeriesKey("errors", "chat/short", "fp8")) == "errors of fp8 in chat/short"
