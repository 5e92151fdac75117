"""The gateway of the demo: ``quantgate serve`` as a process of its own, as anyone would run it, and its admin port.

Owns the supervisor's process; control and the workers are the supervisor's. Synchronous, as ``fleet``: an asyncio
caller uses ``asyncio.to_thread``. Called by ``gateway.demo.run``.
"""

import os
import signal
import subprocess  # starts this package's own command, no shell
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import orjson

from gateway.demo.fleet import get

READY_S = 60.0
DRAIN_S = 2.0
STOP_S = 17.0
"""Longer than the drain and what the supervisor then gives workers and control for their last words. Killed earlier, it
would leave children that the kernel ends a moment later, and that still write meanwhile."""
_POLL_S = 0.05
_ENDED = "quantgate: "

PreExec = Callable[[], None] | None


class GatewayError(Exception):
    """The gateway does not start or is not there any more. The message says what it said."""


class GatewayOptions(msgspec.Struct, frozen=True):
    """How to start it. Addresses are HOST:PORT, port 0 = any free one. ``folder`` gets state and logs."""

    policy: Path
    folder: Path
    listen: str
    admin: str
    workers: int
    environment: Mapping[str, str]

    @property
    def log(self) -> Path:
        """What its processes say."""
        return self.folder / "gateway.log"

    @property
    def access_log(self) -> Path:
        """One JSON line per request."""
        return self.folder / "access.log"

    def command(self) -> tuple[str, ...]:
        """The command line."""
        return (
            *(sys.executable, "-m", "gateway", "serve"),
            *("--config", str(self.policy)),
            *("--listen", self.listen),
            *("--admin", self.admin),
            *("--workers", str(self.workers)),
            *("--state-dir", str(self.folder / "state")),
            *("--access-log", str(self.access_log)),
            *("--drain-s", str(DRAIN_S)),
        )


class GatewayProcess:
    """One gateway. ``before_exec`` runs in its process before the program does."""

    def __init__(self, options: GatewayOptions, before_exec: PreExec = None) -> None:
        self.options = options
        self.url = self.admin_url = ""
        self._before_exec = before_exec
        self._process: subprocess.Popen[bytes] | None = None

    def launch(self) -> None:
        """Start the process, from the main thread: where the kernel is to end it with its parent, that thread is it."""
        with self.options.log.open("wb") as log:
            self._process = subprocess.Popen(  # noqa: S603 - this package's own command
                self.options.command(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **self.options.environment},
                start_new_session=True,  # a terminal's Ctrl-C comes to the demo alone, which stops things in order
                preexec_fn=self._before_exec,  # noqa: PLW1509 - the demo has no other thread then
            )

    def wait_ready(self) -> None:
        """Wait until every worker serves the policy and every endpoint is ready. Raises ``GatewayError``."""
        deadline = time.monotonic() + READY_S
        while not (self.admin_url and is_ready(self.state(), self.options.workers)):
            self.check()
            if time.monotonic() > deadline:
                raise GatewayError(f"the gateway was not ready within {READY_S:.0f} s: {self._why()}")
            time.sleep(_POLL_S)
            if not self.admin_url:
                self._read_addresses()

    def stop(self) -> None:
        """End it: in order, by force if it overstays. May be called again."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)  # its children go with it
        process.wait()

    def check(self) -> None:
        """Raise if the process has ended."""
        if self._process is not None and self._process.poll() is not None:
            raise GatewayError(f"the gateway ended with status {self._process.returncode}: {self._why()}")

    def state(self) -> dict[str, Any]:
        """What ``/readyz`` tells, ready or not; nothing where it does not answer."""
        return self._admin("/readyz")

    def endpoints(self) -> list[dict[str, Any]]:
        """What ``/api/v1/endpoints`` tells: state and attestation of each."""
        found = self._admin("/api/v1/endpoints").get("endpoints", [])
        return found if isinstance(found, list) else []

    def rollouts(self, name: str) -> dict[str, Any]:
        """What ``/api/v1/rollouts`` tells of one rollout: where its buckets stand, and on which evidence."""
        return self._admin(f"/api/v1/rollouts?rollout={name}")

    def rollout_history(self, name: str) -> dict[str, Any]:
        """The newest lines of its record."""
        return self._admin(f"/api/v1/rollouts/{name}/history")

    def metrics(self) -> str:
        """``/metrics`` as text."""
        return get(self.admin_url, "/metrics")[1].decode()

    def _admin(self, path: str) -> dict[str, Any]:
        """A JSON object of the admin port; empty where there is none."""
        return _object(get(self.admin_url, path)[1]) if self.admin_url else {}

    def _read_addresses(self) -> None:
        """The addresses as the gateway itself logs them, which tells the real port where any was asked for."""
        for event in self._events():
            if event.get("event") == "serving":
                self.url, self.admin_url = f"http://{event['listen']}", f"http://{event['admin']}"

    def _events(self) -> list[dict[str, Any]]:
        lines = self.options.log.read_bytes().splitlines()
        return [event for line in lines if line.startswith(b"{") and (event := _object(line))]

    def _why(self) -> str:
        """The reason in its own words: what it printed for people, else the last error that it logged."""
        text = self.options.log.read_text(errors="replace")
        plain = [line for line in text.splitlines() if line.strip() and not line.startswith("{")]
        if plain:
            first = next((index for index, line in enumerate(plain) if line.startswith(_ENDED)), -1)
            return "\n".join(plain[first:]).removeprefix(_ENDED) if first >= 0 else plain[-1]
        errors = [event for event in self._events() if event.get("level") in ("error", "critical")]
        return orjson.dumps(errors[-1]).decode() if errors else "it said nothing"


def is_ready(state: Mapping[str, Any], workers: int) -> bool:
    """Whether every worker serves the current policy and every endpoint was seen ready."""
    serving = state.get("workers", {}).get("on_current_generation") == workers
    endpoints = state.get("endpoints", {}).values()
    return serving and bool(endpoints) and all(endpoint["state"] == "ready" for endpoint in endpoints)


def _object(body: bytes) -> dict[str, Any]:
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}
