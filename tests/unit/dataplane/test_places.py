"""A rule's places in one worker: bounded from the moment of admission, whatever the order of events."""

from types import SimpleNamespace
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.mirror import Event
from gateway.dataplane.places import Places
from gateway.model.proving import Shadow

RULE = Shadow("s", lambda _: True, "always", 1.0, "m", "c", "b", inflight=3, queue=2)


def places(worker: int = 0, workers: int = 1, **fields: Any) -> Places:
    return Places(msgspec.structs.replace(RULE, **fields), worker, workers, 0.0)


@given(st.lists(st.sampled_from(["one", "two", "start", "end", "give"]), max_size=60))
def test_no_more_is_admitted_than_there_are_places(steps: list[str]) -> None:
    """In flight and pending together never exceed both limits, in flight never its own, and nothing goes negative."""
    made = places()
    jobs: list[Any] = []
    for step in steps:
        if step in ("one", "two"):
            legs = 1 if step == "one" else 2
            if made.admit(legs, 0.0) is None:
                jobs += [SimpleNamespace(waiting=["x"])] * legs
        elif step == "start" and jobs and made.may_start():
            made.started()
            jobs.pop()
        elif step == "end" and made.inflight:
            made.ended()
        elif step == "give" and jobs:
            made.given_up(jobs.pop())
        assert 0 <= made.inflight <= 3
        assert made.pending == len(jobs)
        assert made.inflight + made.pending <= 5


def test_a_queue_of_none_means_none() -> None:
    """``queue: 0`` starts what has a place and drops the rest."""
    made = places(queue=0, inflight=1)
    assert made.admit(1, 0.0) is None
    assert made.admit(1, 0.0) is Event.QUEUE_FULL


def test_a_worker_without_a_part_of_the_limit_mirrors_nothing() -> None:
    """One place for two workers is one worker's; the other must not let requests wait for ever."""
    assert places(0, 2, inflight=1, queue=4).admit(1, 0.0) is None
    assert places(1, 2, inflight=1, queue=4).admit(1, 0.0) is Event.QUEUE_FULL


def test_the_rate_is_kept_over_time() -> None:
    """Two a second over two workers is one a second here; two legs take two turns; a long pause saves up one second."""
    made = places(0, 2, rate=2.0, inflight=100, queue=100)
    assert made.admit(1, 0.0) is None
    assert made.admit(1, 0.5) is Event.RATE
    assert made.admit(2, 1.0) is None
    assert made.admit(1, 2.0) is Event.RATE
    assert made.admit(1, 3.0) is None
    admitted = [made.admit(1, 100.0) is None for _ in range(5)]
    assert admitted == [True, False, False, False, False]


def test_a_full_queue_takes_nothing_of_the_rate() -> None:
    """What is dropped for want of room was no request of the rule's."""
    made = places(inflight=1, queue=0, rate=1.0)
    made.admit(1, 0.0)
    assert made.admit(1, 10.0) is Event.QUEUE_FULL
    made.started()
    made.ended()
    assert made.admit(1, 10.0) is None


def test_new_limits_hold_at_once_and_keep_what_is_under_way() -> None:
    """A reload with other limits of the same rule."""
    made = places()
    made.admit(2, 0.0)
    made.started()
    made.limit(msgspec.structs.replace(RULE, inflight=1, queue=0), 0, 1)
    assert (made.inflight, made.pending) == (1, 1)
    assert not made.may_start()
    assert made.admit(1, 0.0) is Event.QUEUE_FULL
