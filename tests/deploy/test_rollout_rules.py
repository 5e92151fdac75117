"""Alerts on rollouts: accepted by promtool, each tested both ways, and only on metrics that exist."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from gateway.control.rehearsal.scenario import Quiet
from gateway.control.rollouts import Engine
from gateway.control.rollouts_gauges import rollout_families
from gateway.control.rollouts_keeping import Keeper
from gateway.control.rollouts_sharing import Sharing

PROMETHEUS = Path(__file__).parents[2] / "deploy" / "prometheus"
RULES = [
    rule
    for group in yaml.safe_load((PROMETHEUS / "rollouts.rules.yaml").read_text())["groups"]
    for rule in group["rules"]
]
COUNTED = {
    "quantgate_rollout_transitions_total",
    "quantgate_rollout_shed_total",
    "quantgate_notifications_total",
    "quantgate_requests_total",
}


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
@pytest.mark.parametrize(
    "command", [("check", "rules", "rollouts.rules.yaml"), ("test", "rules", "rollouts.rules.test.yml")]
)
def test_promtool_accepts_the_rules_and_their_tests(command: tuple[str, ...]) -> None:
    """They fire when they should, and only then."""
    run = subprocess.run(["promtool", *command], cwd=PROMETHEUS, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


def test_every_alert_is_tested_both_ways_and_explained() -> None:
    """Severity, summary, description, a test in which it fires and one in which it is silent."""
    tests = yaml.safe_load((PROMETHEUS / "rollouts.rules.test.yml").read_text())["tests"]
    cases = [(case["alertname"], bool(case["exp_alerts"])) for test in tests for case in test["alert_rule_test"]]
    for rule in RULES:
        assert rule["labels"]["severity"] in ("critical", "warning"), rule["alert"]
        assert {"summary", "description"} <= rule["annotations"].keys(), rule["alert"]
        assert (rule["alert"], True) in cases, f"{rule['alert']} never fires in a test"
        assert (rule["alert"], False) in cases, f"{rule['alert']} is never silent in a test"


def test_alerts_ask_only_for_metrics_that_are_exposed(tmp_path: Path) -> None:
    """A misspelled metric would never fire."""
    keeper, sharing = Keeper(tmp_path, lambda: None), Sharing(lambda: None, "g")
    exposed = {family.name for family in rollout_families(Engine(Quiet()), keeper, 0.0, sharing)}
    for rule in RULES:
        for name in re.findall(r"\bquantgate_[a-z_]+", rule["expr"]):
            assert name in exposed | COUNTED, (rule["alert"], name)
