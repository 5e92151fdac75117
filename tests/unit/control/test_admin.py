"""The admin port, over a real socket."""

import asyncio
import json
import shutil
import subprocess
import time

import pytest
from aiohttp.test_utils import TestClient, TestServer
from prometheus_client.parser import text_string_to_metric_families

from gateway.control.admin import Parts, build_admin
from gateway.control.endpoints import EndpointView
from gateway.control.gauges import LoopLag
from gateway.control.reload import Reloader
from gateway.model.enums import EndpointState
from gateway.model.messages import EndpointLocal, Outcomes
from gateway.policy.load import load_snapshot
from gateway.runtimes.adapter import Load
from tests.unit.dataplane.outcome_values import sent


@pytest.fixture
def policy_file(tmp_path, text):
    """The file that is in force."""
    file = tmp_path / "policy.yaml"
    file.write_text(text(key="env:ACME_KEY"))
    return file


@pytest.fixture
def reloader(rig, policy_file):
    """Not running; ``first`` loads."""
    return Reloader(policy_file, load_snapshot, rig.publisher, lambda: 1_700_000_000.0, settle_s=0.001)


@pytest.fixture
async def admin(rig, reloader):
    """A client of the admin port."""
    view = EndpointView(
        "bf16", "bf16/0", "http://h:1", "vllm", enforce=True, health=EndpointState.READY, load=Load(at=0.0, running=2)
    )
    parts = Parts(
        publisher=rig.publisher,
        reloader=reloader,
        link=rig.link,
        metrics=rig.metrics,
        loop_lag=LoopLag(),
        counters=(rig.recorder.failures,),
        families=lambda: (),
        endpoints=lambda: [view] if rig.publisher.current else [],
        monotonic=time.monotonic,
        workers_expected=1,
    )
    async with TestClient(TestServer(build_admin(parts))) as client:
        yield client


@pytest.mark.parametrize("path", ["policy", "endpoints", "workers"])
async def test_a_parameter_that_does_not_exist_is_refused(admin, path):
    """One pool's endpoints would be everybody's."""
    answer = await admin.get(f"/api/v1/{path}?pool=bf16")
    assert answer.status == 400
    assert "unknown parameter pool; this path takes none" in (await answer.json())["error"]["message"]


async def test_alive_is_not_ready(admin, reloader, rig, stats, eventually):
    """Alive at once; ready when a worker serves a policy; not ready when none does."""
    assert (await admin.get("/healthz")).status == 200
    assert (await admin.get("/readyz")).status == 503
    await reloader.first()
    assert (await admin.get("/readyz")).status == 503
    stub = await rig.worker(0)
    await stub.until(lambda: stub.generation == 1)
    stub.send(stats(0, generation=1))
    await eventually(lambda: rig.link.workers[0].generation == 1)
    answer = await admin.get("/readyz")
    assert answer.status == 200
    detail = await answer.json()
    assert (detail["generation"], detail["digest"]) == (1, rig.publisher.current.digest)
    assert detail["workers"] == {"expected": 1, "connected": 1, "on_current_generation": 1, "refused": {}}
    assert detail["endpoints"] == {"bf16/0": {"pool": "bf16", "state": "ready", "reason": ""}}


async def test_a_gateway_that_drains_is_not_ready(admin, reloader, rig, stats, eventually):
    """No new traffic shall be sent to it while its last requests finish."""
    await reloader.first()
    stub = await rig.worker(0, 1)
    assert (await admin.get("/readyz")).status == 200
    stub.send(stats(0, draining=True))
    await eventually(lambda: rig.link.workers[0].stats is not None)
    assert (await admin.get("/readyz")).status == 503


async def test_a_broken_edit_is_told_and_the_gateway_stays_ready(admin, reloader, rig, policy_file):
    """The detail has the findings; traffic is served by the last good generation."""
    await reloader.first()
    stub = await rig.worker(0, 1)
    policy_file.write_text("version: 1\npools: [")
    await reloader.first()
    answer = await admin.get("/readyz")
    detail = await answer.json()
    assert answer.status == 200
    assert detail["reload"]["success"] is False
    assert detail["reload"]["result"] == "rejected"
    assert detail["reload"]["findings"][0]["file"] == str(policy_file)
    assert detail["generation"] == 1
    assert stub.generation == 1


async def test_the_policy_is_shown_as_compiled_without_secrets(admin, reloader):
    """References stand where secrets are."""
    assert (await admin.get("/api/v1/policy")).status == 503
    await reloader.first()
    answer = await admin.get("/api/v1/policy")
    shown = await answer.json()
    assert shown["document"]["pools"]["bf16"]["model"] == "m"
    assert shown["document"]["tenants"]["acme"]["keys"] == ["env:ACME_KEY"]
    assert "value-of" not in await answer.text()


async def test_an_unchanged_answer_is_not_sent_twice(admin, reloader):
    """ETag and If-None-Match."""
    await reloader.first()
    first = await admin.get("/api/v1/policy")
    again = await admin.get("/api/v1/policy", headers={"If-None-Match": first.headers["ETag"]})
    assert (again.status, await again.read()) == (304, b"")
    assert again.headers["ETag"] == first.headers["ETag"]


async def test_endpoints_show_controls_and_the_workers_view(admin, reloader, rig, stats, eventually):
    """State, load with its age, attestation, and each worker's own state."""
    await reloader.first()
    stub = await rig.worker(0, 1)
    stub.send(stats(0, endpoints=[EndpointLocal("bf16/0", "ejected", 4, 1)]))
    await eventually(lambda: 0 in rig.metrics.worker_stats)
    (row,) = (await (await admin.get("/api/v1/endpoints")).json())["endpoints"]
    assert (row["endpoint"], row["state"], row["verdict"]) == ("bf16/0", "ready", "unattested")
    assert row["load"]["running"] == 2 and row["load"]["age_s"] > 0
    assert row["workers"] == {"0": {"state": "ejected", "inflight": 4, "idle": 1}}


async def test_a_workers_gauges_have_names(admin, reloader, rig, stats, eventually):
    """On the wire to control they are told by their place; a person could not read them."""
    await reloader.first()
    stub = await rig.worker(0, 1)
    stub.send(stats(0, inflight={"bf16": 4}, endpoints=[EndpointLocal("bf16/0", "ready", 4, 1)]))
    await eventually(lambda: rig.link.workers[0].stats is not None)
    (row,) = (await (await admin.get("/api/v1/workers")).json())["workers"]
    assert row["stats"]["inflight"] == {"bf16": 4}
    assert row["stats"]["endpoints"] == [{"endpoint": "bf16/0", "state": "ready", "inflight": 4, "idle": 1}]


async def test_workers_are_listed_with_what_they_serve(admin, reloader, rig, eventually):
    """A worker that refused the policy is seen at once."""
    await reloader.first()
    await rig.worker(0, refuse="no memory")
    await eventually(lambda: rig.link.workers[0].error == "no memory")
    shown = await (await admin.get("/api/v1/workers")).json()
    assert shown["expected"] == 1
    assert shown["workers"][0]["error"] == "no memory"
    assert shown["workers"][0]["pid"] == 1000


async def test_a_scrape_holds_what_was_counted(admin, reloader, rig, outcome, eventually):
    """Requests of the workers, state of the gateway, and control's own process in one text."""
    await reloader.first()
    stub = await rig.worker(0, 1)
    stub.send(Outcomes(0, 2, sent(*[outcome()] * 5)))
    await eventually(lambda: any(row[0] for row in rig.metrics.requests.rows.values()))
    families = {f.name: f for f in text_string_to_metric_families(await (await admin.get("/metrics")).text())}
    (requests,) = [sample for sample in families["quantgate_requests"].samples if sample.value]
    assert (requests.labels["pool"], requests.labels["result"], requests.value) == ("bf16", "ok", 5.0)
    assert families["quantgate_dropped_outcomes"].samples[0].value == 2.0
    assert families["quantgate_generation"].samples[0].value == 1.0
    assert "process_cpu_seconds" in families


async def test_a_scrape_is_packed_for_who_takes_it(admin, reloader):
    """Prometheus does; a person's curl gets plain text."""
    await reloader.first()
    plain = await admin.get("/metrics", headers={"Accept-Encoding": "identity"})
    packed = await admin.get("/metrics", headers={"Accept-Encoding": "gzip"})
    assert "Content-Encoding" not in plain.headers
    assert packed.headers["Content-Encoding"] == "gzip"
    assert plain.headers["Content-Type"] == packed.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert "quantgate_build_info" in await plain.text()
    assert "quantgate_build_info" in await packed.text()


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
async def test_promtool_accepts_the_whole_scrape(admin, reloader, rig, *, outcome, stats, eventually):
    """Every metric that exists, in Prometheus' own lint."""
    await reloader.first()
    stub = await rig.worker(0, 1)
    stub.send(Outcomes(0, 2, sent(*[outcome()] * 5)))
    stub.send(stats(0, inflight={"bf16": 1}, endpoints=[EndpointLocal("bf16/0", "ready", 4, 1)]))
    await eventually(lambda: 0 in rig.metrics.worker_stats)
    text = await (await admin.get("/metrics")).read()
    run = await asyncio.to_thread(
        subprocess.run, ["promtool", "check", "metrics"], input=text, capture_output=True, check=False
    )
    assert (run.returncode, run.stdout + run.stderr) == (0, b"")


@pytest.mark.parametrize(("method", "path", "status"), [("GET", "/nope", 404), ("POST", "/metrics", 405)])
async def test_errors_have_the_apis_shape(admin, method, path, status):
    """An object with message, type, param and code."""
    answer = await admin.request(method, path)
    assert answer.status == status
    assert set(json.loads(await answer.text())["error"]) == {"message", "type", "param", "code"}


async def test_a_fault_in_a_handler_is_a_plain_500(admin, reloader, rig):
    """No traceback reaches the caller."""
    await reloader.first()
    rig.publisher.current = object()
    answer = await admin.get("/api/v1/policy")
    assert answer.status == 500
    assert "Traceback" not in await answer.text()
