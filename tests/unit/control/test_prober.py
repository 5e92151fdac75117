"""Watching one endpoint, against a simulated runtime on a real socket."""

import asyncio
import contextlib
import time

import aiohttp
import msgspec
import pytest

from gateway.control import prober as prober_module
from gateway.control.endpoints import EndpointView
from gateway.control.prober import EndpointSpec, Prober
from gateway.model.enums import EndpointState
from gateway.model.precision import Precision
from gateway.runtimes import ADAPTERS
from gateway.runtimes.adapter import Answer, Purpose
from gateway.runtimes.compare import Declaration, Verdict
from gateway.simulator.config import Config, ReportedPrecision
from gateway.simulator.server import Server

FAST = msgspec.structs.replace(ADAPTERS["vllm"], health_interval_s=0.01, load_interval_s=0.01, attest_interval_s=0.02)


@pytest.fixture(autouse=True)
def eager(monkeypatch):
    """Probe without the pauses of real life."""
    monkeypatch.setattr(prober_module, "EAGER_S", 0.01)


@pytest.fixture
async def runtime():
    """Starts simulated runtimes; the last argument is their port."""
    servers = []

    async def start(port=0, **fields):
        server = Server(Config(model="m", **fields), lambda: 1.0, len(servers))
        await server.start("127.0.0.1", port)
        servers.append(server)
        return server

    yield start
    for server in servers:
        await server.stop()


def spec_for(port, *, attestation="enforce", key=None, **precision):
    """An endpoint on this machine that claims ``precision``."""
    return EndpointSpec(
        pool="p",
        endpoint="p/0",
        url=f"http://127.0.0.1:{port}",
        runtime="vllm",
        model="m",
        attestation=attestation,
        declaration=Declaration(Precision(**precision), names=("m",)),
        authorization=key,
    )


@contextlib.asynccontextmanager
async def probing(spec, *, adapter=FAST, known=None, changed=lambda: None):
    """A prober at work."""
    prober = Prober(
        spec,
        adapter,
        spec.view(known),
        monotonic=time.monotonic,
        random=lambda: 0.5,
        changed=changed,
        reference=lambda _: None,
    )
    async with aiohttp.ClientSession() as session:
        task = asyncio.ensure_future(prober.run(session))
        try:
            yield prober
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def configure(port, **patch):
    """Change a running simulated runtime."""
    async with aiohttp.ClientSession() as session, session.post(f"http://127.0.0.1:{port}/sim/config", json=patch) as r:
        assert r.status == 200


async def test_a_healthy_endpoint_becomes_ready_attested_and_its_load_is_known(runtime, eventually):
    """Health, precision and load, each from the runtime's own words."""
    server = await runtime()
    async with probing(spec_for(server.bound)) as prober:
        await eventually(lambda: prober.view.load is not None and prober.view.state is EndpointState.READY)
        assert prober.view.verdict is Verdict.ATTESTED
        assert prober.view.load.running == 0
        assert prober.view.attestation.version == "0.32.0"


async def test_failing_health_takes_it_out_and_recovery_brings_it_back(runtime, eventually):
    """Each change of state is told, and the reason is kept while it lasts."""
    server, told = await runtime(), []
    async with probing(spec_for(server.bound), changed=lambda: told.append(prober.view.state)) as prober:
        await eventually(lambda: prober.view.state is EndpointState.READY)
        await configure(server.bound, healthy=False)
        await eventually(lambda: prober.view.state is EndpointState.UNHEALTHY)
        assert "503" in prober.view.reason
        await configure(server.bound, healthy=True)
        await eventually(lambda: prober.view.state is EndpointState.READY)
        assert prober.view.reason == ""
    assert told == [EndpointState.READY, EndpointState.UNHEALTHY, EndpointState.READY]


async def test_a_refused_connection_is_a_reason_in_words(unused_tcp_port_factory, eventually):
    """A person reads why."""
    async with probing(spec_for(unused_tcp_port_factory())) as prober:
        await eventually(lambda: prober.view.state is EndpointState.UNHEALTHY)
        assert "refused" in prober.view.reason.lower() or "connect" in prober.view.reason.lower()


async def test_a_declared_precision_that_is_not_served_quarantines(runtime, eventually):
    """BF16 declared, FP8 KV cache reported: not offered, with the reason."""
    server = await runtime(precision=ReportedPrecision(kv_cache_dtype="fp8"))
    async with probing(spec_for(server.bound)) as prober:
        await eventually(lambda: prober.view.health is EndpointState.READY)
        assert prober.view.state is EndpointState.QUARANTINED
        assert any("kv_cache" in mismatch.reason for mismatch in prober.view.mismatches)


async def test_it_is_never_ready_before_it_was_attested(runtime, eventually):
    """The first state that workers hear of a mismatching endpoint is the quarantine."""
    server, told = await runtime(precision=ReportedPrecision(kv_cache_dtype="fp8")), []
    async with probing(spec_for(server.bound), changed=lambda: told.append(prober.view.state)) as prober:
        await eventually(lambda: len(told) >= 1 and prober.view.health is EndpointState.READY)
    assert set(told) == {EndpointState.QUARANTINED}


async def test_what_could_not_be_read_is_asked_for_again_soon(runtime, eventually, monkeypatch):
    """Not after a whole interval: until then a false declaration would serve."""
    monkeypatch.setattr(prober_module, "LOOK_AGAIN_S", 0.02)
    server = await runtime(precision=ReportedPrecision(kv_cache_dtype="fp8"))
    hourly = msgspec.structs.replace(FAST, attest_interval_s=3600.0)
    silent, get = [Purpose.INFO], Prober._get

    async def slow_at_first(prober, session, probe):
        if probe.purpose in silent:
            silent.clear()
            return Answer(0, error="no answer within 5 s")
        return await get(prober, session, probe)

    monkeypatch.setattr(Prober, "_get", slow_at_first)
    async with probing(spec_for(server.bound), adapter=hourly) as prober:
        await eventually(lambda: prober.view.state is EndpointState.QUARANTINED)
    assert silent == []


async def test_a_quarantine_begins_and_is_explained_when_it_is_found(runtime, eventually):
    """Its age is its own, not that of the good health beneath."""
    server = await runtime()
    async with probing(spec_for(server.bound)) as prober:
        await eventually(lambda: prober.view.state is EndpointState.READY)
        ready_since = prober.view.state_since
        await configure(server.bound, precision={"kv_cache_dtype": "fp8"})
        await eventually(lambda: prober.view.state is EndpointState.QUARANTINED)
        assert prober.view.state_since > ready_since
        assert "fp8" in prober.view.reason


async def test_a_mismatch_is_let_go_when_the_runtime_was_restarted_right(runtime, eventually):
    """Attestation goes on; the quarantine ends by itself."""
    server = await runtime(precision=ReportedPrecision(kv_cache_dtype="fp8"))
    async with probing(spec_for(server.bound)) as prober:
        await eventually(lambda: prober.view.state is EndpointState.QUARANTINED)
        await configure(server.bound, precision={"kv_cache_dtype": "auto"})
        await eventually(lambda: prober.view.state is EndpointState.READY)


async def test_a_precision_that_changes_behind_an_open_port_is_noticed(runtime, eventually):
    """Someone restarts the runtime with other flags."""
    server = await runtime()
    async with probing(spec_for(server.bound)) as prober:
        await eventually(lambda: prober.view.state is EndpointState.READY)
        await configure(server.bound, precision={"kv_cache_dtype": "fp8"})
        await eventually(lambda: prober.view.state is EndpointState.QUARANTINED)


@pytest.mark.parametrize(("attestation", "verdict"), [("warn", Verdict.MISMATCH), ("off", Verdict.UNATTESTED)])
async def test_warn_serves_and_shows_off_does_not_look(runtime, eventually, attestation, verdict):
    """The policy decides what follows from a mismatch."""
    server = await runtime(precision=ReportedPrecision(kv_cache_dtype="fp8"))
    async with probing(spec_for(server.bound, attestation=attestation)) as prober:
        await eventually(lambda: prober.view.state is EndpointState.READY)
        assert prober.view.verdict is verdict
        assert (prober.view.attestation is None) == (attestation == "off")


async def test_no_answer_proves_nothing(runtime, eventually):
    """A quarantined endpoint that goes away is still quarantined when it is gone, and unhealthy beneath."""
    server = await runtime(precision=ReportedPrecision(kv_cache_dtype="fp8"))
    async with probing(spec_for(server.bound)) as prober:
        await eventually(lambda: prober.view.state is EndpointState.QUARANTINED)
        await server.stop()
        await eventually(lambda: prober.view.health is EndpointState.UNHEALTHY)
        assert prober.view.state is EndpointState.QUARANTINED


async def test_the_pools_key_is_sent(runtime, eventually):
    """A runtime with an API key guards /v1/models, which attestation reads."""
    server = await runtime(api_key="pool-secret")
    async with probing(spec_for(server.bound, key="Bearer pool-secret")) as prober:
        await eventually(lambda: prober.view.attestation is not None)
        assert prober.view.attestation.models_listed


async def test_an_answer_without_end_is_cut_off(eventually):
    """A runtime that streams endlessly on a probe costs a bounded amount of memory."""

    async def endless(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            while True:
                writer.write(b"10000\r\n" + b"x" * 65536 + b"\r\n")
                await writer.drain()

    server = await asyncio.start_server(endless, "127.0.0.1", 0)
    async with probing(spec_for(server.sockets[0].getsockname()[1])) as prober:
        await eventually(lambda: prober.view.state is EndpointState.UNHEALTHY)
        assert "larger than" in prober.view.reason
    server.close()


async def test_a_runtime_that_reports_no_load_is_not_asked_for_it(runtime, eventually):
    """Probes that cannot tell anything are not sent."""
    server = await runtime()
    openai = msgspec.structs.replace(ADAPTERS["openai"], health_interval_s=0.01)
    assert not openai.probes_for(Purpose.METRICS)
    async with probing(spec_for(server.bound), adapter=openai) as prober:
        await eventually(lambda: prober.view.health is EndpointState.READY)
        assert prober.view.load is None


def known_view(**fields):
    """A view that a former prober left."""
    base = EndpointView(
        "p", "p/0", "http://127.0.0.1:1", "vllm", enforce=True, health=EndpointState.READY, state_since=3.0
    )
    return msgspec.structs.replace(base, **fields)


def test_what_is_known_of_the_same_server_is_carried_over_a_reload():
    """Health and load belong to the server, not to the policy's generation."""
    view = spec_for(1).view(known_view())
    assert view.health is EndpointState.READY and view.state_since == 3.0
    assert spec_for(2).view(known_view()).health is EndpointState.UNKNOWN
    assert spec_for(1).view(known_view(runtime="sglang")).health is EndpointState.UNKNOWN


async def test_a_changed_claim_is_judged_at_once_on_what_is_known(runtime, eventually):
    """A reload that corrects the declaration frees the endpoint without waiting for the next attestation."""
    server = await runtime(precision=ReportedPrecision(kv_cache_dtype="fp8"))
    async with probing(spec_for(server.bound)) as prober:
        await eventually(lambda: prober.view.state is EndpointState.QUARANTINED)
    corrected = spec_for(server.bound, kv_cache="fp8").view(prober.view)
    assert corrected.state is EndpointState.READY
    assert spec_for(server.bound, kv_cache="int8").view(corrected).state is EndpointState.QUARANTINED
