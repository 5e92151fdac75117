"""Promises of failure shares."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.evidence.shares import FirstFailures, share_limit


@given(st.integers(1, 10**6), st.integers(1, 10**6), st.floats(0.1, 10.0))
def test_the_limit_is_the_share_of_an_arm_that_is_just_tolerable(candidate, baseline, ratio):
    """If the candidate fails at ratio times the baseline's rate, its expected share of failures is the limit."""
    limit = share_limit(candidate, baseline, ratio)
    assert limit is not None
    assert limit == pytest.approx(candidate * ratio * 0.01 / (candidate * ratio * 0.01 + baseline * 0.01))


def test_an_arm_without_traffic_gives_no_limit():
    """Failures of the only arm say nothing about the other."""
    assert share_limit(0, 40) is None
    assert share_limit(40, 0) is None


def test_a_ratio_of_nothing_is_refused():
    """A tolerated ratio of 0 would forbid every failure."""
    with pytest.raises(ValueError, match="ratio"):
        share_limit(1, 1, 0.0)


def test_only_the_first_failure_of_a_conversation_counts():
    """Later failures and later requests of a failed conversation are out of both counts."""
    failures = FirstFailures()
    assert failures.counts("a", 0.0)
    assert failures.failed("a", 1.0)
    assert not failures.failed("a", 2.0)
    assert not failures.counts("a", 3.0)
    assert failures.counts("b", 3.0)


def test_a_conversation_is_forgotten_after_silence():
    """Memory is for living conversations; a sign of life renews it."""
    failures = FirstFailures(forget_s=100.0)
    failures.failed("a", 0.0)
    assert not failures.counts("a", 90.0)
    assert not failures.counts("a", 180.0)
    assert failures.counts("a", 281.0)
    assert len(failures) == 0


def test_memory_is_bounded_by_the_longest_silent():
    """With too many conversations the one silent for longest is forgotten."""
    failures = FirstFailures(most=2)
    failures.failed("a", 0.0)
    failures.failed("b", 1.0)
    failures.counts("a", 2.0)
    failures.failed("c", 3.0)
    assert len(failures) == 2
    assert not failures.counts("a", 4.0)
    assert failures.counts("b", 4.0)


def test_who_failed_is_known_after_a_restart():
    """In the order of the last signs of life, so that the oldest is still forgotten first."""
    first, again = FirstFailures(most=2), FirstFailures(most=2)
    first.failed("a", 0.0)
    first.failed("b", 1.0)
    first.counts("a", 2.0)
    again.restore(first.state())
    assert not again.counts("a", 3.0) and again.state() == (("b", 1.0), ("a", 3.0))
    again.failed("c", 4.0)
    assert again.counts("b", 5.0)
    assert first.state(every=1 << 30) == ()
