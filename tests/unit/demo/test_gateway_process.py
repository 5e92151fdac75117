"""The demo's gateway is a real ``quantgate serve``; where it does not start, the person reads its own words."""

import socket
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gateway.app import supervisor
from gateway.demo.gateway_process import (
    DRAIN_S,
    STOP_S,
    GatewayError,
    GatewayOptions,
    GatewayProcess,
    is_ready,
)
from gateway.demo.policy import key_variable
from gateway.demo.workload import TENANTS


@pytest.fixture
def options(tmp_path: Path) -> GatewayOptions:
    """The demo's policy on free ports, with keys."""
    policy = tmp_path / "demo.yaml"
    policy.write_text(Path("routing_policies/demo.yaml").read_text())
    keys = {key_variable(tenant): f"key-of-{tenant}" for tenant in TENANTS}
    return GatewayOptions(policy, tmp_path, "127.0.0.1:0", "127.0.0.1:0", 1, keys)


def failure(options: GatewayOptions) -> str:
    """What is said where it does not start."""
    process = GatewayProcess(options)
    process.launch()
    try:
        with pytest.raises(GatewayError) as caught:
            process.wait_ready()
    finally:
        process.stop()
    return str(caught.value)


def test_it_is_the_command_that_anyone_runs(options: GatewayOptions) -> None:
    """The same command as in the documentation, with this interpreter."""
    assert options.command()[:4] == (sys.executable, "-m", "gateway", "serve")
    assert str(options.policy) in options.command()


@pytest.mark.parametrize("option", ["listen", "admin"])
def test_a_port_in_use_is_named_with_its_option(options: GatewayOptions, option: str) -> None:
    """The message says which option and what to do."""
    with socket.create_server(("127.0.0.1", 0)) as holder:
        address = f"127.0.0.1:{holder.getsockname()[1]}"
        said = failure(msgspec.structs.replace(options, **{option: address}))
    assert f"--{option} {address}: the port is already in use" in said
    assert "choose another port" in said


def test_a_policy_that_is_refused_is_told(options: GatewayOptions) -> None:
    """The findings come along, with their places."""
    options.policy.write_text(options.policy.read_text().replace("[q8, bf16]", "[q9, bf16]"))
    assert "demo.yaml" in (said := failure(options))
    assert "there is no pool 'q9'" in said


def test_it_stops_and_is_gone(options: GatewayOptions) -> None:
    """A gateway that is stopped before it is ready leaves no process, and can be stopped again."""
    process = GatewayProcess(options)
    process.launch()
    process.check()
    process.stop()
    process.stop()
    assert process.state() == {}
    assert process.endpoints() == []


def test_it_waits_for_all_that_the_supervisor_waits_for() -> None:
    """One that is killed while it still ends its children would leave them writing into a folder that is removed."""
    assert STOP_S > DRAIN_S + supervisor.WORKER_STOP_S + supervisor.CONTROL_STOP_S


def ready(**change: Any) -> dict[str, Any]:
    """An answer of ``/readyz``."""
    endpoints = {"bf16/0": {"state": "ready"}, "q4/0": {"state": "ready"}}
    return {"workers": {"on_current_generation": 2}, "endpoints": endpoints, **change}


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (ready(), True),
        ({}, False),
        (ready(workers={"on_current_generation": 1}), False),
        (ready(endpoints={}), False),
        (ready(endpoints={"bf16/0": {"state": "ready"}, "q4/0": {"state": "loading"}}), False),
    ],
)
def test_ready_is_every_worker_and_every_endpoint(state: dict[str, Any], expected: bool) -> None:
    """The workload begins only when the first request already finds everything there."""
    assert is_ready(state, 2) is expected
