"""What was noted before a clock was set is never older than it is."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.core.evidence.budget import Ledger, LedgerState
from gateway.core.evidence.dispersion import DAY_S, Dispersion, DispersionState
from gateway.core.evidence.meter import Meter
from gateway.core.evidence.setting import moved

MOMENTS = st.integers(-1_000, 1_000)


@given(MOMENTS, MOMENTS, MOMENTS)
def test_a_moment_is_as_old_as_it_was_or_younger_and_never_in_the_future(at: int, was: int, now: int) -> None:
    """Ahead or back, whatever was noted up to the moment of the step."""
    if at <= was:
        assert moved(at, was, now) <= now
        assert now - moved(at, was, now) <= max(was - at, now - at if now < was else 0)
    if now > was or at > now:
        assert now - moved(at, was, now) == was - at


def test_a_meter_drips_for_time_that_passed() -> None:
    """Whether it was fed by the clock that was ahead, before it, or not at all."""
    fed, idle, never = Meter(1, 1.0, 0.0), Meter(1, 1.0, 0.0), Meter(1, 1.0, 1_000.0)
    for meter, block in ((fed, 100), (idle, 10)):
        meter.feed(block, (block + 1) * 10.0, None)
        meter.grant(block + 1, 0.5)
        meter.last_trip_s = meter.end_s
    for meter in (fed, idle, never):
        meter.shift(100, 40, 10.0)
    assert (fed.block, fed.end_s, fed.last_trip_s) == (40, 410.0, 410.0)
    assert (idle.block, idle.end_s, idle.last_trip_s) == (10, 110.0, 110.0)
    assert never.end_s == 400.0
    assert (fed.seed_by(41, 420.0), idle.seed_by(41, 420.0)) == (10.5, 310.5)
    fed.shift(41, 141, 10.0)
    assert fed.seed_by(141, 1_420.0) == 10.5


def test_years_and_days_of_a_wrong_clock_are_over_with_it() -> None:
    """What was granted stays granted, and a day's measure does not last until that day comes."""
    ledger = Ledger(0.5)
    ledger.restore(LedgerState(2_070, 0.1))
    ledger.shift(2_070 * 31_557_600.0, 56 * 31_557_600.0)
    assert ledger.state() == LedgerState(56, 0.1)
    dispersion = Dispersion()
    dispersion.restore(DispersionState(window=500, last_block=500 * 8_640))
    dispersion.shift(500 * 8_640, 20 * 8_640, 10.0)
    assert (dispersion.state().window, dispersion.state().last_block) == (20, 20 * 8_640)
    assert DAY_S == 86_400.0
