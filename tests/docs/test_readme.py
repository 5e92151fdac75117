"""The README is true: its policy loads, its commands do what it says, its links lead somewhere."""

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.processes import free_ports
from gateway.cli import COMMANDS
from gateway.policy.load import load
from tests.cases.gateway import wait_for

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
# The kind of a block, and for commands what must be in their output.
BLOCK = re.compile(r"^<!-- (policy|background|run)(?:: ([^>]*?))? -->\n```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = sorted(
    path for pattern in ("*.md", "docs/**/*.md", "deploy/**/*.md", "benchmarks/*.md") for path in ROOT.glob(pattern)
)


def blocks(kind: str) -> list[tuple[str, str, str]]:
    """Expected output, language and text of each block of a kind."""
    return [(expected, language, text) for found, expected, language, text in BLOCK.findall(README) if found == kind]


class Place:
    """A folder in which the README's commands run; its ports are replaced by free ones."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ports = dict(zip((8001, 8002, 8080, 9090), free_ports(4), strict=True))
        programs = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        self._environment = {**os.environ, "PATH": programs, "PYTHONUNBUFFERED": "1"}
        self._running: list[subprocess.Popen[bytes]] = []

    def text(self, text: str) -> str:
        """A block with this place's ports."""
        for port, free in self._ports.items():
            text = re.sub(rf"\b{port}\b", str(free), text)
        return text

    def port(self, port: int) -> int:
        """What stands for a port of the README."""
        return self._ports[port]

    def start(self, line: str) -> None:
        """A command that goes on."""
        command = self.text(line).split()
        if "serve" in command:
            command += ["--admin", f"127.0.0.1:{self._ports[9090]}"]
        with (self.folder / "output.log").open("ab") as log:
            self._running.append(
                subprocess.Popen(command, cwd=self.folder, env=self._environment, stdout=log, stderr=log)
            )

    def run(self, command: list[str]) -> str:
        """A command that ends; its output."""
        done = subprocess.run(
            command, cwd=self.folder, env=self._environment, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def stop(self) -> None:
        """End what goes on."""
        for process in reversed(self._running):
            process.send_signal(signal.SIGTERM)
        for process in self._running:
            process.wait(30)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """The README followed up to its first request."""
    made = Place(tmp_path_factory.mktemp("readme"))
    ((_, _, policy),) = blocks("policy")
    (made.folder / "policy.yaml").write_text(made.text(policy))
    try:
        for _, _, text in blocks("background"):
            for line in text.splitlines():
                made.start(line)
        try:
            wait_for(lambda: _ready(made.port(9090)), "the gateway is ready with both endpoints", 60)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{(made.folder / 'output.log').read_text()}") from None
        yield made
    finally:
        made.stop()


def _ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5) as reply:
            detail = json.load(reply)
    except OSError:
        return False
    states = [endpoint["state"] for endpoint in detail["endpoints"].values()]
    return states == ["ready", "ready"] and detail["workers"]["on_current_generation"] == 1


def test_the_policy_is_ten_lines_and_good(tmp_path: Path) -> None:
    """It loads as it stands, without a warning."""
    ((_, _, text),) = blocks("policy")
    (tmp_path / "policy.yaml").write_text(text)
    assert load(tmp_path / "policy.yaml").warnings == ()
    assert len(text.splitlines()) == 10


@pytest.mark.parametrize(("expected", "language", "text"), blocks("run"))
def test_the_commands_do_what_it_says(place: Place, expected: str, language: str, text: str) -> None:
    """Each block runs as it is written, and its output holds what the README claims."""
    command = [sys.executable, "-c"] if language == "python" else ["bash", "-ec"]
    output = place.run([*command, place.text(text)])
    assert output.strip()
    assert expected in output


def test_every_command_is_listed_and_has_help() -> None:
    """The table names commands that exist and answer ``--help``, and no command of a gateway is missing in it."""
    listed = re.findall(r"^\| `quantgate ([a-z]+)` \|", README, re.MULTILINE)
    assert set(listed) <= COMMANDS.keys()
    assert {"serve", "check", "explain", "test", "simulate", "demo"} <= set(listed)
    for name in listed:
        run = subprocess.run(
            [sys.executable, "-m", "gateway", name, "--help"], capture_output=True, text=True, check=False
        )
        assert run.returncode == 0, run.stderr
        assert "Usage:" in run.stdout


def test_make_has_the_two_commands() -> None:
    """The targets of the first block exist."""
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"^make (\w+)", README, re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    """Every relative link of every page is a file or folder of the repository."""
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target
