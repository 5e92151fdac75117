"""The Kubernetes objects are valid for the API, agree with each other, and match what the gateway does."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from gateway.policy.load import load
from tests.deploy.conftest import DEPLOY

BASE = DEPLOY / "kubernetes" / "base"
MONITORING = DEPLOY / "kubernetes" / "monitoring"
KUSTOMIZATION = yaml.safe_load((BASE / "kustomization.yaml").read_text())
OLDEST_VERSION = "1.29"
# Made by the operator, as the head of the kustomization says.
OUTSIDE_SECRETS = {"quantgate-keys"}


def objects(folder: Path) -> list[dict[str, Any]]:
    """Every object that the kustomization of ``folder`` lists in its own files."""
    listed = yaml.safe_load((folder / "kustomization.yaml").read_text())["resources"]
    files = [folder / name for name in listed if not name.startswith("..")]
    return [item for file in files for item in yaml.safe_load_all(file.read_text())]


OBJECTS = objects(BASE)


def only(kind: str) -> dict[str, Any]:
    (found,) = [item for item in OBJECTS if item["kind"] == kind]
    return found


DEPLOYMENT = only("Deployment")
POD = DEPLOYMENT["spec"]["template"]
(CONTAINER,) = POD["spec"]["containers"]
PORTS = {port["name"]: port["containerPort"] for port in CONTAINER["ports"]}
ARGS = dict(word.removeprefix("--").split("=", 1) for word in CONTAINER["args"] if word.startswith("--"))


@pytest.mark.parametrize("item", OBJECTS, ids=lambda item: f"{item['kind']}/{item['metadata']['name']}")
def test_every_object_is_valid_for_the_api(item: dict[str, Any]) -> None:
    """Checked strictly, so that a misspelt key is an error, against the oldest version that is supported."""
    kubernetes_validate.validate(item, OLDEST_VERSION, strict=True)


def test_every_file_is_used() -> None:
    """What lies in the folder is listed in the kustomization, and the other way round."""
    listed = set(KUSTOMIZATION["resources"])
    assert listed == {file.name for file in BASE.glob("*.yaml")} - {"kustomization.yaml"}
    (generator,) = KUSTOMIZATION["configMapGenerator"]
    assert set(generator["files"]) == {f"policies/{file.name}" for file in (BASE / "policies").glob("*.yaml")}


def test_selectors_find_the_pods() -> None:
    """Deployment, services, budget, policy and spread all select labels that the pods have."""
    labels = POD["metadata"]["labels"].items()
    selectors = [
        DEPLOYMENT["spec"]["selector"]["matchLabels"],
        only("PodDisruptionBudget")["spec"]["selector"]["matchLabels"],
        only("NetworkPolicy")["spec"]["podSelector"]["matchLabels"],
        *(spread["labelSelector"]["matchLabels"] for spread in POD["spec"]["topologySpreadConstraints"]),
        *(item["spec"]["selector"] for item in OBJECTS if item["kind"] == "Service"),
    ]
    for selector in selectors:
        assert selector.items() <= labels


def test_references_lead_somewhere() -> None:
    """Service account, config map, secrets and mounted volumes exist."""
    assert POD["spec"]["serviceAccountName"] == only("ServiceAccount")["metadata"]["name"]
    maps = {generator["name"] for generator in KUSTOMIZATION["configMapGenerator"]}
    volumes = {volume["name"]: volume for volume in POD["spec"]["volumes"]}
    assert {volume["configMap"]["name"] for volume in volumes.values() if "configMap" in volume} <= maps
    assert {mount["name"] for mount in CONTAINER["volumeMounts"]} == volumes.keys()
    secrets = {item["valueFrom"]["secretKeyRef"]["name"] for item in CONTAINER["env"]}
    assert secrets <= OUTSIDE_SECRETS
    assert CONTAINER["image"] in {image["name"] for image in KUSTOMIZATION["images"]}


def test_an_edit_of_the_policy_reaches_running_pods() -> None:
    """The config map keeps its name and is mounted as a folder, so kubelet swaps it under the gateway."""
    (generator,) = KUSTOMIZATION["configMapGenerator"]
    assert generator["options"]["disableNameSuffixHash"] is True
    (mount,) = [mount for mount in CONTAINER["volumeMounts"] if mount["name"] == "policies"]
    assert "subPath" not in mount
    assert mount["mountPath"] == ARGS["config"]


def test_ports_agree() -> None:
    """Arguments, container ports, services, probes and the network policy name the same two ports."""
    assert ARGS["listen"].endswith(f":{PORTS['http']}")
    assert ARGS["admin"].endswith(f":{PORTS['admin']}")
    for service in (item for item in OBJECTS if item["kind"] == "Service"):
        for port in service["spec"]["ports"]:
            assert port["targetPort"] in PORTS
    allowed = [port["port"] for rule in only("NetworkPolicy")["spec"]["ingress"] for port in rule["ports"]]
    assert sorted(allowed) == sorted(PORTS)
    assert POD["metadata"]["annotations"]["prometheus.io/port"] == str(PORTS["admin"])


def test_probes_ask_the_right_questions() -> None:
    """Liveness is the data port's; readiness is control's, which knows whether workers serve a policy."""
    assert CONTAINER["livenessProbe"]["httpGet"] == {"path": "/health", "port": "http"}
    assert CONTAINER["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "admin"}


def test_clients_cannot_reach_the_admin_port() -> None:
    """No service for clients leads there, and the network policy opens it to the monitoring alone."""
    services = {item["metadata"]["name"]: item["spec"] for item in OBJECTS if item["kind"] == "Service"}
    assert {port["targetPort"] for port in services["quantgate"]["ports"]} == {"http"}
    assert services["quantgate-admin"]["clusterIP"] == "None"
    for rule in only("NetworkPolicy")["spec"]["ingress"]:
        if any(port["port"] == "admin" for port in rule["ports"]):
            assert rule["from"]


def test_the_pod_is_confined() -> None:
    """Not root, no capabilities, read-only root, no token; what is written goes to volumes."""
    pod, container = POD["spec"]["securityContext"], CONTAINER["securityContext"]
    assert pod["runAsNonRoot"] is True
    assert pod["runAsUser"] > 0
    assert pod["seccompProfile"]["type"] == "RuntimeDefault"
    assert container["readOnlyRootFilesystem"] is True
    assert container["allowPrivilegeEscalation"] is False
    assert container["capabilities"] == {"drop": ["ALL"]}
    assert POD["spec"]["automountServiceAccountToken"] is False
    written = {mount["mountPath"] for mount in CONTAINER["volumeMounts"] if not mount.get("readOnly")}
    assert {ARGS["state-dir"], "/tmp"} == written  # noqa: S108


def test_the_image_runs_as_the_same_user() -> None:
    """The state directory belongs to it."""
    dockerfile = (DEPLOY.parent / "Dockerfile").read_text()
    assert f"USER {POD['spec']['securityContext']['runAsUser']}:" in dockerfile


def test_there_is_time_to_drain() -> None:
    """The grace period covers the pause before, the drain, and what workers and control take afterwards."""
    from gateway.app.supervisor import CONTROL_STOP_S, WORKER_STOP_S

    pause = float(CONTAINER["lifecycle"]["preStop"]["exec"]["command"][1])
    needed = pause + float(ARGS["drain-s"]) + WORKER_STOP_S + CONTROL_STOP_S
    assert POD["spec"]["terminationGracePeriodSeconds"] > needed


def test_workers_fit_the_processors() -> None:
    """One worker per processor that is requested."""
    assert ARGS["workers"] == CONTAINER["resources"]["requests"]["cpu"]


def test_the_policies_are_good_and_their_secrets_are_given() -> None:
    """The set loads, and every ``env:`` reference is a variable of the container."""
    loaded = load(BASE / "policies")
    assert loaded.warnings == ()
    named = set(re.findall(r"env:(\w+)", loaded.document.decode()))
    assert named == {item["name"] for item in CONTAINER["env"]}


def test_the_service_monitor_finds_the_admin_service() -> None:
    """It selects the labels that the base gives that service, and its port."""
    (monitor,) = [item for item in objects(MONITORING) if item["kind"] == "ServiceMonitor"]
    (admin,) = [item for item in OBJECTS if item["metadata"]["name"] == "quantgate-admin"]
    labels = {**KUSTOMIZATION["labels"][0]["pairs"], **admin["metadata"]["labels"]}
    assert monitor["spec"]["selector"]["matchLabels"].items() <= labels.items()
    assert {endpoint["port"] for endpoint in monitor["spec"]["endpoints"]} == {
        port["name"] for port in admin["spec"]["ports"]
    }
    # Alerts and dashboard ask for this job.
    assert labels[monitor["spec"]["jobLabel"]] == "quantgate"


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
@pytest.mark.parametrize("folder", [BASE, MONITORING], ids=lambda folder: folder.name)
def test_kustomize_builds_it(folder: Path) -> None:
    """The real tool resolves every file and name; the built objects of the API are valid too."""
    run = subprocess.run(["kubectl", "kustomize", str(folder)], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    built = list(yaml.safe_load_all(run.stdout))
    assert {"Deployment", "ConfigMap", "Service"} <= {item["kind"] for item in built}
    for item in built:
        if "monitoring.coreos.com" not in item["apiVersion"]:
            kubernetes_validate.validate(item, OLDEST_VERSION, strict=True)
