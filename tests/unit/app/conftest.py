"""A gateway of real processes with stub workers, and how to watch it."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

PATIENCE_S = 20.0
POLICY = """version: 1
models: {m: {context_window: 8192}}
pools:
  %s:
    model: m
    runtime: openai
    precision: {weights: bf16, activations: bf16, kv_cache: bf16}
    hardware: {gpu: H100, compute_capability: "9.0"}
    endpoints: [http://127.0.0.1:9]
tenants: {anonymous: {allow: true}}
routes: [{name: default, pools: [%s]}]
"""


def policy_text(pool="bf16"):
    """A valid policy of one pool."""
    return POLICY % (pool, pool)


def eventually(condition, what="the condition"):
    """Wait until ``condition`` gives something true; give it back."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        found = condition()
        if found:
            return found
        time.sleep(0.01)
    raise AssertionError(f"{what} did not come within {PATIENCE_S} s")


class Gateway:
    """A running supervisor. ``events`` are its and control's log lines so far."""

    def __init__(self, directory, **options):
        self.directory = directory
        self.state_dir = directory / "state"
        self.config = directory / "policy.yaml"
        settings = {
            "config": str(self.config),
            "listen": {"host": "127.0.0.1", "port": 0},
            "admin": {"host": "127.0.0.1", "port": 0},
            "workers": 2,
            "state_dir": str(self.state_dir),
            "access_log": str(directory / "access.jsonl"),
            **options,
        }
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("run_supervisor.py")), json.dumps(settings)],
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self.lines = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.process.stderr:
            self.lines.append(line.decode().rstrip())

    @property
    def events(self):
        """Log lines that are JSON."""
        return [json.loads(line) for line in list(self.lines) if line.startswith("{")]

    def event(self, name, /, **fields):
        """The latest event of that name with those fields, or None."""
        for event in reversed(self.events):
            if event["event"] == name and all(event.get(key) == value for key, value in fields.items()):
                return event
        return None

    def serving(self):
        """The line that tells addresses and process ids."""
        return eventually(lambda: self.event("serving"), "serving")

    def get(self, path):
        """Status and JSON (or text) of the admin port; status 0 when it does not answer."""
        url = f"http://{self.serving()['admin']}{path}"
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                status, body = answer.status, answer.read()
        except urllib.error.HTTPError as error:
            status, body = error.code, error.read()
        except OSError:
            return 0, None
        return status, json.loads(body) if body.startswith(b"{") else body.decode()

    def ready(self, workers=2, **expected):
        """Wait until control is ready with so many workers on the current generation; its detail."""

        def check():
            status, detail = self.get("/readyz")
            good = status == 200 and detail["workers"]["on_current_generation"] == workers
            return detail if good and all(detail[key] == value for key, value in expected.items()) else None

        return eventually(check, "readiness")

    def requests(self):
        """Requests counted so far."""
        _, text = self.get("/metrics")
        lines = [line for line in (text or "").splitlines() if line.startswith("quantgate_requests_total{")]
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines)

    def pids(self):
        """Process ids of the connected workers by index."""
        _, shown = self.get("/api/v1/workers")
        return {row["worker"]: row["pid"] for row in shown["workers"]} if shown else {}

    def signal(self, number):
        """To the supervisor."""
        self.process.send_signal(number)

    def ends(self, code):
        """It ends by itself with this exit code; all it wrote is then in ``lines``."""
        try:
            ended = self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            ended = None
        else:
            self._reader.join(PATIENCE_S)
        assert ended == code, "\n".join(self.lines[-30:])


def alive(pid):
    """Whether a process exists and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture
def start(tmp_path):
    """Starts gateways in ``tmp_path`` with a valid policy, unless there is one already."""
    started = []

    def go(**options):
        config = tmp_path / "policy.yaml"
        if not config.exists():
            config.write_text(policy_text())
        started.append(Gateway(tmp_path, **options))
        return started[-1]

    yield go
    for gateway in started:
        if gateway.process.poll() is None:
            os.kill(gateway.process.pid, signal.SIGKILL)
        gateway.process.wait(PATIENCE_S)
        gateway._reader.join(PATIENCE_S)
        gateway.process.stderr.close()


@pytest.fixture
def taken_port():
    """A port on which somebody listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


@pytest.fixture(name="eventually")
def eventually_fixture():
    """``eventually``."""
    return eventually


@pytest.fixture(name="policy_text")
def policy_text_fixture():
    """``policy_text``."""
    return policy_text


@pytest.fixture(name="alive")
def alive_fixture():
    """``alive``."""
    return alive
