"""The contract's values: health, load, probes by purpose."""

from gateway.model.enums import EndpointState
from gateway.runtimes.adapter import ATTESTING, Health, HealthState, Load, Purpose
from gateway.runtimes.llama_cpp import ADAPTER


def test_health_states_are_endpoint_states() -> None:
    """What a runtime says of itself is a state that the table knows."""
    for state in HealthState:
        assert EndpointState(state.value).value == state.value


def test_only_ready_is_ready() -> None:
    """Loading is not offered requests."""
    assert [state for state in HealthState if Health(state).ready] == [HealthState.READY]


def test_a_load_without_numbers_is_unknown() -> None:
    """Only numbers a balancer can use make a load known."""
    assert not Load(1.0, slots=4, prefix_hits=3.0).known
    assert Load(1.0, running=0).known
    assert Load(1.0, kv_usage=0.0).known


def test_probes_by_purpose() -> None:
    """The prober asks by purpose, and attestation asks for all but health."""
    assert [probe.path for probe in ADAPTER.probes_for(Purpose.HEALTH)] == ["/health"]
    assert set(Purpose) - {Purpose.HEALTH} == ATTESTING
    assert len(ADAPTER.probes_for(*Purpose)) == len(ADAPTER.probes)
