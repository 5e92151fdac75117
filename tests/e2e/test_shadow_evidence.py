"""What shadow traffic says, with a real gateway and simulated runtimes: a pool against itself differs by nothing, a
worse pool by what it is worse, and `quantgate diff` shows a pair as it was."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cases.gateway import Gateway, policy, pool, wait_for, write_policy

PAIRS = 400
KEY = "correct horse battery staple"
WORDS = ("whales", "rivers", "trains", "bread", "clocks", "maps", "glass", "storms")


class Simulated:
    """A simulated runtime as a process of its own."""

    def __init__(self, folder: Path, name: str, faults: list[dict[str, Any]]) -> None:
        config = folder / f"{name}.yaml"
        config.write_text(yaml.safe_dump({"model": "up", "faults": faults, "seed": 7}))
        command = [sys.executable, "-m", "gateway", "simulate", "--port", "0", "--config", str(config)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert self.process.stdout is not None
        said = json.loads(self.process.stdout.readline())
        self.url = f"http://{said['host']}:{said['port']}"

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(10)


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str, list[dict[str, Any]]], str]]:
    folder = tmp_path_factory.mktemp("simulated")
    running: list[Simulated] = []

    def start(name: str, faults: list[dict[str, Any]]) -> str:
        running.append(Simulated(folder, name, faults))
        return running[-1].url

    yield start
    for process in running:
        process.stop()


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[[str, str], Gateway]]:
    """A gateway with two workers that mirrors everything from one pool to another."""
    running: list[Gateway] = []
    (tmp_path / "samples.key").write_text(KEY)

    def start(base: str, candidate: str) -> Gateway:
        document = policy(
            {"m": {"baseline": "base"}},
            {"base": pool("m", base), "cand": pool("m", candidate)},
            [{"name": "all", "pools": ["base"]}],
            classify={"buckets": {"by": ["model"]}},
            shadow=[{"name": "s", "sample": "100%", "candidate": "cand", "noise_leg": "100%", "inflight": 64,
                     "queue": 4000}],
            records={"samples": {"keep": "incidents", "key": f"file:{tmp_path / 'samples.key'}"}},
        )  # fmt: skip
        running.append(Gateway(tmp_path, write_policy(tmp_path / "policy.yaml", document), workers=2).start())
        return running[-1]

    yield start
    for gateway in running:
        gateway.stop()


def drive(gateway: Gateway) -> list[str]:
    """``PAIRS`` conversations over four connections, prose and JSON; the request ids."""

    def client(number: int) -> list[str]:
        ids = []
        with gateway.connect() as connection:
            for index in range(PAIRS // 4):
                text = f"Tell me about {WORDS[index % len(WORDS)]} no. {number * 1000 + index}"
                body: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": text}], "max_tokens": 60}
                if index % 4 == 0:
                    body["response_format"] = {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}
                reply = connection.request(body)
                assert reply.status == 200, reply.read()
                reply.read()
                ids.append(reply.header("x-quantgate-request-id") or "")
        return ids

    with ThreadPoolExecutor(4) as threads:
        return [one for ids in threads.map(client, range(4)) for one in ids]


SCHEMA = {
    "type": "object",
    "properties": {"kind": {"enum": ["fish", "bird", "mammal"]}, "legs": {"type": "integer"}},
    "required": ["kind", "legs"],
}


def excess(gateway: Gateway) -> dict[str, Any]:
    """The excess difference of the whole run, once every pair is stored."""

    def stored() -> dict[str, Any] | None:
        rows = gateway.admin("/api/v1/excess")["excess"]
        return rows[0] if rows and rows[0]["pairs"] == PAIRS else None

    found = wait_for(stored, f"{PAIRS} pairs are stored", 60)
    assert (found["bucket"], found["candidate"], found["baseline"]) == ("m", "cand", "base")
    return found


def test_b114_a_pool_against_itself_differs_by_nothing(simulated: Any, serve: Any) -> None:
    """The candidate is the same runtime, which rewords a fifth of its answers and flips some JSON: the two disagree,
    the baseline with itself as much, and the excess is 0 within its interval."""
    faults = [
        {"kind": "reword", "probability": 0.2, "draw": "sequence"},
        {"kind": "schema_violation", "probability": 0.03, "draw": "sequence"},
    ]
    url = simulated("same", faults)
    gateway = serve(url, url)
    drive(gateway)
    found = excess(gateway)
    assert found["agreement_mean"] < 0.97, "the answers do differ"
    assert found["low"] <= 0.0 <= found["high"]
    assert abs(found["mean"]) < 0.05
    assert found["verdicts"] == {"compared": PAIRS}
    metrics = gateway.metrics()
    labels = (("bucket", "m"), ("candidate", "cand"))
    assert metrics["quantgate_excess_mean", labels] == pytest.approx(found["mean"])
    assert metrics["quantgate_excess_low", labels] == pytest.approx(found["low"])


def test_a_worse_pool_is_told_from_noise_and_shown(simulated: Any, serve: Any, tmp_path: Path) -> None:
    """The same runtime with garbage in 15 % and errors in 5 % of its answers: the interval lies above 0; the pairs that
    went wrong kept both texts, sealed, and `quantgate diff` shows them to who has the key."""
    noise = {"kind": "reword", "probability": 0.2, "draw": "sequence"}
    bad = [{"kind": "garbage", "probability": 0.15, "draw": "sequence"}, {"kind": "status", "probability": 0.05}]
    gateway = serve(simulated("good", [noise]), simulated("bad", [*bad, noise]))
    drive(gateway)
    found = excess(gateway)
    assert found["low"] > 0.0
    assert 0.08 < found["mean"] < 0.35
    assert found["verdicts"]["other_failed"] > 3
    flips = [pair for pair in gateway.admin("/api/v1/pairs?limit=1000")["pairs"] if pair["capped_by"] == "degenerate"]
    assert len(flips) > 10
    request_id = flips[0]["request_id"]
    wait_for(lambda: gateway.admin(f"/api/v1/pairs/{request_id}")["texts_kept"], "its texts are kept")
    base = [sys.executable, "-m", "gateway", "diff", request_id]
    admin = ["--admin", f"127.0.0.1:{gateway.admin_port}"]
    state = ["--state-dir", str(gateway.folder / "state")]
    key = ["--samples-key", f"file:{tmp_path / 'samples.key'}"]
    environment = {**os.environ, "COLUMNS": "120"}
    for place in (admin, state):
        shown = subprocess.run(
            [*base, *place, *key], capture_output=True, text=True, check=True, env=environment
        ).stdout
        assert "held down by degenerate" in shown
        assert "[-" in shown
    bare = subprocess.run([*base, *admin], capture_output=True, text=True, check=True, env=environment).stdout
    assert "kept and sealed" in bare
    assert "[-" not in bare
