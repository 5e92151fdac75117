"""Promises of ``benchmarks.compare``: ratios within rounds, floors that say what was not measured, ends that work."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.compare import FLOORS, GATEWAY, Row, floors, ratio, table
from benchmarks.processes import Program, free_ports, wait_until
from gateway.policy.load import load

ROOT = Path(__file__).resolve().parents[3]


def row(**columns: list[float]) -> Row:
    """A row with these numbers per round."""
    made = Row()
    for column, values in columns.items():
        for value in values:
            made.note(column, value)
    return made


def test_a_ratio_is_taken_within_each_round() -> None:
    """A machine that is twice as slow in one round changes no ratio."""
    mine, theirs = row(cpu_req=[100.0, 200.0, 110.0]), row(cpu_req=[50.0, 100.0, 50.0])
    assert ratio(mine, theirs, "cpu_req") == pytest.approx(2.0)


def test_what_was_not_measured_is_no_pass() -> None:
    """Without a rival a floor is neither ok nor missed."""
    found = floors({GATEWAY: row(cpu_req=[100.0], stream=[10.0])})
    assert [floor["ok"] for floor in found] == [True if floor["column"] == "stream" else None for floor in found]
    assert len(found) == len(FLOORS)


def test_floors_tell_ok_from_miss() -> None:
    """``most`` and ``least`` are read the right way round."""
    nginx = row(cpu_req=[50.0], flood=[1000.0], cpu_event=[10.0], p50=[100.0])
    gateway = row(cpu_req=[120.0], flood=[600.0], cpu_event=[12.0], p50=[150.0], stream=[30.0])
    ok = {(floor["column"], floor["rival"]): floor["ok"] for floor in floors({"nginx": nginx, GATEWAY: gateway})}
    assert ok == {
        ("cpu_req", "nginx"): False,
        ("cpu_req", "vllm-router"): None,
        ("cpu_event", "nginx"): True,
        ("p50", "nginx"): True,
        ("flood", "nginx"): True,
        ("stream", None): False,
    }
    text = table({"direct": Row(), "nginx": nginx, GATEWAY: gateway})
    assert text.count("MISS") == 2
    assert text.count("not measured") == 1


def test_the_policy_under_test_is_a_good_one(tmp_path: Path) -> None:
    """Everything that costs is on: keys with limits, patterns, privilege, constraints, the access log."""
    from benchmarks.contenders import POLICY

    (tmp_path / "policy.yaml").write_text(POLICY.format(backend=9, digest="0" * 64, checked="0%"))
    document = json.loads(load(tmp_path / "policy.yaml").document)
    assert document["tenants"]["bench"]["limits"].keys() == {"requests_per_minute", "tokens_per_minute", "inflight"}
    assert document["classify"]["tasks"]
    assert document["constraints"]


@pytest.fixture(scope="module")
def backend(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The canned backend."""
    (port,) = free_ports(1)
    with (tmp_path_factory.mktemp("backend") / "log").open("w") as output:
        program = Program("backend", [sys.executable, "-m", "benchmarks.backend", str(port)], [0], output)
        url = f"http://127.0.0.1:{port}/v1/chat/completions"
        try:
            wait_until(
                lambda: run_load(url, "plain", "--rate", "10", "--seconds", "0.1") is not None, url, lambda: True
            )
            yield url
        finally:
            program.stop()


def run_load(url: str, *options: str) -> list[dict[str, float]] | None:
    """The lines that the load prints; None if it failed."""
    command = [sys.executable, "-m", "benchmarks.load", url, *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return [json.loads(line) for line in done.stdout.splitlines()] if done.returncode == 0 else None


@pytest.mark.parametrize(
    ("mode", "options", "done"),
    [
        ("plain", ["--rate", "50", "--seconds", "0.2"], 10),
        ("stream", ["--streams", "3", "--seconds", "0.01", "--pace", "5x1"], 3),
        ("hold", ["--streams", "4", "--pace", "3x20"], 4),
    ],
)
def test_load_and_backend_fit_each_other(backend: str, mode: str, options: list[str], done: int) -> None:
    """Every request is answered and checked, in each way of loading."""
    lines = run_load(backend, mode, *options)
    assert lines is not None
    assert lines[-1]["failed"] == 0
    # The closed loop begins anew where there is time left.
    assert lines[-1]["done"] >= done if mode == "stream" else lines[-1]["done"] == done
    if mode == "hold":
        assert lines[0] == {"open": done}


def test_a_program_is_measured_and_leaves_nothing(tmp_path: Path) -> None:
    """Children in sessions of their own are counted and stopped too."""
    script = "import subprocess, sys, time; subprocess.Popen(['sleep', '60'], start_new_session=True); time.sleep(60)"
    with (tmp_path / "log").open("w") as output:
        program = Program("family", [sys.executable, "-c", script], [0], output)
    wait_until(lambda: len(program.pids()) == 2, "the child runs", lambda: True)
    family = program.pids()
    assert program.memory_kib() > 0
    assert program.cpu_s() > 0.0
    program.stop()
    wait_until(lambda: not any(_alive(pid) for pid in family), "all have ended", lambda: True)


def test_work_that_is_put_off_is_counted(tmp_path: Path) -> None:
    """What a program does a moment after a load belongs to that load, and not to whatever is measured next."""
    burn = "while time.process_time() < 0.6: pass"
    with (tmp_path / "log").open("w") as output:
        program = Program(
            "late", [sys.executable, "-c", "import time; time.sleep(0.3)\n" + burn + "\ntime.sleep(60)"], [0], output
        )
    used_s = program.settled_cpu_s()
    program.stop()
    assert used_s >= 0.6


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
