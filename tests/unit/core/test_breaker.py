"""Ejection counts only the pool's faults in a row; the retry budget bounds a storm."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.core.breaker import BASE_S, BUDGET_FLOOR, BUDGET_WINDOW_S, CONSECUTIVE, LONGEST_S, Breaker, RetryBudget


def test_consecutive_failures_eject_and_time_heals() -> None:
    """The fifth failure in a row ejects for the base time; then the endpoint is offered again."""
    breaker = Breaker()
    ejected = [breaker.failure(10.0) for _ in range(CONSECUTIVE)]
    assert ejected == [False] * (CONSECUTIVE - 1) + [True]
    assert breaker.ejected(10.0 + BASE_S - 0.1)
    assert not breaker.ejected(10.0 + BASE_S)


def test_one_failure_after_an_ejection_ejects_longer() -> None:
    """Half-open: one failure is enough, and each ejection in a row is longer, up to the cap."""
    breaker = Breaker()
    now = 0.0
    for _ in range(CONSECUTIVE):
        breaker.failure(now)
    lengths = []
    for _ in range(20):
        now += LONGEST_S + 1
        assert breaker.failure(now)
        length = next(s for s in range(1, int(LONGEST_S) + 2) if not breaker.ejected(now + s))
        lengths.append(length)
    assert lengths[0] == int(2 * BASE_S)
    assert lengths == sorted(lengths)
    assert lengths[-1] == int(LONGEST_S)


def test_success_heals_wholly() -> None:
    """After a success the count starts anew."""
    breaker = Breaker()
    for _ in range(CONSECUTIVE - 1):
        breaker.failure(0.0)
    breaker.success()
    assert not breaker.failure(0.0)
    assert not breaker.ejected(0.1)


def test_budget_has_a_floor_and_a_share() -> None:
    """A few retries are always allowed; beyond them a fifth of the recent requests; old windows are forgotten."""
    budget = RetryBudget(0.2)
    assert [budget.allow(1.0, 1.0) for _ in range(BUDGET_FLOOR + 1)] == [True] * BUDGET_FLOOR + [False]
    for _ in range(100):
        budget.request(1.0)
    assert sum(budget.allow(1.0, 1.0) for _ in range(100)) == 20 - BUDGET_FLOOR
    assert budget.allow(100.0, 100.0)


def test_a_wave_of_late_retries_leaves_nothing_behind() -> None:
    """Retries of requests that timed out are forgotten together with them: whoever comes next can fail over."""
    budget = RetryBudget(1.0)
    for _ in range(100):
        budget.request(0.9 * BUDGET_WINDOW_S)
    assert all(budget.allow(1.1 * BUDGET_WINDOW_S, 0.9 * BUDGET_WINDOW_S) for _ in range(100))
    for number in range(BUDGET_FLOOR + 5):
        now = 2.0 * BUDGET_WINDOW_S + number
        budget.request(now)
        assert budget.allow(now, now)


def test_requests_older_than_the_reckoning_lean_on_those_that_begin_now() -> None:
    """A wave of timeouts long after its requests began is no storm: a share of today's requests, and no more."""
    budget = RetryBudget(0.2)
    for _ in range(100):
        budget.request(1.0)
    late = 6.0 * BUDGET_WINDOW_S
    for _ in range(50):
        budget.request(late)
    assert sum(budget.allow(late, 1.0) for _ in range(100)) == 10


@given(st.lists(st.tuples(st.floats(0, 300), st.floats(0, BUDGET_WINDOW_S)), max_size=60))
def test_one_retry_each_is_never_too_many_where_all_may_be_retried(requests: list[tuple[float, float]]) -> None:
    """With a share of all, a request's one retry is allowed whatever began and failed before it, and however late."""
    budget = RetryBudget(1.0)
    steps = [(began, None) for began, _ in requests] + [(began + wait, began) for began, wait in requests]
    for now, began in sorted(steps, key=lambda step: (step[0], step[1] is not None)):
        if began is None:
            budget.request(now)
        else:
            assert budget.allow(now, began)
