"""The probers of a table: started and stopped with it, and telling workers."""

import asyncio
import dataclasses
import time

import msgspec
import pytest

from gateway.control import prober as prober_module
from gateway.control.endpoints import EndpointView
from gateway.control.probes import Probes, describe
from gateway.model.enums import EndpointState
from gateway.runtimes import ADAPTERS
from gateway.runtimes.adapter import Load
from gateway.runtimes.attestation import Attestation, ServedModel
from gateway.simulator.config import Config
from gateway.simulator.server import Server

FAST = {"vllm": msgspec.structs.replace(ADAPTERS["vllm"], health_interval_s=0.01, load_interval_s=0.01)}


@pytest.fixture(autouse=True)
def eager(monkeypatch):
    """Probe without the pauses of real life."""
    monkeypatch.setattr(prober_module, "EAGER_S", 0.01)


@pytest.fixture
async def runtime():
    """A simulated runtime that serves m."""
    server = Server(Config(model="m"), lambda: 1.0, 1)
    await server.start("127.0.0.1", 0)
    yield server
    await server.stop()


@pytest.fixture
async def probes():
    """Running, telling into ``probes.told``."""
    told = []
    made = Probes(told.append, FAST, time.monotonic, lambda: 0.5)
    made.told = told
    task = asyncio.ensure_future(made.run())
    yield made
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert not made._tasks and not made._ending


@pytest.fixture
def table(policy, compile_):
    """Tables by ``policy``'s arguments."""
    return lambda *args, **options: compile_(policy(*args, **options).document, 1, {})


def running():
    """Names of the prober tasks that are alive."""
    return sorted(task.get_name() for task in asyncio.all_tasks() if task.get_name().startswith("prober "))


async def test_workers_are_told_when_a_state_changes(probes, table, runtime, eventually):
    """Ready reaches them without waiting for the next regular message."""
    probes.take_table(table({"bf16": 1}, url=f"http://127.0.0.1:{runtime.bound}"))
    await eventually(lambda: any(r.state == "ready" for message in probes.told for r in message.reports))
    assert [view.endpoint for view in probes.views()] == ["bf16/0"]
    assert probes.message().reports[0].state == "ready"


async def test_b93_a_reload_stops_the_tasks_of_endpoints_that_are_gone(probes, table, eventually):
    """After twenty reloads there is exactly one task per endpoint of the last table, and no other view."""
    for number in range(20):
        probes.take_table(table({f"p{number}": 2, "kept": 1}))
        await asyncio.sleep(0.005)
    await eventually(lambda: running() == ["prober kept/0", "prober p19/0", "prober p19/1"])
    assert [view.endpoint for view in probes.views()] == ["kept/0", "p19/0", "p19/1"]


async def test_an_unchanged_endpoint_keeps_its_prober_over_a_reload(probes, table, runtime, eventually):
    """Neither its task nor what is known of it starts over."""
    url = f"http://127.0.0.1:{runtime.bound}"
    probes.take_table(table({"bf16": 1}, url=url))
    await eventually(lambda: probes.views() and probes.views()[0].state is EndpointState.READY)
    (before,) = (task for task in asyncio.all_tasks() if task.get_name() == "prober bf16/0")
    probes.take_table(table({"bf16": 1}, url=url, rule="renamed"))
    assert probes.views()[0].state is EndpointState.READY
    await asyncio.sleep(0.05)
    (after,) = (task for task in asyncio.all_tasks() if task.get_name() == "prober bf16/0")
    assert after is before


async def test_a_broken_prober_is_counted_and_started_anew(probes, table, eventually, monkeypatch):
    """A fault in one prober leaves the others alone."""
    monkeypatch.setattr("gateway.control.probes.RESTART_S", 0.01)
    real, calls = prober_module.Prober.run, []

    async def flaky(self, session):
        calls.append(self.spec.endpoint)
        if self.spec.endpoint == "bad/0" and calls.count("bad/0") < 3:
            raise RuntimeError
        await real(self, session)

    monkeypatch.setattr(prober_module.Prober, "run", flaky)
    probes.take_table(table({"bad": 1, "good": 1}))
    await eventually(lambda: calls.count("bad/0") == 3)
    assert calls.count("good/0") == 1
    assert probes.failures.family().samples[()][0] == 2


async def test_a_joining_worker_hears_what_is_known(probes, table, runtime, eventually):
    """It need not wait for the next message; an endpoint that was not probed yet is not spoken of."""
    probes.take_table(table({"bf16": 1}, url=f"http://127.0.0.1:{runtime.bound}"))
    sent = []

    class Joined:
        send = sent.append

    probes.tell(Joined)
    await eventually(lambda: probes.views()[0].state is EndpointState.READY)
    probes.tell(Joined)
    assert [[report.endpoint for report in message.reports] for message in sent] == [[], ["bf16/0"]]


async def test_a_control_that_comes_back_does_not_undo_what_workers_know(probes, table):
    """While nothing is known, no message says so: a quarantined endpoint stays quarantined at the workers."""
    probes.take_table(table({"bf16": 1}))
    assert probes.views()[0].state is EndpointState.UNKNOWN
    assert probes.message().reports == []


def test_the_description_of_an_endpoint_follows_the_policy(table):
    """URL, names to check, key and claims come from the pool."""
    pool = dataclasses.replace(
        table({"bf16": 1}).pools["bf16"],
        upstream_model="org/m",
        authorization=b"Bearer k",
        adapters={"a": "lora-a"},
        context_window=4096,
    )
    endpoint = dataclasses.replace(pool.endpoints[0], host="::1", port=8, base_path="/x/")
    spec = describe(pool, endpoint, ADAPTERS["vllm"])
    assert spec.url == "http://[::1]:8/x"
    assert spec.authorization == "Bearer k"
    assert spec.declaration.names == ("org/m",)
    assert spec.declaration.adapters == ("lora-a",)
    assert spec.declaration.context_window == 4096
    assert spec.declaration.gpu == "H100"


def test_names_are_not_checked_where_the_runtime_takes_any(table):
    """llama.cpp answers to every model name, so its list is no contradiction."""
    pool = table({"bf16": 1}).pools["bf16"]
    assert describe(pool, pool.endpoints[0], ADAPTERS["llama.cpp"]).declaration.names == ()


def test_what_runtimes_say_of_queues_and_adapters_is_found_by_name(monkeypatch):
    """What is not known of an endpoint speaks of no queue and of no adapter."""
    adapted = Attestation("vllm", adapters=(ServedModel("sql", parent="m"),))
    first = EndpointView("a", "a/0", "http://h:1", "vllm", enforce=True, load=Load(at=0.0, waiting=2))
    views = [first, msgspec.structs.replace(first, pool="b", endpoint="b/0", load=None, attestation=adapted)]
    probes = Probes(lambda _: None, FAST, lambda: 0.0, lambda: 0.5)
    monkeypatch.setattr(probes, "views", lambda: views)
    assert [probes.has_waiting(endpoint) for endpoint in ("a/0", "b/0", "c/0")] == [True, False, False]
    assert [probes.serves_adapters(pool) for pool in ("a", "b", "c")] == [False, True, False]
