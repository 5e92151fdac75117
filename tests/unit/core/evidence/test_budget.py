"""Promises of the budget."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.evidence.budget import STAGE_LUMP, YEAR_S, Budget, Ledger, LedgerState


def test_the_default_drip_is_the_documented_one():
    """One false rollback a year, half of it dripping over 1,024 slots."""
    assert Budget().drip_per_s == pytest.approx(1.547270e-11, rel=1e-6)
    assert Budget().lumps_per_year == 0.5


@given(st.floats(1e-4, 100.0), st.integers(1, 10_000))
def test_drips_and_lumps_are_the_whole_budget(false_rollbacks, slots):
    """All slots dripping for a year, plus the lumps, are what was accepted, and not more."""
    budget = Budget(false_rollbacks, slots)
    spent = budget.drip_per_s * slots * YEAR_S + budget.lumps_per_year
    assert spent == pytest.approx(false_rollbacks)


@given(st.lists(st.tuples(st.floats(0, 0.2), st.floats(0, YEAR_S / 4)), max_size=60))
def test_no_year_grants_more_than_its_half(asked):
    """Whatever is asked for, lumps only shrink: never above what was asked, never a total above the cap, never zero."""
    ledger = Ledger(0.5)
    now_s, by_year = 0.0, {}
    for lump, pause_s in asked:
        now_s += pause_s
        granted = ledger.grant(lump, now_s)
        assert 0.0 <= granted <= lump
        assert (granted > 0.0) == (lump > 0.0)
        year = int(now_s // YEAR_S)
        by_year[year] = by_year.get(year, 0.0) + granted
        assert ledger.granted_this_year(now_s) == pytest.approx(by_year[year])
    assert all(total <= 0.5 + 1e-12 for total in by_year.values())


def test_a_usual_year_grants_lumps_in_full():
    """120 series, 4 stages, 50 rollouts: no lump shrinks (0.24 of 0.5)."""
    ledger = Ledger(Budget().lumps_per_year)
    assert all(ledger.grant(STAGE_LUMP, 0.0) == STAGE_LUMP for _ in range(120 * 4 * 50))
    assert ledger.granted_this_year(0.0) == pytest.approx(0.24)


def test_a_new_year_starts_a_new_ledger_and_time_does_not_go_back():
    """The ledger is of the year; a clock that jumps back does not reopen an old one."""
    ledger = Ledger(0.5)
    ledger.grant(0.05, YEAR_S * 3.5)
    assert ledger.granted_this_year(YEAR_S * 3.9) == 0.05
    assert ledger.granted_this_year(YEAR_S * 2.0) == 0.05
    assert ledger.granted_this_year(YEAR_S * 4.0) == 0.0


def test_the_ledger_survives_a_restart():
    """A restart must not grant the year's lumps again."""
    ledger, restarted = Ledger(0.5), Ledger(0.5)
    ledger.grant(0.05, YEAR_S * 50.5)
    restarted.restore(ledger.state())
    assert restarted.state() == LedgerState(50, 0.05)


@pytest.mark.parametrize(("false_rollbacks", "slots"), [(0.0, 1), (1.0, 0), (-1.0, 5)])
def test_a_budget_of_nothing_is_refused(false_rollbacks, slots):
    """Zero false rollbacks cannot be promised by anybody who looks."""
    with pytest.raises(ValueError, match="budget"):
        Budget(false_rollbacks, slots)


def test_a_negative_lump_is_refused():
    """It would pay money back into the ledger."""
    with pytest.raises(ValueError, match="negative"):
        Ledger(0.5).grant(-1e-5, 0.0)
