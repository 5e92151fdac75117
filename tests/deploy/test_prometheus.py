"""Scrape file, alerts and dashboard are accepted by Prometheus, and ask only for what a running gateway exposes."""

import json
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from benchmarks.processes import free_ports
from tests.cases.gateway import Gateway, wait_for
from tests.deploy.conftest import DEPLOY, admin_text
from tests.deploy.metrics_page import declared_labels

PROMETHEUS = DEPLOY / "prometheus"
DASHBOARD = json.loads((DEPLOY / "grafana" / "dashboards" / "quantgate.json").read_text())
RULES = [rule for group in yaml.safe_load((PROMETHEUS / "rules.yml").read_text())["groups"] for rule in group["rules"]]
VARIABLES = {
    "$__rate_interval": "30s",
    "$__interval": "30s",
    "$job": "quantgate",
    "$instance": ".*",
    "$pool": ".*",
    "$bucket": ".*",
}
# Added by Prometheus itself.
TARGET_LABELS = {"job", "instance", "le"}
# What has no series in a healthy gateway of a few requests.
QUIET = re.compile(
    r'failure!="none"|quantgate_dropped_outcomes_total|quantgate_access_log_dropped_total|result=~"upstream_|quarantined'
    r"|quantgate_answers_checked|quantgate_answer_failures|quantgate_pair_excess|quantgate_rollout_"
)
needs_promtool = pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
needs_prometheus = pytest.mark.skipif(shutil.which("prometheus") is None, reason="prometheus is not installed")


def targets() -> list[tuple[str, str]]:
    """Every query of the dashboard with the title it stands under."""
    found = [(panel["title"], target["expr"]) for panel in DASHBOARD["panels"] for target in panel.get("targets", [])]
    return found + [(note["name"], note["expr"]) for note in DASHBOARD["annotations"]["list"]]


def concrete(expression: str) -> str:
    """The query as Grafana would send it."""
    for name, value in VARIABLES.items():
        expression = expression.replace(name, value)
    assert "$" not in expression, expression
    return expression


def names_and_labels(expression: str) -> Iterator[tuple[str, set[str]]]:
    """Each metric with the labels matched on it, then all grouping labels under the name ``""``."""
    for name, matchers in re.findall(r"\b([a-z]+_[a-z_]+)\b(?:\{([^}]*)\})?(?!\s*\()", expression):
        if name.startswith(("quantgate_", "process_")):
            yield name, set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", matchers))
    for labels in re.findall(r"\b(?:by|on|group_left|group_right)\s*\(([^)]*)\)", expression):
        yield "", {label.strip() for label in labels.split(",") if label.strip()}


@needs_promtool
def test_promtool_accepts_configuration_and_rules() -> None:
    """``promtool check`` has nothing to say."""
    for command in (["check", "config", "prometheus.yml"], ["check", "rules", "rules.yml", "rollouts.rules.yaml"]):
        run = subprocess.run(["promtool", *command], cwd=PROMETHEUS, capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stdout + run.stderr


@needs_promtool
def test_the_alerts_fire_when_they_should_and_only_then() -> None:
    """``promtool test rules`` holds."""
    run = subprocess.run(
        ["promtool", "test", "rules", "rules.test.yml"], cwd=PROMETHEUS, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_every_alert_is_tested_and_explained() -> None:
    """Each has a severity, a summary, a description, a test in which it fires and one in which it is silent."""
    tests = yaml.safe_load((PROMETHEUS / "rules.test.yml").read_text())["tests"]
    cases = [(case["alertname"], bool(case["exp_alerts"])) for test in tests for case in test["alert_rule_test"]]
    for rule in RULES:
        assert rule["labels"]["severity"] in ("critical", "warning"), rule["alert"]
        assert {"summary", "description"} <= rule["annotations"].keys(), rule["alert"]
        assert (rule["alert"], True) in cases, f"{rule['alert']} never fires in a test"
        assert (rule["alert"], False) in cases, f"{rule['alert']} is never silent in a test"


def test_operator_objects_hold_the_same_rules() -> None:
    """The rules for the Prometheus operator are the rules."""
    operator = yaml.safe_load((DEPLOY / "kubernetes" / "monitoring" / "prometheusrule.yaml").read_text())
    files = (PROMETHEUS / name for name in yaml.safe_load((PROMETHEUS / "prometheus.yml").read_text())["rule_files"])
    groups = [group for file in files for group in yaml.safe_load(file.read_text())["groups"]]
    assert operator["spec"]["groups"] == groups


def test_the_dashboard_can_be_loaded() -> None:
    """Panels have unique ids, lie within the grid without overlapping, and use the data source variable."""
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24, panel["title"]
        cells = {(place["x"] + right, place["y"] + down) for right in range(place["w"]) for down in range(place["h"])}
        assert not cells & taken, panel["title"]
        taken |= cells
        if panel["type"] != "row":
            assert panel["datasource"]["uid"] == "${datasource}"
            assert panel["description"], panel["title"]


def test_only_exposed_metrics_and_labels_are_asked_for(deployed: Gateway) -> None:
    """A typing error or a renamed metric in a query or an alert would show an empty panel, or never wake anybody."""
    exposed: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(admin_text(deployed, "/metrics")):
        name = f"{family.name}_total" if family.type == "counter" else family.name
        exposed.setdefault(name, set())
        for sample in family.samples:
            exposed.setdefault(sample.name, set()).update(sample.labels)
    for name, labels in declared_labels().items():
        for series in (name, f"{name}_sum", f"{name}_count", f"{name}_bucket"):
            if series in exposed or name in exposed:
                exposed.setdefault(series, set()).update(labels)
    every = set().union(*exposed.values()) | TARGET_LABELS
    queries = [*targets(), *((rule["alert"], rule["expr"]) for rule in RULES)]
    for where, expression in queries:
        for name, labels in names_and_labels(concrete(expression)):
            if name:
                assert name in exposed, f"{where}: no metric {name}"
                known = exposed[name] | TARGET_LABELS
            else:
                known = every
            assert labels <= known, f"{where}: {name} has no label {labels - known}"


class Prometheus:
    """A real Prometheus that scrapes one gateway every second."""

    def __init__(self, folder: Path, target: int) -> None:
        (self.port,) = free_ports(1)
        config = yaml.safe_load((PROMETHEUS / "prometheus.yml").read_text())
        config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
        config["rule_files"] = [str(PROMETHEUS / "rules.yml")]
        for job in config["scrape_configs"]:
            job["static_configs"] = [{"targets": [f"127.0.0.1:{target}"]}]
        (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
        command = ["prometheus", f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'data'}"]
        command.append(f"--web.listen-address=127.0.0.1:{self.port}")
        self._log = (folder / "prometheus.log").open("wb")
        self.process = subprocess.Popen(command, stdout=self._log, stderr=self._log)

    def get(self, path: str, **parameters: str) -> Any:
        """``data`` of an API call; None while it does not answer."""
        url = f"http://127.0.0.1:{self.port}{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=5) as reply:
                return json.load(reply)["data"]
        except urllib.error.HTTPError as error:
            if error.code == 503:  # it starts
                return None
            raise AssertionError(f"{parameters}: {error.read().decode()}") from None
        except OSError:
            return None

    def query(self, expression: str) -> list[Any]:
        """The series of an instant query."""
        found = self.get("/api/v1/query", query=expression)
        assert found is not None, "Prometheus does not answer"
        return list(found["result"]) if found["resultType"] == "vector" else [found["result"]]

    def stop(self) -> None:
        """End it."""
        self.process.terminate()
        self.process.wait(15)
        self._log.close()


@pytest.fixture(scope="module")
def prometheus(deployed: Gateway, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """Prometheus with a few scrapes of the gateway, between which it served requests."""
    running = Prometheus(tmp_path_factory.mktemp("prometheus"), deployed.admin_port)
    try:
        wait_for(lambda: running.get("/api/v1/query", query="up == 1"), "Prometheus answers", 30)
        wait_for(lambda: running.query("up == 1"), "the gateway is scraped", 30)
        client = deployed.connect()
        due = time.monotonic() + 60
        while not running.query("sum(rate(quantgate_tpot_seconds_count[30s])) > 0"):
            assert time.monotonic() < due, "no rate in a minute"
            for stream in (False, True):
                body = {"model": "demo-model", "max_tokens": 4, "messages": [{"role": "user", "content": "hi"}]}
                client.request({**body, "stream": stream}).read()
        client.close()
        yield running
    finally:
        running.stop()


@needs_prometheus
def test_every_panel_shows_something(prometheus: Prometheus) -> None:
    """Each query of the dashboard is evaluated by a real Prometheus over a real gateway, and gives series."""
    for title, expression in targets():
        series = prometheus.query(concrete(expression))
        assert series or QUIET.search(expression) or title == "Policy applied", f"{title}: {expression}"


@needs_prometheus
def test_every_alert_can_be_evaluated_and_is_silent(prometheus: Prometheus) -> None:
    """A healthy gateway wakes nobody, and no rule is broken."""
    wait_for(lambda: _evaluated(prometheus), "every rule is evaluated", 30)
    rules = [rule for group in prometheus.get("/api/v1/rules")["groups"] for rule in group["rules"]]
    assert {rule["name"] for rule in rules} == {rule["alert"] for rule in RULES}
    assert [rule["name"] for rule in rules if rule["health"] != "ok"] == []
    assert [rule["name"] for rule in rules if rule["state"] == "firing"] == []


def _evaluated(prometheus: Prometheus) -> bool:
    found = prometheus.get("/api/v1/rules")
    groups = found["groups"] if found else []
    return bool(groups) and all(rule["health"] != "unknown" for group in groups for rule in group["rules"])


@needs_prometheus
def test_the_variables_find_their_values(prometheus: Prometheus) -> None:
    """The menus of the dashboard list what there is."""
    for variable in DASHBOARD["templating"]["list"]:
        if variable["type"] != "query":
            continue
        match = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"]["query"])
        assert match is not None
        values = prometheus.get(f"/api/v1/label/{match[2]}/values", **{"match[]": concrete(match[1])})
        assert values, variable["name"]
