"""The official clients work unchanged against the gateway: OpenAI's current version and one older major, Anthropic's.

Two simulated runtimes (bf16 and int4, attested as such) stand behind a real ``quantgate serve``. The scenarios are in
``scenarios.py`` and ``anthropic_scenarios.py``; a client that is not installed here gets an environment of its own
under ``.cache/``, built when it is first needed.
"""

import hashlib
import json
import subprocess
import sys
import time
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest

from tests.cases.gateway import Gateway, wait_for, write_policy
from tests.e2e.scenarios import SCENARIOS, World

ROOT = Path(__file__).resolve().parents[2]
OLDER = ("openai", "openai>=2.8,<3")
ANTHROPIC = ("anthropic", "anthropic>=1,<3")
KEY = "e2e-key"
HARDWARE = {"gpu": "H100", "compute_capability": "9.0"}
SETTINGS: dict[str, dict[str, Any]] = {
    "bf16": {"seed": 4, "aliases": ["served"]},
    "int4": {"seed": 4, "aliases": ["served"], "precision": {"quantization": "awq"}},
}


def _policy(urls: dict[str, str]) -> dict[str, Any]:
    precisions = {
        "bf16": {"weights": "bf16", "activations": "bf16", "kv_cache": "bf16"},
        "int4": {"weights": "int4", "activations": "bf16", "kv_cache": "bf16", "method": "awq", "group_size": 128},
    }
    pools = {
        name: {
            "model": "m",
            "runtime": "vllm",
            "precision": precisions[name],
            "hardware": HARDWARE,
            "endpoints": [url],
            "upstream_model": "served",
        }
        for name, url in urls.items()
    }
    require = {"weights": ["bf16", "fp16"]}
    constraint = {"name": "privileged-stays", "when": {"tools": {"privilege": "high"}}, "require": require}
    return {
        "version": 1,
        "models": {"m": {"aliases": ["org/m:latest"], "context_window": "128k", "baseline": "bf16"}},
        "pools": pools,
        "tenants": {"app": {"keys": ["sha256:" + hashlib.sha256(KEY.encode()).hexdigest()]}},
        "classify": {"tools": {"privileged": ["payment_*"]}},
        "constraints": [constraint],
        "routes": [{"name": "all", "pools": ["int4", "bf16"]}],
        "gateway": {"retry_budget": 1.0},
    }


@pytest.fixture(scope="module")
def simulators(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, dict[str, int]]]:
    """Ports of the running simulators by pool."""
    folder = tmp_path_factory.mktemp("simulators")
    processes = []
    found: dict[str, dict[str, int]] = {}
    for name, settings in SETTINGS.items():
        config = write_policy(folder / f"{name}.yaml", {"tpot": {"constant": 0.001}, **settings})
        log = folder / f"{name}.log"
        command = [
            sys.executable,
            "-m",
            "gateway",
            "simulate",
            "--port",
            "0",
            "--control-port",
            "0",
            "--config",
            str(config),
        ]
        with log.open("wb") as out:
            processes.append(subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, cwd=ROOT))
        text = wait_for(lambda log=log: log.read_text() if "listening" in log.read_text() else None, "simulator", 30)  # type: ignore[misc]
        found[name] = json.loads(text)
    yield found
    for process in processes:
        process.terminate()
        process.wait(10)


@pytest.fixture(scope="module")
def world(simulators: dict[str, dict[str, int]], tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """The gateway in front of the simulators, attested and ready."""
    folder = tmp_path_factory.mktemp("gateway")
    urls = {name: f"http://127.0.0.1:{where['port']}" for name, where in simulators.items()}
    gateway = Gateway(folder, write_policy(folder / "policy.yaml", _policy(urls))).start()

    def attested() -> bool:
        endpoints = gateway.ready()["endpoints"].values()
        return [endpoint["state"] for endpoint in endpoints] == ["ready", "ready"]

    wait_for(attested, "both runtimes are attested", 20)
    time.sleep(0.1)  # workers hear of it a moment after control does
    controls = {name: where["control_port"] for name, where in simulators.items()}
    yield World(f"http://127.0.0.1:{gateway.port}/v1", KEY, "m", "org/m:latest", controls)
    gateway.stop()


@pytest.mark.parametrize("name", SCENARIOS)
def test_current_client(world: World, name: str) -> None:
    """The scenario passes with the client that is installed."""
    SCENARIOS[name](world)


def test_current_client_is_of_the_newest_major() -> None:
    """The installed client is newer than the older major that is tested beside it."""
    assert int(openai.__version__.split(".")[0]) >= 3


@pytest.mark.slow
def test_older_client(world: World, tmp_path: Path) -> None:
    """Every scenario passes with the older major too, in an environment of its own."""
    said = _elsewhere(OLDER, "scenarios.py", world, tmp_path)
    assert "openai 2." in said
    assert said.count(": ok") == len(SCENARIOS)


@pytest.mark.slow
def test_anthropic_client(world: World, tmp_path: Path) -> None:
    """Messages, streams, tools, counting and errors by the official client of that API."""
    assert _elsewhere(ANTHROPIC, "anthropic_scenarios.py", world, tmp_path).count(": ok") == 6


def _elsewhere(needed: tuple[str, str], script: str, world: World, folder: Path) -> str:
    """What the scenarios of ``script`` said in an environment that has the client."""
    place = folder / "world.json"
    place.write_text(json.dumps(world.__dict__))
    done = subprocess.run(
        [str(_python_with(*needed)), str(ROOT / "tests" / "e2e" / script), str(place)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _python_with(name: str, wanted: str) -> Path:
    """The interpreter of an environment with another client; built once, named after what it holds."""
    folder = ROOT / ".cache" / f"{name}-{hashlib.sha256(wanted.encode()).hexdigest()[:8]}"
    python = folder / "bin" / "python"
    marker = folder / "complete"
    if not marker.exists():
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run(
            [str(python), "-m", "pip", "install", "-q", wanted, "pydantic>=2.10,<3"], check=True, timeout=600
        )
        marker.touch()
    return python
