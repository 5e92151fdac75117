"""The supervisor with real processes: start, life, stop. The workers are stubs; control is the real one."""

import json
import os
import signal

import pytest

# -- start ------------------------------------------------------------------------------------------------------


def test_it_serves_when_control_has_a_policy_and_the_workers_have_it(start):
    """Addresses and process ids are told; every worker is on the first generation."""
    gateway = start()
    serving = gateway.serving()
    assert set(serving["pids"]) == {"control", "worker-0", "worker-1"}
    assert gateway.ready()["generation"] == 1


def test_a_broken_policy_ends_the_start_with_its_findings(start, tmp_path):
    """Exit code 2, each finding with file, line and column; no worker was started."""
    (tmp_path / "policy.yaml").write_text("version: 1\npools: [\n")
    gateway = start()
    gateway.ends(2)
    assert any(line.startswith(f"{tmp_path / 'policy.yaml'}:") and "error" in line for line in gateway.lines)
    assert gateway.event("serving") is None


def test_a_missing_policy_ends_the_start(start, tmp_path):
    """The path is named."""
    gateway = start(config=str(tmp_path / "nowhere"))
    gateway.ends(2)
    assert any("nowhere" in line for line in gateway.lines)


@pytest.mark.parametrize("which", ["listen", "admin"])
def test_a_port_in_use_is_one_clear_line(start, taken_port, which):
    """The option, the address and what to do; exit code 3."""
    gateway = start(**{which: {"host": "127.0.0.1", "port": taken_port}})
    gateway.ends(3)
    assert gateway.lines == [
        f"quantgate: --{which} 127.0.0.1:{taken_port}: the port is already in use; "
        "stop the program that listens there or choose another port"
    ]


def test_two_gateways_do_not_share_a_state_directory(start):
    """The second says who holds it."""
    first = start()
    first.serving()
    second = start()
    second.ends(1)
    assert any("in use" in line and str(first.process.pid) in line for line in second.lines)


def test_two_gateways_do_not_share_a_port_although_workers_do(start, tmp_path):
    """Workers share theirs with SO_REUSEPORT; another gateway of the same user must not slip in."""
    port = int(start().serving()["listen"].rpartition(":")[2])
    other = start(state_dir=str(tmp_path / "other"), listen={"host": "127.0.0.1", "port": port})
    other.ends(3)


# -- life -------------------------------------------------------------------------------------------------------


def test_b96_a_killed_worker_is_replaced_alone_and_counters_do_not_fall(start, eventually):
    """Control and the other worker keep their processes; what was counted stays."""
    gateway = start()
    gateway.ready()
    before, control = gateway.pids(), gateway.serving()["pids"]["control"]
    os.kill(before[0], signal.SIGUSR1)
    eventually(lambda: gateway.requests() == 10)
    os.kill(before[0], signal.SIGKILL)
    after = eventually(lambda: (pids := gateway.pids()).get(0) not in (None, before[0]) and pids)
    assert after[1] == before[1]
    assert gateway.ready()["generation"] == 1
    assert gateway.requests() == 10
    os.kill(after[0], signal.SIGUSR1)
    eventually(lambda: gateway.requests() == 20)
    assert gateway.event("process_died", name="worker-0")["exit"] == -signal.SIGKILL
    os.kill(control, 0)


def test_a_killed_control_comes_back_on_the_same_generation_and_touches_no_worker(start, eventually):
    """Workers keep their processes and their table; the admin port answers again at its address."""
    gateway = start()
    before = gateway.ready()
    pids = gateway.pids()
    os.kill(gateway.serving()["pids"]["control"], signal.SIGKILL)
    eventually(lambda: gateway.event("process_restarted", name="control"))
    after = gateway.ready()
    assert (after["generation"], after["digest"]) == (before["generation"], before["digest"])
    assert gateway.pids() == pids
    os.kill(pids[0], signal.SIGUSR1)
    eventually(lambda: gateway.requests() == 10)


def test_control_comes_back_on_its_snapshot_when_the_files_are_broken(start, eventually, policy_text):
    """The last good policy stays in force, the findings are told, and the mended file gets a higher number."""
    gateway = start()
    gateway.ready()
    gateway.config.write_text("pools: [")
    eventually(lambda: gateway.event("policy_rejected"))
    os.kill(gateway.serving()["pids"]["control"], signal.SIGKILL)
    eventually(lambda: gateway.event("snapshot_restored"))
    detail = gateway.ready(generation=1)
    assert detail["reload"]["success"] is False and detail["reload"]["findings"]
    gateway.config.write_text(policy_text("int4"))
    assert gateway.ready(generation=2)["reload"]["success"] is True


def test_sighup_reloads_now(start, eventually):
    """A person who asks gets an answer in the log at once."""
    gateway = start()
    gateway.ready()
    gateway.signal(signal.SIGHUP)
    eventually(lambda: gateway.event("policy_unchanged"))


def test_generations_go_on_over_a_restart_of_the_whole_gateway(start, policy_text):
    """The same state directory never gives a number twice."""
    first = start()
    first.ready(generation=1)
    first.signal(signal.SIGTERM)
    first.ends(0)
    first.config.write_text(policy_text("int4"))
    assert start().ready()["generation"] == 2


def test_a_broken_policy_at_start_can_be_bridged_by_the_snapshot(start):
    """Only where the operator chose so: the last good policy rather than none."""
    first = start()
    first.ready()
    first.signal(signal.SIGTERM)
    first.ends(0)
    first.config.write_text("pools: [")
    start().ends(2)
    assert start(use_snapshot=True).ready(generation=1)["reload"]["success"] is False


def test_children_die_with_a_killed_supervisor(start, eventually, alive):
    """Nothing is left behind that holds ports or state."""
    gateway = start()
    gateway.ready()
    pids = gateway.serving()["pids"].values()
    assert all(alive(pid) for pid in pids)
    gateway.signal(signal.SIGKILL)
    gateway.process.wait()
    eventually(lambda: not any(alive(pid) for pid in pids))


# -- stop -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_stopping_drains_workers_then_records_their_last_outcomes(start, eventually, alive, number):
    """Control outlives the workers, so what they send last is in the log; exit code 0."""
    gateway = start()
    gateway.ready()
    pids = gateway.serving()["pids"]
    hold = gateway.state_dir / "hold"
    hold.touch()
    gateway.signal(number)
    eventually(lambda: gateway.event("draining"))
    assert all(alive(pid) for pid in pids.values())
    hold.unlink()
    gateway.ends(0)
    assert not any(alive(pid) for pid in pids.values())
    lines = [json.loads(line) for line in (gateway.directory / "access.jsonl").read_text().splitlines()]
    assert sorted(line["request_id"].split("-")[0] for line in lines) == ["last", "last"]
    assert gateway.event("process_killed") is None
    assert not (gateway.state_dir / "control.sock").exists()


def test_a_worker_that_overstays_is_killed(start):
    """The drain time is a promise to the orchestrator too."""
    gateway = start(drain_s=0.2)
    gateway.ready()
    (gateway.state_dir / "hold").touch()
    gateway.signal(signal.SIGTERM)
    gateway.ends(0)
    assert gateway.event("process_killed", name="worker-0") and gateway.event("process_killed", name="worker-1")
    assert gateway.event("process_killed", name="control") is None


def test_a_second_stop_signal_cuts_the_drain_short(start, eventually):
    """Ctrl-C twice means now."""
    gateway = start(drain_s=3600.0)
    gateway.ready()
    (gateway.state_dir / "hold").touch()
    gateway.signal(signal.SIGINT)
    eventually(lambda: gateway.event("draining"))
    gateway.signal(signal.SIGINT)
    gateway.ends(0)
    assert gateway.event("process_killed", name="worker-0")["after_s"] < 3600.0
