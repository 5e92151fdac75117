"""``quantgate check``."""

import io
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gateway.cli import app
from gateway.cli.check import run

GOOD = Path("routing_policies")

SMALL = """\
version: 1
standalone: true
models: {tiny: {}}
pools:
  only:
    model: tiny
    runtime: llama.cpp
    precision: {weights: bf16, activations: bf16, kv_cache: bf16}
    endpoints: ["http://127.0.0.1:1"]
tenants: {anonymous: {allow: true}}
routes:
  - {name: all, pools: only}
"""


def out(path: Path, as_json: bool = False) -> tuple[int, str]:
    stream = io.StringIO()
    return run(path, as_json, stream), stream.getvalue()


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    file = tmp_path / "p.yaml"
    file.write_text(SMALL.replace("llama.cpp", "lama.cpp"))
    return file


def test_a_good_policy_is_shown_and_exits_0() -> None:
    """The decision table, what hangs on one pool, the digest."""
    status, text = out(GOOD)
    assert status == 0
    for expected in ("interactive-chat", "int4 → fp8 → bf16", "If one pool goes", "without bf16", "good: 4 file(s)"):
        assert expected in text


def test_what_only_its_window_refuses_is_marked(tmp_path: Path) -> None:
    """The gateway still tries it while its prompt may fit; a policy without windows has no such note."""
    file = tmp_path / "p.yaml"
    file.write_text(SMALL.replace("tiny: {}", "tiny: {context_window: 8k}"))
    _, text = out(file)
    assert "refused *" in text
    assert "* Only if the prompt itself is too long, with 400" in text
    file.write_text(SMALL)
    assert "prompt itself" not in out(file)[1]


def test_a_window_is_marked_for_an_adapter_that_other_pools_do_not_serve(tmp_path: Path) -> None:
    """As the gateway treats it: the pools that serve the adapter get it while the prompt may fit."""
    file = tmp_path / "p.yaml"
    other = SMALL[SMALL.index("  only:") : SMALL.index("tenants:")].replace("only:", "other:")
    text = SMALL.replace("tiny: {}", "tiny: {context_window: 8k, adapters: {a: {validated_on: any}}}")
    text = text.replace("tenants:", f"{other}    adapters: []\ntenants:")
    file.write_text(text.replace("pools: only}", "pools: [only, other]}"))
    report = json.loads(out(file, as_json=True)[1])["report"]
    over = [row for row in report["rows"] if not row["pools"]]
    assert {tuple(row["by"]) for row in over} == {("context_window",), ("adapter", "context_window")}
    assert out(file)[1].count("refused *") == len(over)


def test_a_broken_policy_exits_1_with_place_and_mend(broken: Path) -> None:
    """The line can be clicked on, the nearest word is there."""
    status, text = out(broken)
    assert status == 1
    assert f"{broken}:7:14: error: pools.only.runtime: 'lama.cpp' is not one of" in text
    assert "did you mean 'llama.cpp'?" in text
    assert "rejected: 1 error" in text


def test_json_says_the_same(broken: Path) -> None:
    """For scripts: findings with their parts, or the whole report."""
    status, text = out(broken, as_json=True)
    found = json.loads(text)
    assert (status, found["ok"], found["errors"][0]["column"]) == (1, False, 14)
    status, text = out(GOOD, as_json=True)
    found = json.loads(text)
    assert (status, found["ok"], len(found["files"])) == (0, True, 4)
    assert found["report"]["rows"][0]["pools"]
    assert len(found["report"]["buckets"]) == found["report"]["bucket_count"]


def test_a_policy_that_is_too_fine_is_still_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a table, but with everything else."""
    monkeypatch.setattr("gateway.policy.space.BOXES_MOST", 2)
    status, text = out(GOOD)
    assert status == 0
    assert "too finely for a decision table" in text
    assert json.loads(out(GOOD, as_json=True)[1])["report"] is None


def test_the_command(broken: Path) -> None:
    """Exit status 0, 1, and 2 for wrong usage, through the command line."""
    runner = CliRunner()
    assert runner.invoke(app, ["check", str(GOOD)]).exit_code == 0
    assert runner.invoke(app, ["check", str(broken), "--json"]).exit_code == 1
    assert runner.invoke(app, ["check"]).exit_code == 2
    missing = runner.invoke(app, ["check", "gone.yaml"])
    assert missing.exit_code == 1
    assert "does not exist" in missing.output
