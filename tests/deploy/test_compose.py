"""``deploy/compose.yaml`` is consistent: what it names exists, and its containers can do no more than they need."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from gateway.policy.load import load
from tests.cases.gateway import Gateway, call
from tests.deploy.conftest import DEPLOY, admin_text, chat

FILE = DEPLOY / "compose.yaml"
COMPOSE = yaml.safe_load(FILE.read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
POLICIES = [DEPLOY / "compose" / "policies", DEPLOY / "compose" / "policies-vllm"]


def words_of(service: dict[str, Any]) -> list[str]:
    command = service["command"]
    return shlex.split(command) if isinstance(command, str) else command


def hosts_of(policy: Path) -> set[str]:
    text = "".join(file.read_text() for file in policy.glob("*.yaml"))
    return set(re.findall(r"http://([\w-]+):8000", text))


def test_images_are_pinned() -> None:
    """Every image has a tag that is not a moving one."""
    for name, service in SERVICES.items():
        repository, _, tag = service["image"].partition(":")
        assert repository, name
        assert tag, name
        assert tag not in ("latest", "main", "nightly"), name


def test_ports_are_bound_to_loopback_and_distinct() -> None:
    """The policy admits anonymous callers, so nothing of this is reachable from other machines."""
    ports = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)
    assert len({port.split(":")[1] for port in ports}) == len(ports)


def test_what_is_mounted_exists() -> None:
    """Each path on the host is in the repository, and each named volume is declared and used."""
    used = set()
    for name, service in SERVICES.items():
        for volume in service.get("volumes", []):
            source = re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", volume).split(":")[0]
            if source.startswith("."):
                assert (DEPLOY / source).exists(), f"{name}: {source}"
            else:
                used.add(source)
    assert used == set(COMPOSE["volumes"])


def test_what_is_depended_on_exists() -> None:
    """Dependencies name services; where they ask for health, the service has a check."""
    for name, service in SERVICES.items():
        wanted = service.get("depends_on", [])
        for other in wanted:
            assert other in SERVICES, f"{name}: {other}"
            if isinstance(wanted, dict) and wanted[other]["condition"] == "service_healthy":
                assert "healthcheck" in SERVICES[other]


def test_our_containers_are_confined() -> None:
    """Read-only root, no capabilities, no new privileges."""
    for name, service in SERVICES.items():
        if service["image"].startswith("quantgate:"):
            assert service["read_only"], name
            assert service["cap_drop"] == ["ALL"], name
            assert "no-new-privileges:true" in service["security_opt"], name


@pytest.mark.parametrize("policy", POLICIES, ids=lambda path: path.name)
def test_the_policies_are_good_and_name_services(policy: Path) -> None:
    """Both load without a warning, and every endpoint is a service of the file."""
    assert load(policy).warnings == ()
    hosts = hosts_of(policy)
    assert hosts
    assert hosts <= SERVICES.keys()


def test_simulated_runtimes_are_named_as_the_policy_names_the_model() -> None:
    """The gateway checks names against what runtimes serve."""
    model = next(iter(yaml.safe_load((POLICIES[0] / "policy.yaml").read_text())["models"]))
    for name, service in SERVICES.items():
        if name.startswith("sim-"):
            words = words_of(service)
            assert words[words.index("--model") + 1] == model


@pytest.mark.parametrize("name", [name for name, service in SERVICES.items() if "quantgate:" in service["image"]])
def test_our_commands_have_only_known_options(name: str) -> None:
    """An option that does not exist would restart the container for ever."""
    command, *options = words_of(SERVICES[name])
    run = subprocess.run(
        [sys.executable, "-m", "gateway", command, "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    for option in options:
        if option.startswith("--"):
            assert re.search(rf"{option}\b", run.stdout), option


def test_prometheus_scrapes_the_gateways_admin_port() -> None:
    """The scrape target is the service, on the port that its command listens on."""
    config = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yml").read_text())
    (job,) = config["scrape_configs"]
    host, port = job["static_configs"][0]["targets"][0].split(":")
    words = words_of(SERVICES[host])
    assert words[words.index("--admin") + 1].endswith(f":{port}")


def test_grafana_finds_prometheus_and_the_dashboard() -> None:
    """Provisioning names the service and the folder that is mounted."""
    provisioning = DEPLOY / "grafana" / "provisioning"
    (source,) = yaml.safe_load((provisioning / "datasources" / "prometheus.yaml").read_text())["datasources"]
    assert source["url"] == "http://prometheus:9090"
    (provider,) = yaml.safe_load((provisioning / "dashboards" / "quantgate.yaml").read_text())["providers"]
    mounts = dict(volume.split(":")[:2] for volume in SERVICES["grafana"]["volumes"])
    assert mounts["./grafana/dashboards"] == provider["options"]["path"]
    home = SERVICES["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert (DEPLOY / "grafana" / "dashboards" / Path(home).name).is_file()


def test_the_services_run_as_they_are_described(deployed: Gateway) -> None:
    """The same commands as processes: each runtime attested as declared, a request answered by the cheapest pool."""
    rows = deployed.admin("/api/v1/endpoints")["endpoints"]
    assert {row["pool"]: row["state"] for row in rows} == {"bf16": "ready", "fp8": "ready", "int4": "ready"}
    assert [row["mismatches"] for row in rows] == [[], [], []]
    reply = call(deployed.port, chat("hello"))
    assert reply.status == 200
    assert reply.header("x-quantgate-pool") == "int4"
    assert "quantgate_pool_info" in admin_text(deployed, "/metrics")


@pytest.mark.skipif(
    shutil.which("docker-compose") is None
    and subprocess.run(["sh", "-c", "docker compose version"], capture_output=True, check=False).returncode != 0,
    reason="docker compose is not installed",
)
def test_docker_compose_reads_it() -> None:
    """The real parser accepts the file, with and without the profile."""
    program = ["docker-compose"] if shutil.which("docker-compose") else ["docker", "compose"]
    for profile in ([], ["--profile", "vllm"]):
        run = subprocess.run(
            [*program, "-f", str(FILE), *profile, "config", "-q"], capture_output=True, text=True, check=False
        )
        assert run.returncode == 0, run.stderr
