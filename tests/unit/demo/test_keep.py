"""What ``--keep`` prints fits a terminal and is what a shell takes. The end-to-end test runs the lines."""

import io
import subprocess
from pathlib import Path

import orjson
import pytest
from rich.console import Console

from gateway.demo import keep
from gateway.demo.fleet import RunningServer, ServerSpec
from gateway.demo.gateway_process import GatewayOptions, GatewayProcess
from gateway.demo.rollout.chapter import Ended

KEYS = {"acme": "demo-acme-0123456789ab", "globex": "demo-globex-0123456789ab"}


@pytest.fixture
def gateway(tmp_path: Path) -> GatewayProcess:
    """A gateway as if it ran."""
    folder = tmp_path / "with space"
    process = GatewayProcess(GatewayOptions(folder / "demo.yaml", folder, "", "", 1, {}))
    process.url, process.admin_url = "http://127.0.0.1:40000", "http://127.0.0.1:40001"
    return process


@pytest.fixture
def servers() -> list[RunningServer]:
    """One server as if it ran."""
    return [RunningServer(ServerSpec("q4", Path("m.gguf"), "m"), "http://127.0.0.1:40002", 1)]


def test_a_shell_takes_every_line(gateway: GatewayProcess, servers: list[RunningServer]) -> None:
    """Quotes and continued lines are right, also with a space in a path."""
    for title, line in keep.lines(gateway, servers, KEYS):
        assert title
        assert subprocess.run(["sh", "-n", "-c", line], check=False).returncode == 0, line


def test_printed_lines_are_whole_and_short(gateway: GatewayProcess, servers: list[RunningServer]) -> None:
    """Nothing is wrapped or coloured into them, and requests fit a terminal of 100 columns."""
    out = io.StringIO()
    keep.show(Console(file=out, width=60), gateway, servers, KEYS)
    for _, line in keep.lines(gateway, servers, KEYS):
        assert line in out.getvalue()
        if "curl" in line and "EDITOR" not in line:
            assert max(map(len, line.splitlines())) <= 100


def test_after_a_rollout_it_can_be_looked_into(gateway: GatewayProcess, servers: list[RunningServer]) -> None:
    """Where it stands, its record, and each rollback; a bucket's name is one word for the shell."""
    ended = Ended(good=True, rollout="q4-json", rolled_back=("short/free-json/none",))
    found = keep.rollout_lines(gateway, ended)
    for _, line in found:
        assert subprocess.run(["sh", "-n", "-c", line], check=False).returncode == 0, line
        assert line.endswith("--admin 127.0.0.1:40001")
    assert "rollout incident q4-json short/free-json/none " in found[-1][1]
    assert len(keep.rollout_lines(gateway, Ended(good=True, rollout="q4-json", rolled_back=()))) == len(found) - 1
    out = io.StringIO()
    keep.show(Console(file=out, width=60), gateway, servers, KEYS, ended)
    assert all(line in out.getvalue() for _, line in found)


def test_a_body_is_json() -> None:
    """The line break inside is white space, and the fields are as given."""
    assert "\n" in (text := keep.body("Hi 'you'", stream=True))
    assert orjson.loads(text)["stream"] is True
    assert orjson.loads(text)["messages"] == [{"role": "user", "content": "Hi 'you'"}]
