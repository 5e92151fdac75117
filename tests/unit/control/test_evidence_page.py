"""``docs/evidence-records.md`` names everything there is: columns, metrics, paths, and why something is lost."""

import re
import time
from pathlib import Path

from gateway.control import api_records
from gateway.control.api_records import RecordsApi
from gateway.control.evidence import Evidence
from gateway.core.report import METRICS
from gateway.core.report.flat import FlatRow
from gateway.store.tables import requests

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "evidence-records.md").read_text()
CODE = re.findall(r"`([^`]+)`", re.sub(r"```.*?```", "", PAGE, flags=re.DOTALL))
PARAMETERS = api_records.CHOICE | api_records.PAGE | api_records.LATENCY | api_records.SAMPLES | api_records.REPORT
WORDS = {*CODE, *(word for found in CODE for word in found.split())}


def test_every_column_is_explained() -> None:
    """Of the records and of the report's rows."""
    assert {column.name for column in requests.columns} - WORDS == set()
    assert set(FlatRow._fields) - WORDS == set()


def test_every_metric_is_explained() -> None:
    """Quantiles by their family."""
    families = {re.sub(r"_p\d+$", "_*", name) for name in METRICS} | {"requests"}
    assert families - WORDS == set()


def test_every_path_and_parameter_is_explained(tmp_path: Path) -> None:
    """As they are spelled."""
    evidence = Evidence(tmp_path, processes=0, monotonic=time.monotonic, wall=time.monotonic, rand=lambda: 0.0)
    paths = {f"GET {route.path}" for route in RecordsApi(evidence, time.monotonic, lambda: None, list).routes()}
    assert paths - WORDS == set()
    missing = {name for name in PARAMETERS if not any(word.partition("=")[0] == name for word in WORDS)}
    assert missing == set()


def test_every_reason_of_a_loss_is_named() -> None:
    """Each word with which the pipeline counts what it gave up."""
    modules = ROOT / "gateway" / "control"
    found: set[str] = set()
    for name in ("scoring", "archive", "joining", "sampling"):
        text = (modules / f"{name}.py").read_text()
        found |= set(re.findall(r'(?:skipped|dropped|ignored|kept)\.add\(\("(\w+)",', text))
        found |= set(re.findall(r'_give_up\([^()]*, "(\w+)"\)', text))
    assert {"scorer_died", "queue_full", "other_tenant", "busy"} <= found
    assert found - WORDS == set()


def test_what_it_costs_was_measured() -> None:
    """No number is left to be filled in."""
    assert "COST_" not in PAGE
