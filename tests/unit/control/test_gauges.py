"""State as gauges: what is there has a series, what is gone has none."""

import msgspec
import pytest

from gateway.control import gauges
from gateway.control.endpoints import EndpointView
from gateway.control.gauges import LoopLag
from gateway.control.reload import Reloader, ReloadResult
from gateway.model.enums import EndpointState
from gateway.model.messages import EndpointLocal
from gateway.policy.load import load_snapshot
from gateway.runtimes.adapter import Load
from gateway.runtimes.compare import Verdict


def by_name(families):
    """Samples by family name, single values unpacked."""
    return {family.name: {key: row[0] for key, row in family.samples.items()} for family in families}


VIEW = EndpointView("bf16", "bf16/0", "http://h:1", "vllm", enforce=True)


@pytest.mark.parametrize("state", [state for state in EndpointState if state is not EndpointState.QUARANTINED])
def test_exactly_one_state_of_an_endpoint_is_one(state):
    """Every state is a label, and they exclude each other."""
    samples = by_name(gauges.endpoint_families([msgspec.structs.replace(VIEW, health=state)], {}, 0.0))
    states = samples["quantgate_endpoint_state"]
    assert {key[2] for key in states} == {member.value for member in EndpointState}
    assert [key[2] for key, value in states.items() if value] == [state.value]


@pytest.mark.parametrize("verdict", list(Verdict))
def test_exactly_one_verdict_is_one(verdict):
    """Unattested endpoints are served, counted and visible."""
    view = msgspec.structs.replace(VIEW, verdict=verdict, enforce=False)
    verdicts = by_name(gauges.endpoint_families([view], {}, 0.0))["quantgate_endpoint_attestation"]
    assert [key[2] for key, value in verdicts.items() if value] == [verdict.value]


def test_unknown_load_has_no_series():
    """No data is absent, never zero."""
    known = msgspec.structs.replace(VIEW, endpoint="bf16/1", load=Load(at=1.0, running=2, waiting=0))
    samples = by_name(gauges.endpoint_families([VIEW, known], {}, 3.0))
    assert samples["quantgate_endpoint_running"] == {("bf16", "bf16/1"): 2.0}
    assert samples["quantgate_endpoint_waiting"] == {("bf16", "bf16/1"): 0.0}
    assert samples["quantgate_endpoint_kv_usage"] == {}
    assert samples["quantgate_endpoint_load_age_seconds"] == {("bf16", "bf16/1"): 2.0}


def test_what_workers_see_is_summed_over_them(stats):
    """In flight and ejections count all workers; endpoints of an older table are left out."""
    workers = {
        0: stats(0, endpoints=[EndpointLocal("bf16/0", "ejected", 3, 1), EndpointLocal("gone/0", "ready", 9, 9)]),
        1: stats(1, endpoints=[EndpointLocal("bf16/0", "ready", 4, 2)]),
    }
    samples = by_name(gauges.endpoint_families([VIEW], workers, 0.0))
    assert samples["quantgate_endpoint_ejected_workers"] == {("bf16", "bf16/0"): 1.0}
    assert samples["quantgate_endpoint_inflight"] == {("bf16", "bf16/0"): 7.0}
    assert samples["quantgate_endpoint_idle_connections"] == {("bf16", "bf16/0"): 3.0}


def test_pools_of_the_table_show_their_load_and_precision(policy, compile_, stats):
    """A pool without requests is a zero; one of an older table is not shown."""
    table = compile_(policy({"bf16": 1, "int4": 1}).document, 1, {})
    workers = {0: stats(0, inflight={"bf16": 2, "gone": 5}), 1: stats(1, inflight={"bf16": 3})}
    samples = by_name(gauges.pool_families(table, workers))
    assert samples["quantgate_inflight"] == {("bf16",): 5.0, ("int4",): 0.0}
    assert ("int4", "m", "vllm", "bf16", "bf16", "bf16", "none") in samples["quantgate_pool_info"]


def test_workers_have_their_own_gauges(stats):
    """One series per living worker."""
    samples = by_name(gauges.worker_families({1: stats(1, generation=4, connections=7, draining=True)}, 2, 1))
    assert samples["quantgate_workers_up"] == {(): 1}
    assert samples["quantgate_workers_expected"] == {(): 2}
    assert samples["quantgate_connections"] == {("1",): 7.0}
    assert samples["quantgate_worker_generation"] == {("1",): 4.0}
    assert samples["quantgate_worker_draining"] == {("1",): 1.0}


async def test_the_reload_shows_what_is_in_force_and_whether_the_files_agree(rig, tmp_path, text):
    """After a broken edit: success 0, the old generation, and the attempt counted by its result."""
    file = tmp_path / "policy.yaml"
    file.write_text(text())
    reloader = Reloader(file, load_snapshot, rig.publisher, lambda: 77.0, settle_s=0.001)
    await reloader.first()
    good = by_name(gauges.reload_families(reloader, rig.publisher.current))
    assert good["quantgate_reload_success"] == {(): 1.0}
    assert good["quantgate_generation"] == {(): 1}
    assert list(good["quantgate_policy_info"]) == [(rig.publisher.current.digest,)]
    file.write_text("pools: [")
    await reloader.first()
    broken = by_name(gauges.reload_families(reloader, rig.publisher.current))
    assert broken["quantgate_reload_success"] == {(): 0.0}
    assert broken["quantgate_generation"] == {(): 1}
    assert broken["quantgate_reload_timestamp_seconds"] == {(): 77.0}
    assert {key[0] for key in broken["quantgate_reload_total"]} == {result.value for result in ReloadResult}
    assert broken["quantgate_reload_total"]["rejected",] == 1.0


def test_loop_lag_keeps_its_worst_over_a_scrape_interval_and_lets_it_go():
    """A peak is seen by every scraper for at least one span, and gone after two."""
    lag = LoopLag(span_s=10.0)
    lag.saw("control", 0.5, 0.0)
    lag.saw("control", 0.1, 5.0)
    assert by_name([lag.family(9.0)])["quantgate_loop_lag_seconds"] == {("control",): 0.5}
    lag.saw("control", 0.2, 12.0)
    assert by_name([lag.family(13.0)])["quantgate_loop_lag_seconds"] == {("control",): 0.5}
    assert by_name([lag.family(23.0)])["quantgate_loop_lag_seconds"] == {("control",): 0.2}
    assert by_name([lag.family(60.0)])["quantgate_loop_lag_seconds"] == {}


def test_the_build_is_named():
    """Version and interpreter."""
    ((version, python),) = by_name(gauges.build_families())["quantgate_build_info"]
    assert version and python.startswith("3.")
