"""A real ``quantgate serve`` as a subprocess: its policy, its ports, its access log, its metrics."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.cases.client import Client, call

START_S = 90.0
WAIT_S = 30.0
TOLD_S = 1.0  # how long after a request its outcome is written for certain
T = TypeVar("T")

PRECISION = {"weights": "bf16", "activations": "bf16", "kv_cache": "bf16"}


def wait_for(probe: Callable[[], T | None], what: str, timeout: float = WAIT_S) -> T:
    """The first true value of ``probe``; fails naming ``what`` if there is none in time."""
    due = time.monotonic() + timeout
    while True:
        found = probe()
        if found:
            return found
        if time.monotonic() > due:
            raise AssertionError(f"not within {timeout} s: {what}")
        time.sleep(0.02)


def pool(model: str, *urls: str, **extra: Any) -> dict[str, Any]:
    """A pool of plain OpenAI endpoints."""
    return {
        "model": model,
        "runtime": "openai",
        "precision": PRECISION,
        "endpoints": list(urls),
        "attestation": "off",
        "upstream_model": "up",
        **extra,
    }


def policy(
    models: Mapping[str, Any], pools: Mapping[str, Any], routes: list[dict[str, Any]], **extra: Any
) -> dict[str, Any]:
    """A policy that serves callers without a key, with retries as many as a test needs."""
    settings = {"retry_budget": 1.0, **extra.pop("gateway", {})}
    return {
        "version": 1,
        "models": dict(models),
        "pools": dict(pools),
        "tenants": {"anonymous": {"allow": True}, **extra.pop("tenants", {})},
        "routes": routes,
        "gateway": settings,
        **extra,
    }


def simple_policy(url: str, **extra: Any) -> dict[str, Any]:
    """One model ``m`` on one endpoint."""
    models = {"m": {"tokenizer": {"tiktoken": "cl100k_base"}}}
    return policy(models, {"a": pool("m", url)}, [{"name": "all", "pools": ["a"]}], **extra)


class Gateway:
    """One running gateway. ``config`` is its policy file or folder.

    ``running`` are those of the whole session, for the report of a failure.
    """

    running: ClassVar[list["Gateway"]] = []

    def __init__(self, folder: Path, config: Path, *, workers: int = 1, drain_s: float = 2.0) -> None:
        self.folder = folder
        self.config = config
        self.access_log = folder / "access.jsonl"
        self.log = folder / "gateway.log"
        self.port = self.admin_port = 0
        self.token = ""
        self.pids: dict[str, int] = {}
        self._workers = workers
        self._drain_s = drain_s
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> "Gateway":
        """Start it and wait until it serves."""
        Gateway.running.append(self)
        command = [sys.executable, "-m", "gateway", "serve", "--config", str(self.config)]
        command += ["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--workers", str(self._workers)]
        command += ["--state-dir", str(self.folder / "state"), "--drain-s", str(self._drain_s)]
        command += ["--access-log", str(self.access_log)]
        root = Path(__file__).resolve().parents[2]
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=subprocess.STDOUT, cwd=root, env={**os.environ, "PYTHONUNBUFFERED": "1"}
            )
        serving = wait_for(self._serving, f"the gateway serves\n{self.tail()}", START_S)
        self.port = int(serving["listen"].rpartition(":")[2])
        self.admin_port = int(serving["admin"].rpartition(":")[2])
        self.pids = serving["pids"]
        wait_for(lambda: self.ready()["workers"]["on_current_generation"] == self._workers, "all workers are ready", 20)
        return self

    def stop(self) -> int:
        """Stop it as an orchestrator would."""
        assert self._process is not None
        if self in Gateway.running:
            Gateway.running.remove(self)
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(self._drain_s + 15)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        return self._process.returncode

    def _serving(self) -> dict[str, Any] | None:
        assert self._process is not None
        if self._process.poll() is not None:
            raise AssertionError(f"the gateway ended with {self._process.returncode}\n{self.tail()}")
        return next((line for line in self.log_lines() if line.get("event") == "serving"), None)

    def tail(self) -> str:
        """The end of its log, for failures."""
        return self.log.read_text(errors="replace")[-4000:] if self.log.exists() else ""

    def told(self) -> str:
        """What it said of its last requests, and the end of its log: a failed test shows it."""
        time.sleep(TOLD_S)
        lines = self.access_log.read_text(errors="replace").splitlines() if self.access_log.exists() else []
        return "\n".join([*lines[-5:], "", self.tail()[-1500:]])

    def log_lines(self) -> list[dict[str, Any]]:
        """Its log as values."""
        return _json_lines(self.log)

    # what it tells

    def connect(self, **options: Any) -> Client:
        """A client connection."""
        return Client(self.port, **options)

    def admin(self, path: str) -> Any:
        """JSON of the admin port, asked with ``token`` if there is one."""
        headers = [("Authorization", f"Bearer {self.token}")] if self.token else []
        return call(self.admin_port, method="GET", path=path, headers=headers).json

    def ready(self) -> Any:
        """``/readyz``."""
        return self.admin("/readyz")

    def generation(self) -> int:
        """The generation in force."""
        return int(self.ready()["generation"])

    def outcomes(self, **wanted: Any) -> list[dict[str, Any]]:
        """Lines of the access log with these values."""
        lines = _json_lines(self.access_log)
        return [line for line in lines if all(line.get(key) == value for key, value in wanted.items())]

    def outcome(self, count: int = 1, **wanted: Any) -> dict[str, Any]:
        """The ``count``-th line with these values, once it is written."""
        lines = wait_for(
            lambda: found if len(found := self.outcomes(**wanted)) >= count else None, f"{count} outcomes {wanted}"
        )
        return lines[count - 1]

    def metrics(self) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
        """Every sample of a scrape by name and sorted labels."""
        text = call(self.admin_port, method="GET", path="/metrics").body.decode()
        return {
            (sample.name, tuple(sorted(sample.labels.items()))): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }

    def total(self, name: str, **labels: str) -> float:
        """Sum of the samples of one name that have these labels."""
        wanted = labels.items()
        return sum(
            value for (sample, pairs), value in self.metrics().items() if sample == name and wanted <= set(pairs)
        )

    # what it costs

    def descriptors(self) -> int:
        """Open file descriptors of all workers."""
        return sum(len(list(Path(f"/proc/{pid}/fd").iterdir())) for pid in self.worker_pids())

    def resident_bytes(self) -> int:
        """Resident memory of all workers."""
        total = 0
        for pid in self.worker_pids():
            status = Path(f"/proc/{pid}/status").read_text()
            total += int(status.partition("VmRSS:")[2].split()[0]) * 1024
        return total

    def worker_pids(self) -> list[int]:
        """The workers' process ids as control knows them."""
        return [int(worker["pid"]) for worker in self.admin("/api/v1/workers")["workers"]]


def write_policy(path: Path, document: Mapping[str, Any]) -> Path:
    """Write a policy file in place."""
    path.write_text(yaml.safe_dump(dict(document), sort_keys=False))
    return path


def _json_lines(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    lines = []
    for line in path.read_bytes().splitlines():
        if line.startswith(b"{") and line.endswith(b"}"):
            try:
                lines.append(json.loads(line))
            except json.JSONDecodeError:  # half-written
                continue
    return lines
