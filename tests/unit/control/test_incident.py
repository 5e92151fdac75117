"""An incident's bundle: its requests, what was kept of them, and a line that replays exactly those."""

import json
import shlex
from pathlib import Path

import pytest
from sqlalchemy import Engine

from gateway.control.incident import Places, bundle_of, replay_line
from gateway.core.rollout import Standing
from gateway.store import samples
from gateway.store.engine import open_engine, url_of
from gateway.store.migrate import upgrade
from gateway.store.rollouts import EventRow
from gateway.store.samples import SampleRow

STANDING = Standing("r", "id", "m/short/chat", "int4", "bf16")
PLACES = Places(Path("/etc/quant gate/policy.yaml"), Path("/var/quantgate"))


@pytest.fixture
def database(tmp_path: Path) -> Engine:
    """With texts of two requests, one kept twice."""
    engine = open_engine(url_of(None, tmp_path))
    upgrade(engine)
    kept = [("a", "incident"), ("b", "incident"), ("b", "pair")]
    samples.inserter(engine).add(
        [tuple(SampleRow(name, 1.0, 9e9, "t", "x", "int4", why, b"sealed")) for name, why in kept]
    )
    return engine


def row(requests: dict[str, list[str]]) -> EventRow:
    evidence = json.dumps({"requests": requests})
    return EventRow(
        1, "id", "m/short/chat", 4, "r", 1.0, "fail", "stepping", "rolled_back", 0, -1, "why", "q", "", evidence, ""
    )


def test_a_bundle_says_which_requests_can_be_replayed(database: Engine) -> None:
    """Every request once, whatever number of guards named it."""
    found = bundle_of(database, row({"json": ["b", "a"], "hard": ["b", "gone"]}), STANDING, PLACES)
    assert found["requests"] == ["a", "b", "gone"]
    assert found["replayable"] == ["a", "b"]
    assert "--requests a,b " in found["replay"]
    assert found["event"]["evidence"]["requests"]["hard"] == ["b", "gone"]


def test_nothing_kept_is_no_line(database: Engine) -> None:
    """Nor is one without the pools it would go to."""
    assert bundle_of(database, row({"json": ["gone"]}), STANDING, PLACES)["replay"] == ""
    assert bundle_of(database, row({"json": ["a"]}), None, PLACES)["replay"] == ""


def test_the_line_can_be_pasted_into_a_shell() -> None:
    """Paths are quoted; the state directory is named where the records are in it."""
    words = shlex.split(replay_line(["a", "b"], STANDING, PLACES))
    assert words[:4] == ["quantgate", "replay", "--requests", "a,b"]
    assert words[words.index("--config") + 1] == "/etc/quant gate/policy.yaml"
    assert words[words.index("--to") + 1] == "bf16,int4"
    assert words[words.index("--state-dir") + 1] == "/var/quantgate"
    assert "--state-dir" not in replay_line(["a"], STANDING, PLACES._replace(own_database=False))
