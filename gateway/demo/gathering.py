"""What the gateway and the servers tell of requests, from a moment on: the accounts that ``proof`` compares.

Owns the reading of their logs and counters, and the waiting for last lines. Called by ``gateway.demo.run`` and
``gateway.demo.rollout``, once for each part of the demo.
"""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from gateway.demo import report
from gateway.demo.access import Entry, read_access_log
from gateway.demo.client import Answer
from gateway.demo.fleet import FleetError, RunningServer, get
from gateway.demo.gateway_process import GatewayProcess
from gateway.demo.proof import Account, Evidence
from gateway.demo.witness import Counters, Sighting, finished, read_counters, read_sightings
from gateway.demo.workload import Item

LAST_LINES_S = 20.0
_POLL_S = 0.1


class Mark(msgspec.Struct, frozen=True):
    """How much each had told at a moment: servers' counters and tasks by name, the gateway's lines and requests."""

    counters: Mapping[str, Counters]
    sightings: Mapping[str, int]
    entries: int
    counted: int


class Witnesses:
    """A gateway, its servers, and the folder of the servers' logs."""

    def __init__(self, gateway: GatewayProcess, servers: Sequence[RunningServer], logs: Path) -> None:
        self._gateway = gateway
        self._servers = servers
        self._logs = logs

    def mark(self) -> Mark:
        """What they have told until now, while nothing runs."""
        return Mark(
            {server.spec.name: counters_of(server) for server in self._servers},
            {server.spec.name: len(self._sightings(server)) for server in self._servers},
            len(self._entries()),
            report.requests_counted(self._gateway.metrics()),
        )

    def gather(self, items: Sequence[Item], answers: Mapping[int, Answer], since: Mark) -> Evidence:
        """All accounts after ``since``. Logs are written in batches: their last lines are waited for, within limits."""
        deadline = time.monotonic() + LAST_LINES_S
        while True:
            entries = self._entries()[since.entries :]
            accounts = [self._account(server, since) for server in self._servers]
            counted = report.requests_counted(self._gateway.metrics()) - since.counted
            whole = min(len(entries), counted) >= len(items) and all(finished(one.sightings) for one in accounts)
            if whole or time.monotonic() > deadline:
                return Evidence(items, answers, entries, accounts, counted)
            time.sleep(_POLL_S)

    def _entries(self) -> tuple[Entry, ...]:
        log = self._gateway.options.access_log
        return read_access_log(log.read_bytes()) if log.exists() else ()

    def _sightings(self, server: RunningServer) -> tuple[Sighting, ...]:
        return read_sightings((self._logs / f"{server.spec.name}.log").read_text(errors="replace"))

    def _account(self, server: RunningServer, since: Mark) -> Account:
        name = server.spec.name
        seen = self._sightings(server)[since.sightings[name] :]
        return Account(name, seen, counters_of(server).since(since.counters[name]))


def counters_of(server: RunningServer) -> Counters:
    """A server's own totals. ``FleetError`` where it tells none: no number is not zero."""
    try:
        return read_counters(get(server.url, "/metrics")[1].decode())
    except ValueError as error:
        raise FleetError(f"server {server.spec.name} at {server.url} tells no counters any more: {error}") from error
