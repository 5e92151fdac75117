"""Feedback finds its answer wherever it is told: after control was killed, and at another gateway of one database."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cases.client import Client, ClosedError
from tests.cases.gateway import Gateway, policy, pool, wait_for, write_policy
from tests.e2e.test_evidence import Simulated, ask, digest
from tests.unit.store.postgres import Postgres, binaries

TALK = {"messages": [{"role": "user", "content": "hi"}]}


@pytest.fixture
def document(tmp_path: Path) -> Iterator[dict[str, Any]]:
    """A policy with two tenants and one pool, whose runtime is simulated."""
    runtime = Simulated(tmp_path, "base", [])
    yield policy(
        {"m": {"baseline": "base"}},
        {"base": pool("m", runtime.url)},
        [{"name": "all", "pools": ["base"]}],
        tenants={name: {"keys": [digest(f"sk-{name}")]} for name in ("acme", "mallory")},
    )
    runtime.stop()


def answered(gateway: Gateway) -> str:
    """The id of a request of acme's whose record is written."""
    before = gateway.total("quantgate_records_written_total", table="requests")
    with Client(gateway.port) as client:
        request_id, answer = ask(client, "sk-acme", TALK)
    assert answer["choices"]
    wait_for(lambda: gateway.total("quantgate_records_written_total", table="requests") > before, "its record")
    return request_id


def tell(gateway: Gateway, key: str, request_id: str, label: str) -> None:
    with Client(gateway.port) as client:
        ask(client, key, {"request_id": request_id, "label": label}, "/v1/feedback")


def counted(gateway: Gateway, verdict: str) -> float:
    return gateway.total("quantgate_consequences_total", kind="feedback", verdict=verdict)


def ignored(gateway: Gateway, why: str) -> float:
    return gateway.total("quantgate_feedback_ignored_total", why=why)


def test_feedback_counts_after_control_was_killed(tmp_path: Path, document: dict[str, Any]) -> None:
    """The answer is on record: its tenant's word counts, another's does not, and the same word counts once."""
    gateway = Gateway(tmp_path, write_policy(tmp_path / "policy.yaml", document)).start()
    try:
        request_id = answered(gateway)
        os.kill(gateway.pids["control"], signal.SIGKILL)
        wait_for(lambda: _ready_again(gateway), "control is back", 30)
        tell(gateway, "sk-mallory", request_id, "bad")
        wait_for(lambda: ignored(gateway, "other_tenant") == 1, "a stranger's word is found to be one", 20)
        tell(gateway, "sk-acme", request_id, "bad")
        wait_for(lambda: counted(gateway, "bad") == 1, "it counts", 20)
        tell(gateway, "sk-acme", request_id, "bad")
        wait_for(lambda: ignored(gateway, "repeated") == 1, "once", 20)
        record = wait_for(lambda: _aftermath(gateway, request_id), "it is on record", 20)
        assert [(later["kind"], later["pool"], later["score"]) for later in record] == [("feedback", "base", 0.0)]
    finally:
        gateway.stop()


@pytest.mark.skipif(binaries() is None, reason="no PostgreSQL server is installed")
def test_feedback_counts_at_another_gateway(
    tmp_path: Path, document: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A load balancer sends it anywhere; what the first gateway has counted, the second does not count again."""
    server = Postgres().start()
    monkeypatch.setenv("DATABASE_OF_TESTS", server.url)
    document["records"] = {"url": "env:DATABASE_OF_TESTS"}
    running: list[Gateway] = []
    try:
        for name in ("a", "b"):
            (tmp_path / name).mkdir()
            running.append(Gateway(tmp_path / name, write_policy(tmp_path / name / "policy.yaml", document)).start())
        first, second = running
        request_id = answered(first)
        tell(first, "sk-acme", request_id, "good")
        wait_for(lambda: counted(first, "good") == 1, "the first counts it", 20)
        wait_for(lambda: first.total("quantgate_records_written_total", table="aftermath") == 1, "it is on record")
        tell(second, "sk-acme", request_id, "good")
        tell(second, "sk-acme", request_id, "bad")
        wait_for(lambda: counted(second, "bad") == 1, "a change of mind counts", 20)
        assert (counted(second, "good"), ignored(second, "repeated")) == (0, 1)
    finally:
        for gateway in running:
            gateway.stop()
        server.stop()


def _ready_again(gateway: Gateway) -> bool:
    """Whether another control serves the admin port and the worker has joined it."""
    restarted = any(line.get("event") == "process_restarted" for line in gateway.log_lines())
    try:
        return restarted and gateway.ready()["workers"]["on_current_generation"] == 1
    except (OSError, ClosedError):
        return False


def _aftermath(gateway: Gateway, request_id: str) -> Any:
    return gateway.admin(f"/api/v1/records/{request_id}")["aftermath"]
