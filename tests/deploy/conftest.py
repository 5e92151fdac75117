"""Real servers for the files of ``deploy/``: the gateway on the compose policy, simulated runtimes, some traffic."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cases.client import call
from tests.cases.gateway import Gateway, wait_for

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"


def simulated(options: list[str]) -> tuple["subprocess.Popen[bytes]", str]:
    """A simulated runtime with the options of the compose file, on a free port of loopback."""
    wanted = [word for word in options if word not in ("0.0.0.0", "8000")]
    words = [word for word in wanted if word not in ("--host", "--port")]
    command = [sys.executable, "-m", "gateway", *words, "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT)
    assert process.stdout is not None
    said = json.loads(process.stdout.readline())
    return process, f"http://127.0.0.1:{said['port']}"


def chat(text: str, **fields: Any) -> dict[str, Any]:
    """A chat request with a short answer."""
    return {"model": "demo-model", "max_tokens": 8, "messages": [{"role": "user", "content": text}], **fields}


PRIVILEGED = {"type": "function", "function": {"name": "payment_send", "parameters": {"type": "object"}}}


@contextmanager
def deployment(folder: Path) -> Iterator[Gateway]:
    """What ``deploy/compose.yaml`` starts, as processes: simulated runtimes, a gateway on its policy; some traffic."""
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    text = (DEPLOY / "compose" / "policies" / "policy.yaml").read_text()
    with ExitStack() as held:
        for name, service in services.items():
            if name.startswith("sim-"):
                process, url = simulated(service["command"].split())
                held.callback(process.wait, 10)
                held.callback(process.terminate)
                text = text.replace(f"http://{name}:8000", url)
        policies = folder / "policies"
        policies.mkdir()
        (policies / "policy.yaml").write_text(text)
        gateway = Gateway(folder, policies, workers=2).start()
        held.callback(gateway.stop)
        wait_for(lambda: _attested(gateway), "every endpoint is known")
        _traffic(gateway)
        yield gateway


@pytest.fixture(scope="package")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """The deployment that the package's tests share."""
    with deployment(tmp_path_factory.mktemp("deployed")) as gateway:
        yield gateway


def _attested(gateway: Gateway) -> bool:
    endpoints = gateway.admin("/api/v1/endpoints")["endpoints"]
    return len(endpoints) == 3 and all(row["state"] == "ready" and row["load"] for row in endpoints)


def _traffic(gateway: Gateway) -> None:
    client = gateway.connect()
    bodies = [
        chat("hello"),
        chat("hello", stream=True, stream_options={"include_usage": True}),
        chat("Mend this: def add(a, b): return a - b", stream=True),
        chat("Pay Ann", tools=[PRIVILEGED]),
        chat("hello", model="nobody-serves-this"),
    ]
    for body in bodies:
        client.request(body).read()
    client.close()
    wait_for(lambda: gateway.total("quantgate_requests_total") >= len(bodies), "the traffic is counted")
    workers = [{"worker": "0"}, {"worker": "1"}]
    wait_for(
        lambda: all(gateway.total("quantgate_worker_generation", **worker) for worker in workers),
        "both workers have sent their gauges",
    )


def admin_text(gateway: Gateway, path: str) -> str:
    """A text of the admin port."""
    return call(gateway.admin_port, method="GET", path=path).body.decode()
