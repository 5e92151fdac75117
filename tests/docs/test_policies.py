"""Every policy that the repository shows or ships is good, and its tests hold."""

import io
import re
from pathlib import Path

import pytest

from gateway.cli.policy_test import run
from gateway.policy.load import load

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(path for pattern in ("*.md", "docs/**/*.md", "deploy/**/*.md") for path in ROOT.glob(pattern))
MARKED = [
    (page, text)
    for page in PAGES
    for text in re.findall(r"^<!-- policy -->\n```yaml\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
]
SHIPPED = [
    ROOT / "routing_policies",
    ROOT / "routing_policies" / "demo.yaml",
    ROOT / "routing_policies" / "demo-rollout.yaml",
    ROOT / "deploy" / "compose" / "policies",
    ROOT / "deploy" / "compose" / "policies-vllm",
    ROOT / "deploy" / "kubernetes" / "base" / "policies",
]


@pytest.mark.parametrize(("page", "text"), MARKED, ids=[str(page.relative_to(ROOT)) for page, _ in MARKED])
def test_marked_blocks_load(page: Path, text: str, tmp_path: Path) -> None:
    """A yaml block under ``<!-- policy -->`` is a whole policy."""
    (tmp_path / "policy.yaml").write_text(text)
    assert load(tmp_path / "policy.yaml").digest


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: str(path.relative_to(ROOT)))
def test_shipped_policies_load(path: Path) -> None:
    """Each is accepted."""
    assert load(path).digest


@pytest.mark.parametrize("path", SHIPPED[:3], ids=lambda path: str(path.relative_to(ROOT)))
def test_their_promises_hold(path: Path) -> None:
    """The ``*.test.yaml`` beside them pass."""
    out = io.StringIO()
    assert run(path, out=out) == 0, out.getvalue()


def test_no_policy_is_left_out() -> None:
    """A folder of policies that is added is checked here too."""
    found = {path.parent for path in [*ROOT.glob("routing_policies/*.yaml"), *ROOT.glob("deploy/**/policies*/*.yaml")]}
    assert found == {path if path.is_dir() else path.parent for path in SHIPPED}
