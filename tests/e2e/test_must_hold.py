"""What must hold under load with real processes: reloads, a killed control, a killed worker, and no text anywhere.

Load comes from asyncio clients over keep-alive connections and is bounded in count; every answer is checked.
"""

import asyncio
import hashlib
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.cases.client import ClosedError
from tests.cases.gateway import Gateway, policy, pool, wait_for, write_policy

EDITS_MOST = 300
SECRET_TEXT = "xylophone-marmalade-7731"
SECRET_KEY = "sk-must-never-appear-4471"


@pytest.fixture(scope="module")
def simulated() -> Iterator[str]:
    """A simulated runtime; its answers quote nothing of the prompt."""
    process = subprocess.Popen(
        [sys.executable, "-m", "gateway", "simulate", "--port", "0", "--model", "up"], stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    said = json.loads(process.stdout.readline())
    yield f"http://{said['host']}:{said['port']}"
    process.terminate()
    process.wait(10)


@pytest.fixture
def served(tmp_path: Path, simulated: str) -> Iterator[Gateway]:
    """A gateway with two workers in front of two pools that are the same simulated runtime."""
    write_policy(tmp_path / "policy.yaml", make_policy(simulated, ["a", "b"]))
    gateway = Gateway(tmp_path, tmp_path / "policy.yaml", workers=2).start()
    yield gateway
    gateway.stop()


def make_policy(url: str, order: list[str]) -> dict[str, object]:
    return policy(
        {"m": {}},
        {"a": pool("m", url), "b": pool("m", url)},
        [{"name": f"rule-{'-'.join(order)}", "pools": order}],
        tenants={"team": {"keys": [f"sha256:{sha(SECRET_KEY)}"]}},
    )


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


class Load:
    """Closed-loop clients, each on its own connection, paced so that the whole makes about ``rate`` requests/s."""

    def __init__(self, port: int, clients: int, rate: float) -> None:
        self._port = port
        self._pause_s = clients / rate
        self._clients = clients
        self._stop = asyncio.Event()
        self.answers: list[tuple[int, str, str]] = []
        self.broken: list[str] = []

    async def __aenter__(self) -> "Load":
        self._tasks = [asyncio.create_task(self._client(index)) for index in range(self._clients)]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._stop.set()
        await asyncio.gather(*self._tasks)

    async def reach(self, count: int) -> None:
        """Wait until that many answers have come since now."""
        goal = len(self.answers) + count
        async with asyncio.timeout(60):
            while len(self.answers) < goal:
                await asyncio.sleep(0.01)

    async def _client(self, index: int) -> None:
        body = json.dumps({"model": "m", "max_tokens": 4, "messages": [{"role": "user", "content": SECRET_TEXT}]})
        raw = (
            f"POST /v1/chat/completions HTTP/1.1\r\nHost: g\r\nContent-Type: application/json\r\n"
            f"Authorization: Bearer {SECRET_KEY}\r\nContent-Length: {len(body)}\r\n\r\n{body}"
        ).encode()
        await asyncio.sleep(random.Random(index).random() * self._pause_s)
        connection = None
        while not self._stop.is_set():
            try:
                if connection is None:
                    connection = await asyncio.open_connection("127.0.0.1", self._port)
                reader, writer = connection
                writer.write(raw)
                async with asyncio.timeout(20):
                    self.answers.append(await answer(reader))
            except (OSError, asyncio.IncompleteReadError) as error:
                self.broken.append(type(error).__name__)
                connection = None
            await asyncio.sleep(self._pause_s)
        if connection is not None:
            connection[1].close()


async def answer(reader: asyncio.StreamReader) -> tuple[int, str, str]:
    """(status, rule, first pool) of one answer."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    fields = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
    await reader.readexactly(int(fields["content-length"]))
    return int(head.split(" ", 2)[1]), fields.get("x-quantgate-rule", ""), fields.get("x-quantgate-pool", "")


@pytest.fixture
async def load(served: Gateway) -> AsyncIterator[Load]:
    """500 requests a second from 50 clients."""
    async with Load(served.port, 50, 500.0) as running:
        await running.reach(200)
        yield running


async def test_a_policy_edited_under_load_fails_no_request(served: Gateway, simulated: str, load: Load) -> None:
    """Every 200 ms a new file, each third one broken: all answers are 200, each by one complete generation."""
    before, orders = served.generation(), random.Random(7)
    for turn in range(EDITS_MOST):
        # How many of the edits become generations is the machine's speed: it is edited until several have.
        if turn >= 15 and await asyncio.to_thread(served.generation) > before + 3:
            break
        if turn % 3 == 2:
            served.config.write_text("version: 1\nmodels: {m: {}}\npools: {a: {model: [\n")
        else:
            # Drawn, not alternated: control that sees each second edit only would see the same policy each time.
            write_policy(served.config, make_policy(simulated, orders.choice((["a", "b"], ["b", "a"]))))
        await asyncio.sleep(0.2)
    else:
        pytest.fail(f"{EDITS_MOST} edits came to no more than {served.generation() - before} generations")
    write_policy(served.config, make_policy(simulated, ["b"]))
    await asyncio.to_thread(wait_for, lambda: (200, "rule-b", "b") in load.answers, "the last edit came into force", 20)
    await load.reach(200)
    assert load.broken == []
    assert {status for status, _, _ in load.answers} == {200}
    # The rule's name and the pool it prefers change together: an answer that mixed two generations would show it.
    assert {(rule, chosen) for _, rule, chosen in load.answers} == {
        ("rule-a-b", "a"),
        ("rule-b-a", "b"),
        ("rule-b", "b"),
    }


async def test_kill_9_of_control_loses_no_request_and_metrics_go_on(served: Gateway, load: Load) -> None:
    """Workers serve on with the table they have; control comes back with the same policy and counts again."""
    os.kill(served.pids["control"], signal.SIGKILL)
    await load.reach(500)
    await asyncio.to_thread(
        wait_for, lambda: control_pid(served) not in (None, served.pids["control"]), "control is back", 20
    )
    counted = await asyncio.to_thread(served.total, "quantgate_requests_total")
    await load.reach(300)
    await asyncio.to_thread(
        wait_for, lambda: served.total("quantgate_requests_total") >= counted + 300, "counters go on"
    )
    assert load.broken == []
    assert {status for status, _, _ in load.answers} == {200}
    assert served.generation() >= 1


def control_pid(served: Gateway) -> int | None:
    """The pid of the control that serves the admin port now; None while there is none."""
    try:
        served.admin("/readyz")
    except (OSError, ClosedError):
        return None
    restarts = [line for line in served.log_lines() if line.get("event") == "process_restarted"]
    pids = [int(line["pid"]) for line in restarts if line["name"] == "control"]
    return pids[-1] if pids else served.pids["control"]


async def test_kill_9_of_a_worker_breaks_only_its_own_connections(served: Gateway, load: Load) -> None:
    """Clients of the killed worker see a broken connection and come back; the others see nothing at all."""
    victim = served.worker_pids()[0]
    os.kill(victim, signal.SIGKILL)
    await load.reach(500)
    await asyncio.to_thread(
        wait_for, lambda: len(set(served.worker_pids()) - {victim}) == 2, "a new worker took its place", 20
    )
    await load.reach(300)
    assert 0 < len(load.broken) < 50
    assert {status for status, _, _ in load.answers} == {200}


async def test_no_text_and_no_key_in_logs_metrics_or_state(served: Gateway, load: Load) -> None:
    """After load with checks on: neither the prompt nor the key is in any log, metric, admin answer or state file."""
    await load.reach(300)
    served.connect().request({"model": "nope", "messages": [{"role": "user", "content": SECRET_TEXT}]}).read()
    served.connect().request(b'{"model": "m", "messages": "' + SECRET_TEXT.encode() + b'"}').read()
    seen = [served.access_log.read_bytes(), served.log.read_bytes(), str(served.metrics()).encode()]
    seen += [json.dumps(served.admin(path)).encode() for path in ("/readyz", "/api/v1/policy", "/api/v1/endpoints")]
    for path in (served.folder / "state").rglob("*"):
        if path.is_file():
            seen.append(path.read_bytes())
    assert any(b"request_id" in text for text in seen)
    for text in seen:
        assert SECRET_TEXT.encode() not in text
        assert SECRET_KEY.encode() not in text


def test_sqlite_is_what_the_state_scan_reads() -> None:
    """Guard of the test above: SQLite stores text as plain UTF-8, so scanning its file would find a leak."""
    database = sqlite3.connect(":memory:")
    database.execute("create table t (x text)")
    database.execute("insert into t values (?)", (SECRET_TEXT,))
    assert SECRET_TEXT.encode() in database.serialize()
