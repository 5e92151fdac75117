"""``quantgate simulate`` as a person starts it."""

import json
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.cli.simulate import _patch

COMMAND = [sys.executable, "-m", "gateway", "simulate"]


def test_options_become_settings() -> None:
    """Given options end in their place; those left out change nothing."""
    given = {"model": "m", "ttft": 0.5, "seed": None, "kv_cache_dtype": "fp8", "quantization": None}
    assert _patch(given) == {"model": "m", "ttft": {"constant": 0.5}, "precision": {"kv_cache_dtype": "fp8"}}


def test_it_says_where_it_listens_and_serves(tmp_path: Path) -> None:
    """One JSON line tells the ports; file and options hold together; SIGTERM ends it well."""
    settings = tmp_path / "sim.yaml"
    settings.write_text("aliases: [gpt-x]\nprecision: {quantization: fp8}\n")
    options = ["--port", "0", "--control-port", "0", "--config", str(settings), "--model", "m"]
    process = subprocess.Popen([*COMMAND, *options], stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        where = json.loads(process.stdout.readline())
        assert (where["event"], where["model"]) == ("listening", "m")
        with urllib.request.urlopen(f"http://127.0.0.1:{where['port']}/v1/models", timeout=10) as answer:
            assert [entry["id"] for entry in json.load(answer)["data"]] == ["m", "gpt-x"]
        with urllib.request.urlopen(f"http://127.0.0.1:{where['control_port']}/sim/config", timeout=10) as answer:
            assert json.load(answer)["precision"]["quantization"] == "fp8"
    finally:
        process.terminate()
    assert process.wait(10) == 0


@pytest.fixture
def taken_port() -> Iterator[int]:
    """A port at which somebody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.mark.parametrize("option", ["--port", "--control-port"])
def test_a_port_that_is_taken_is_one_line(taken_port: int, option: str) -> None:
    """Exit code 3, as of ``serve``."""
    free = [] if option == "--port" else ["--port", "0"]
    done = subprocess.run(
        [*COMMAND, *free, option, str(taken_port)], capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode == 3
    assert str(taken_port) in done.stderr and "in use" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize("options", [("--port", "65536"), ("--port", "0", "--config", ".")])
def test_what_cannot_be_is_told_before_anything_starts(options: tuple[str, ...]) -> None:
    """A port beyond all ports, a folder for a file."""
    done = subprocess.run([*COMMAND, *options], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 2
    assert options[-2] in done.stderr or "directory" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("text", ["modle: m\n", "ttft: {constant: -1}\n", "a: [b\n"])
def test_bad_settings_end_it_with_the_reason(tmp_path: Path, text: str) -> None:
    """A wrong file ends the command with its name and what is wrong."""
    settings = tmp_path / "sim.yaml"
    settings.write_text(text)
    done = subprocess.run(
        [*COMMAND, "--port", "0", "--config", str(settings)], capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode == 2
    assert str(settings) in done.stderr
