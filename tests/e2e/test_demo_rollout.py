"""The demo's second part from outside: real answers, judged live; promoted where they are good, else rolled back."""

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from gateway.demo.weights import cache_dir, obtain
from tests.e2e.demo_processes import DEMO, descendants, gone, read_until, shell

RUN_S = 420.0
WAIT_S = 60
SHORT = (*DEMO, "--rollout-s", "10")
WHOLE = (*DEMO, "--rollout-s", "1200", "--keep")

pytestmark = pytest.mark.runtime


@pytest.fixture(scope="module", autouse=True)
def weights() -> None:
    """The weights are there, so that no test waits for a download."""
    obtain(cache_dir(os.environ))


def test_without_time_for_evidence_it_says_so(tmp_path: Path) -> None:
    """A real verdict, no failure: the candidate stays where it is, and the accounts agree on what was sent."""
    done = subprocess.run(
        (*SHORT, "--folder", str(tmp_path)), capture_output=True, text=True, timeout=RUN_S, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    said = done.stdout[done.stdout.index("The second part") :]
    assert "JSON by a schema: not enough evidence yet" in said
    assert "q4 enters at 25 %" in said
    assert "FAILS" not in said
    lines = [orjson.loads(line) for line in (tmp_path / "access.log").read_bytes().splitlines()]
    sent = int(re.search(r"checks hold: (\d+) requests", said)[1])  # type: ignore[index]
    assert len(lines) == 18 + sent
    assert {line["rollout"] for line in lines[18:]} == {"q4-json"}
    assert {line["generation"] for line in lines[18:]} == {3}
    assert max(map(len, done.stdout.splitlines())) <= 100
    assert all(line == line.rstrip() for line in done.stdout.splitlines())


def test_ctrl_c_in_the_middle_leaves_nothing() -> None:
    """While requests run and the rollout is being watched."""
    with subprocess.Popen(
        DEMO, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as process:
        said = read_until(process, "q4 enters at 25 %")
        below = descendants(process.pid)
        assert len(below) >= 7
        process.send_signal(signal.SIGINT)
        assert process.stdout is not None
        said += process.stdout.read()
        assert process.wait(WAIT_S) == 128 + signal.SIGINT
    assert gone(below) == set()
    assert "Traceback" not in said


@pytest.fixture
def kept() -> Iterator[subprocess.Popen[str]]:
    """A whole demo that stays at its end."""
    process = subprocess.Popen(
        WHOLE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    yield process
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        process.wait(WAIT_S)


@pytest.mark.slow
def test_promoted_where_it_is_good_and_rolled_back_where_it_is_not(kept: subprocess.Popen[str]) -> None:
    """Three stages by evidence alone, a rollback that nothing passes, and the record that tells it afterwards."""
    text = read_until(kept, "Still running")
    said = " ".join(text[text.index("The second part") :].split())
    assert "JSON by a schema: q4 stepped to 50 %" in said
    assert "JSON by a schema: q4 stepped to 100 %" in said
    assert "JSON by a schema: q4 is promoted after" in said
    assert "JSON in free form: q4 is rolled back after" in said
    assert "holds After the rollback no request of short/free-json/none reached q4" in said
    assert "5 of 5 checks hold" in said
    shown = read_until(kept, "rollout incident")
    lines = dict(block[2:].split("\n", 1) for block in shown.split("\n\n") if block.startswith("# "))
    assert "promoted" in shell(lines["where the rollout stands"])
    assert "rolled_back" in shell(lines["what moved it, and why"])
    incident = orjson.loads(shell(lines["the rollback with its evidence and requests"]))
    assert incident["event"]["bucket"] == "short/free-json/none"
    assert incident["requests"]
    below = descendants(kept.pid)
    kept.send_signal(signal.SIGINT)
    assert kept.wait(WAIT_S) == 0
    assert gone(below) == set()
