"""The first part of ``quantgate demo`` from outside: it runs on real servers, its numbers add up, nothing is left."""

import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from gateway.demo.weights import cache_dir, obtain
from tests.e2e.demo_processes import DEMO, descendants, gone, read_until, shell

COMMAND = (*DEMO, "--no-rollout")
RUN_S = 420.0
ROW = re.compile(
    r"^ (?P<bucket>\w+/\w+/\w+) +(?P<pool>\w+) +(?P<rule>\w+)(?: \(\d\))? +(?P<requests>\d+) +(?P<ttft>\S+(?: s)?) "
    r"+(?P<longest>\S+(?: s)?) +(?P<tpot>\S+(?: ms)?) +(?P<tokens_in>[\d,]+) +(?P<tokens_out>[\d,]+)$",
    re.MULTILINE,
)

pytestmark = pytest.mark.runtime


@pytest.fixture(scope="module", autouse=True)
def weights() -> None:
    """The weights are there, so that no test waits for a download."""
    obtain(cache_dir(os.environ))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[subprocess.CompletedProcess[str], Path]:
    """One reduced run, and the folder that it left."""
    folder = tmp_path_factory.mktemp("demo")
    done = subprocess.run(
        (*COMMAND, "--folder", str(folder)), capture_output=True, text=True, timeout=RUN_S, check=False
    )
    return done, folder


@pytest.fixture
def kept() -> Iterator[subprocess.Popen[str]]:
    """A run that is going on, in its own process group."""
    process = subprocess.Popen(
        (*COMMAND, "--keep"), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    yield process
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def test_a_reduced_run_proves_itself(finished: tuple[subprocess.CompletedProcess[str], Path]) -> None:
    """Status 0, and every claim holds, the two that matter most among them."""
    done, _ = finished
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    assert "7 of 7 checks hold: 18 requests" in done.stdout
    assert "holds  No privileged tool call ever reached q4 or q8" in done.stdout
    assert "holds  No context of 1,024 tokens or more ever reached q4" in done.stdout
    assert "FAILS" not in done.stdout


def test_the_numbers_add_up(finished: tuple[subprocess.CompletedProcess[str], Path]) -> None:
    """The table's requests and tokens are those of the access log that the run left."""
    done, folder = finished
    lines = [orjson.loads(line) for line in (folder / "access.log").read_bytes().splitlines()]
    answered = [line for line in lines if line["status"] == 200]
    rows = [row.groupdict() for row in ROW.finditer(done.stdout)]
    assert len(lines) == 18
    assert sum(int(row["requests"]) for row in rows) == len(answered)
    for row_field, line_field in (("tokens_in", "prompt_tokens"), ("tokens_out", "completion_tokens")):
        assert sum(int(row[row_field].replace(",", "")) for row in rows) == sum(line[line_field] for line in answered)
    for line in answered:
        if line["privilege"] == "high":
            assert line["pool"] == "bf16"
    assert {line["generation"] for line in lines} == {1, 2}


def test_a_log_reads_well(finished: tuple[subprocess.CompletedProcess[str], Path]) -> None:
    """No control characters, nothing wider than 100 columns, no trailing spaces."""
    done, _ = finished
    lines = done.stdout.splitlines()
    assert "\x1b" not in done.stdout
    assert max(map(len, lines)) <= 100
    assert all(line == line.rstrip() for line in lines)


def test_kept_running_its_lines_work_and_ctrl_c_ends_it(kept: subprocess.Popen[str]) -> None:
    """Each printed line does what it says, in a shell, from another folder; then everything is gone."""
    text = read_until(kept, "Still running") + read_until(kept, "llama.cpp itself, pool q4") + read_until(kept, "curl")
    assert "7 of 7 checks hold" in text
    shown = text[text.index("Still running") :]
    blocks = [block[2:].split("\n", 1) for block in shown.split("\n\n") if block.startswith("# ")]
    lines = dict(blocks)
    said = {title: shell(line) for title, line in lines.items()}
    assert orjson.loads(said["a chat"])["choices"][0]["message"]["content"]
    assert said["a stream"].startswith("data: ") and said["a stream"].rstrip().endswith("data: [DONE]")
    assert re.search(r"(?i)x-quantgate-pool: (bf16|q8|q4)", said["where it went, by the response headers"])
    assert re.search(r"(?i)x-quantgate-pool: bf16", said["a privileged tool: 16 bits only"])
    assert "privileged-tools-stay-16-bit" in said["why, in words, without sending it"]
    assert orjson.loads(said["edit the policy: a moment later it is in force, or its fault is told"])["generation"] >= 2
    assert "quantgate_requests_total{" in said["metrics"]
    assert orjson.loads(said["state of gateway and pools"])["status"] == "ok"
    assert len(orjson.loads(said["endpoints, and what they say they run"])["endpoints"]) == 3
    assert "routes" in orjson.loads(said["the policy in force"])["document"]
    assert orjson.loads(said["the access log, one line per request"].splitlines()[-1])["event"] == "request"
    assert "llamacpp:n_tokens_max" in said["llama.cpp itself, pool q4"]
    below = descendants(kept.pid)
    assert len(below) >= 7  # three servers, supervisor, control, two workers
    folder = Path(re.search(r"(/\S+quantgate-demo-\w+)/", shown)[1])  # type: ignore[index]
    kept.send_signal(signal.SIGINT)
    assert kept.wait(60) == 0
    assert gone(below) == set()
    assert not folder.exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_ended_in_the_middle_nothing_is_left(number: int, tmp_path: Path) -> None:
    """Ctrl-C, and even a kill, while requests run: no process stays behind."""
    command = (*COMMAND, "--folder", str(tmp_path))
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as process:
        said = read_until(process, " of 18 done")
        below = descendants(process.pid)
        assert len(below) >= 7
        process.send_signal(number)
        assert process.stdout is not None
        said += process.stdout.read()
        assert process.wait(60) == (-number if number == signal.SIGKILL else 128 + number)
    assert gone(below) == set()
    assert "Traceback" not in said


def test_a_port_in_use_is_told(weights: None) -> None:
    """Status 1, one message with the option and the mend, and no trace of Python."""
    del weights
    with socket.create_server(("127.0.0.1", 0)) as holder:
        address = f"127.0.0.1:{holder.getsockname()[1]}"
        done = subprocess.run((*COMMAND, "--listen", address), capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert f"--listen {address}: the port is already in use" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


def test_without_weights_and_network_it_is_told(tmp_path: Path) -> None:
    """Status 1, and what to do by hand."""
    environment = {
        **os.environ,
        "QUANTGATE_CACHE": str(tmp_path),
        "PIP_INDEX_URL": "http://127.0.0.1:1/simple",
        "PIP_RETRIES": "0",
    }
    environment = {
        name: value for name, value in environment.items() if name not in ("PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS")
    }
    done = subprocess.run(COMMAND, capture_output=True, text=True, timeout=120, check=False, env=environment)
    assert done.returncode == 1
    assert "by hand" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.parametrize("options", [("--requests", "17"), ("--listen", "nowhere"), ("--workers", "-1")])
def test_wrong_usage(options: tuple[str, str]) -> None:
    """Status 2, before anything is started."""
    done = subprocess.run((*COMMAND, *options), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert options[0] in done.stderr
