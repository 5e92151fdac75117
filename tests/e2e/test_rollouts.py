"""Rollouts with real processes: out of one bucket within seconds, through kills of control and workers, two people.

Two simulated pools that answer alike until one is told to break JSON in prompts of one kind. Budgets and limits are
those of a real policy but for the times, which are short so that the evidence comes quickly.
"""

import asyncio
import hashlib
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gateway.model.messages import Rollouts
from tests.cases.client import call
from tests.cases.gateway import Gateway, policy, pool, wait_for, write_policy

ALPHA, BETA = "m/alpha", "m/beta"
SAMPLES_KEY = "correct horse battery staple"
TOKENS = {"ann": "token-of-ann-5521", "bob": "token-of-bob-7718", "eve": "token-of-eve-9934"}
INT4 = {"weights": "int4", "activations": "bf16", "kv_cache": "bf16", "method": "awq", "group_size": 128}


class Simulator:
    """One simulated pool and its faults."""

    def __init__(self, *options: str) -> None:
        command = [sys.executable, "-m", "gateway", "simulate", "--port", "0", "--model", "up", "--control-port", "0"]
        self.process = subprocess.Popen([*command, *options], stdout=subprocess.PIPE)
        assert self.process.stdout is not None
        said = json.loads(self.process.stdout.readline())
        self.port = int(said["port"])
        self.url = f"http://{said['host']}:{said['port']}"

    def fault(self, *faults: dict[str, Any]) -> None:
        """Replace the faults in force."""
        body = json.dumps({"faults": list(faults)}).encode()
        assert call(self.port, method="POST", path="/sim/faults", body=body).status == 200

    def configure(self, **patch: Any) -> None:
        """Change what it is."""
        assert call(self.port, method="POST", path="/sim/config", body=json.dumps(patch).encode()).status == 200

    def stop(self) -> None:
        """End it."""
        self.process.terminate()
        self.process.wait(10)


@pytest.fixture(scope="module")
def pools() -> Iterator[tuple[Simulator, Simulator]]:
    """The baseline and the candidate."""
    both = Simulator(), Simulator()
    yield both
    for one in both:
        one.stop()


def make_policy(baseline: str, candidate: str, *, approvals: int = 0) -> dict[str, Any]:
    task = {"time": "2s", "requests": 60}
    return policy(
        {"m": {"baseline": "bf16"}},
        {"bf16": pool("m", baseline), "int4": pool("m", candidate) | {"precision": INT4}},
        [{"name": "r", "pools": ["int4", "bf16"]}],
        classify={
            "tasks": [{"task": "alpha", "text": ["ALPHA"]}, {"task": "beta", "text": ["BETA"]}],
            "buckets": {"by": ["model", "task"]},
        },
        rollouts=[
            {
                "name": "int4-all",
                "candidate": "int4",
                "baseline": "bf16",
                "stages": [{"weight": "50%", "at_least": task}, {"weight": "90%", "at_least": task}],
                "promote": {"approvals": approvals},
                "guards": ["errors", "json"],
            }
        ],
        guards={
            "errors": {"metric": "error_rate", "limit": "5%", "block": "1s", "deadline": "5s"},
            "json": {
                "metric": "format_error_rate",
                "limit": "5%",
                "feed": "product",
                "block": "1s",
                "deadline": "5s",
            },
        },
        operators=[
            {"name": name, "token": f"sha256:{hashlib.sha256(token.encode()).hexdigest()}", "role": role}
            for (name, token), role in zip(TOKENS.items(), ("approver", "approver", "operator"), strict=True)
        ],
        records={"samples": {"keep": "incidents", "key": "env:SAMPLES_KEY_OF_TESTS"}},
    )


@pytest.fixture
def gateway(tmp_path: Path, pools: tuple[Simulator, Simulator], monkeypatch: pytest.MonkeyPatch) -> Iterator[Gateway]:
    """Two workers in front of both pools."""
    monkeypatch.setenv("SAMPLES_KEY_OF_TESTS", SAMPLES_KEY)
    baseline, candidate = pools
    candidate.fault()
    write_policy(tmp_path / "policy.yaml", make_policy(baseline.url, candidate.url))
    running = Gateway(tmp_path, tmp_path / "policy.yaml", workers=2)
    running.token = TOKENS["eve"]
    yield running.start()
    running.stop()


class Load:
    """Closed-loop JSON requests of both kinds, about 100 a second; ``served`` holds (when, bucket, pool)."""

    def __init__(self, port: int, clients: int = 8) -> None:
        self.served: list[tuple[float, str, str]] = []
        self.broken: list[str] = []
        self._port = port
        self._clients = clients
        self._stop = asyncio.Event()

    async def __aenter__(self) -> "Load":
        self._tasks = [asyncio.create_task(self._client(index)) for index in range(self._clients)]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._stop.set()
        await asyncio.gather(*self._tasks)

    async def reach(self, count: int) -> None:
        """Wait until that many answers have come since now."""
        goal = len(self.served) + count
        async with asyncio.timeout(60):
            while len(self.served) < goal:
                await asyncio.sleep(0.01)

    def pools_of(self, bucket: str, since: float) -> set[str]:
        """Pools that served requests of a bucket that were sent after a moment."""
        return {name for sent, found, name in self.served if found == bucket and sent > since}

    async def settled(self, wanted: Mapping[str, set[str]]) -> float:
        """Wait until 50 answers in a row came from these pools, by bucket; the moment before the first of them."""
        async with asyncio.timeout(40):
            while True:
                since = time.time()
                await self.reach(50)
                if all(self.pools_of(bucket, since) == pools for bucket, pools in wanted.items()):
                    return since

    async def _client(self, index: int) -> None:
        connection = None
        turn = index
        while not self._stop.is_set():
            turn += 1
            kind = "ALPHA" if turn % 2 else "BETA"
            body = json.dumps(
                {
                    "model": "m",
                    "max_tokens": 40,
                    "user": f"user-{index}-{turn}",
                    "response_format": {"type": "json_object"},
                    "messages": [{"role": "user", "content": f"{kind} as JSON, please, number {turn}"}],
                }
            )
            try:
                if connection is None:
                    connection = await asyncio.open_connection("127.0.0.1", self._port)
                sent = time.time()
                reader, writer = connection
                writer.write(
                    f"POST /v1/chat/completions HTTP/1.1\r\nHost: g\r\nContent-Type: application/json\r\n"
                    f"Content-Length: {len(body)}\r\n\r\n{body}".encode()
                )
                async with asyncio.timeout(20):
                    head = (await reader.readuntil(b"\r\n\r\n")).decode()
                    fields = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
                    await reader.readexactly(int(fields["content-length"]))
                self.served.append((sent, fields["x-quantgate-bucket"], fields["x-quantgate-pool"]))
            except (OSError, asyncio.IncompleteReadError) as error:
                self.broken.append(type(error).__name__)
                connection = None
            await asyncio.sleep(self._clients / 100)
        if connection is not None:
            connection[1].close()


@pytest.fixture
async def load(gateway: Gateway) -> AsyncIterator[Load]:
    """Traffic of both kinds."""
    async with Load(gateway.port) as running:
        await running.reach(20)
        yield running


def standings(gateway: Gateway) -> dict[str, dict[str, Any]]:
    """Bucket → its row."""
    return {row["bucket"]: row for row in gateway.admin("/api/v1/rollouts")["buckets"]}


def is_live(gateway: Gateway, *buckets: str) -> bool:
    """Whether all of them get live traffic."""
    found = standings(gateway)
    return all(bucket in found and found[bucket]["share_bp"] > 0 for bucket in buckets)


def state_of(gateway: Gateway, bucket: str) -> str:
    """The bucket's state; empty while control is away."""
    try:
        return str(standings(gateway)[bucket]["state"])
    except (OSError, KeyError, TypeError):
        return ""


async def until(probe: Any, what: str) -> None:
    """Wait in a thread: the load goes on."""
    await asyncio.to_thread(wait_for, probe, what, 40.0)


def break_json(pools: tuple[Simulator, Simulator]) -> None:
    """The candidate breaks JSON where the prompt says ALPHA."""
    pools[1].fault({"kind": "broken_json", "when": {"contains": "ALPHA"}})


async def test_a_pool_that_breaks_json_in_one_bucket_leaves_that_bucket_and_only_that(
    gateway: Gateway, pools: tuple[Simulator, Simulator], load: Load
) -> None:
    """Within seconds; everything after goes to the baseline; the other bucket goes on; the reason is on record."""
    await until(lambda: is_live(gateway, ALPHA, BETA), "both buckets are live")
    before = time.time()
    await load.reach(100)
    assert load.pools_of(ALPHA, before) == {"bf16", "int4"}
    break_json(pools)
    await until(lambda: state_of(gateway, ALPHA) == "rolled_back", "alpha is rolled back")
    settled = await load.settled({ALPHA: {"bf16"}})
    await load.reach(200)
    assert load.pools_of(ALPHA, settled) == {"bf16"}
    assert standings(gateway)[BETA]["state"] in ("stepping", "promoted"), standings(gateway)[BETA]["reason"]
    assert load.pools_of(BETA, settled) == {"bf16", "int4"}
    events = gateway.admin("/api/v1/rollouts/int4-all/history?bucket=m/alpha")["events"]
    assert events[0]["event"] == "fail"
    assert "json" in events[0]["reason"] or "hard_answers" in events[0]["reason"]
    assert events[0]["evidence"]["requests"]
    assert load.broken == []
    await until(lambda: bundle(gateway)["replayable"], "a text of the incident is kept")
    check_that_it_replays(bundle(gateway))


def bundle(gateway: Gateway) -> dict[str, Any]:
    """The incident of the bucket that broke, as ``quantgate rollout incident`` prints it."""
    code, said = rollout_cli(gateway, "eve", "incident", "int4-all", ALPHA)
    assert code == 0, said
    return dict(json.loads(said))


def check_that_it_replays(incident: dict[str, Any]) -> None:
    """The line in the bundle runs as it stands, and shows what was wrong: both pools get exactly those requests."""
    program, *words = shlex.split(incident["replay"])
    assert program == "quantgate"
    done = subprocess.run(
        [sys.executable, "-m", "gateway", *words, "--json"], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    found = {pool["pool"]: pool for pool in json.loads(done.stdout)["pools"]}
    assert set(found) == {"bf16", "bf16 (again)", "int4"}
    asked = len(incident["replayable"])
    assert {pool["sent"] for pool in found.values()} == {asked}
    assert found["bf16"]["checks_failed"] == {}
    assert found["int4"]["checks_failed"]["format_error"]["value"] == 1.0


async def test_killed_in_the_middle_of_a_trip_everything_is_found_again(
    gateway: Gateway, pools: tuple[Simulator, Simulator], load: Load
) -> None:
    """kill -9 of control as soon as the decision is stored; then of workers while control is away."""
    await until(lambda: is_live(gateway, ALPHA, BETA), "both buckets are live")
    break_json(pools)
    latched = gateway.folder / "state" / "rollouts.msgpack"
    await until(lambda: state_is_latched(latched), "the decision is on disk")
    os.kill(gateway.pids["control"], signal.SIGKILL)
    settled = await load.settled({ALPHA: {"bf16"}})
    await load.reach(150)
    assert load.pools_of(ALPHA, settled) == {"bf16"}
    await until(lambda: state_of(gateway, ALPHA) == "rolled_back", "control is back with the same state")
    assert state_of(gateway, BETA) in ("stepping", "promoted", "holding")
    control = wait_for(lambda: next(iter(control_pids(gateway)), None), "control's process")
    os.kill(control, signal.SIGSTOP)
    try:
        for pid in worker_pids(gateway):
            os.kill(pid, signal.SIGKILL)
        settled = await load.settled({ALPHA: {"bf16"}, BETA: {"bf16", "int4"}})
        await load.reach(150)
        assert load.pools_of(ALPHA, settled) == {"bf16"}
        assert load.pools_of(BETA, settled) == {"bf16", "int4"}
    finally:
        os.kill(control, signal.SIGCONT)


def state_is_latched(path: Path) -> bool:
    """Whether some bucket is rolled back in the file that workers start from."""
    message = msgspec.msgpack.decode(path.read_bytes(), type=Rollouts)
    return any(share == -1 for buckets in message.shares.values() for share in buckets.values())


def control_pids(gateway: Gateway) -> list[int]:
    """Processes that run control for this gateway's folder."""
    return pids_with(str(gateway.folder), "control_main")


def worker_pids(gateway: Gateway) -> list[int]:
    """Processes that run workers for this gateway's folder."""
    return pids_with(str(gateway.folder), "worker_main")


def pids_with(*words: str) -> list[int]:
    """Processes whose command line holds all words."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes().decode(errors="replace")
            except OSError:
                continue
            if all(word in line for word in words):
                found.append(int(entry.name))
    return found


def rollout_cli(gateway: Gateway, who: str, *arguments: str) -> tuple[int, str]:
    """``quantgate rollout …`` as one of the operators."""
    done = subprocess.run(
        [sys.executable, "-m", "gateway", "rollout", *arguments, "--admin", f"127.0.0.1:{gateway.admin_port}"],
        capture_output=True,
        text=True,
        env={**os.environ, "QUANTGATE_TOKEN": TOKENS[who]},
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


async def test_a_promotion_takes_two_different_people(
    gateway: Gateway, pools: tuple[Simulator, Simulator], load: Load
) -> None:
    """The evidence alone waits; one person twice is one; a role too low is told so; a rollback takes one operator."""
    write_policy(gateway.config, make_policy(pools[0].url, pools[1].url, approvals=2))
    await until(lambda: state_of(gateway, ALPHA) == "holding", "alpha waits for approval")
    assert standings(gateway)[ALPHA]["cause"] == "approval"

    async def run(who: str, *arguments: str) -> tuple[int, str]:
        return await asyncio.to_thread(rollout_cli, gateway, who, *arguments)

    code, said = await run("eve", "approve", "int4-all", ALPHA, "--reason", "looks good")
    assert (code, "approver" in said) == (2, True)
    assert (await run("ann", "approve", "int4-all", ALPHA, "--reason", "looks good"))[0] == 0
    assert (await run("ann", "approve", "int4-all", ALPHA, "--reason", "really"))[0] == 1
    await asyncio.sleep(2.5)
    assert state_of(gateway, ALPHA) == "holding"
    assert (await run("bob", "approve", "int4-all", ALPHA, "--reason", "agreed"))[0] == 0
    await until(lambda: standings(gateway)[ALPHA]["stage"] == 1, "alpha advanced")
    code, said = await run("ann", "status", "int4-all", "--bucket", ALPHA)
    assert code == 0
    assert "m/alpha" in said
    assert (await run("eve", "rollback", "int4-all", ALPHA, "--reason", "customers complain"))[0] == 0
    assert state_of(gateway, ALPHA) == "rolled_back"
    events = gateway.admin("/api/v1/rollouts/int4-all/history?bucket=m/alpha")["events"]
    assert (events[0]["actor"], events[0]["reason"]) == ("eve", "customers complain")
