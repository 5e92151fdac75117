"""From answers to a state that does not flap."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.control.health import HealthTrack
from gateway.model.enums import EndpointState
from gateway.runtimes.adapter import HealthState

UP, LOAD, DOWN = HealthState.READY, HealthState.LOADING, HealthState.UNHEALTHY


@pytest.mark.parametrize(
    ("answers", "state"),
    [
        ([], EndpointState.UNKNOWN),
        ([UP], EndpointState.READY),
        ([DOWN, DOWN], EndpointState.UNKNOWN),
        ([DOWN, DOWN, DOWN], EndpointState.UNHEALTHY),
        ([UP, DOWN, DOWN], EndpointState.READY),
        ([UP, DOWN, DOWN, DOWN], EndpointState.UNHEALTHY),
        ([UP, DOWN, DOWN, UP, DOWN, DOWN], EndpointState.READY),
        ([DOWN, DOWN, DOWN, UP], EndpointState.UNHEALTHY),
        ([DOWN, DOWN, DOWN, UP, UP], EndpointState.READY),
        ([DOWN, DOWN, DOWN, UP, DOWN, UP], EndpointState.UNHEALTHY),
        ([LOAD], EndpointState.LOADING),
        ([UP, LOAD], EndpointState.LOADING),
        ([LOAD, UP], EndpointState.READY),
        ([LOAD, DOWN, DOWN], EndpointState.LOADING),
    ],
)
def test_three_failures_out_two_successes_in(answers, state):
    """One lost probe changes nothing; loading is believed at once."""
    track = HealthTrack()
    for answer in answers:
        track.step(answer)
    assert track.state is state


@given(st.lists(st.sampled_from([UP, LOAD, DOWN]), max_size=30))
def test_the_last_answers_decide_whatever_came_before(answers):
    """Three failures always end unhealthy, two successes always ready."""
    track = HealthTrack()
    for answer in answers:
        track.step(answer)
    for _ in range(3):
        track.step(DOWN)
    assert track.state is EndpointState.UNHEALTHY
    track.step(UP)
    assert track.step(UP) is EndpointState.READY
    assert track.settled


def test_a_first_failure_makes_probing_eager():
    """A change that may be coming is looked at sooner."""
    track = HealthTrack()
    track.step(UP)
    assert track.settled
    track.step(DOWN)
    assert not track.settled
