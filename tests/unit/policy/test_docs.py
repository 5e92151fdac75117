"""``docs/policy.md`` is true: its examples load, and no key of the language is missing in it."""

import copy
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from gateway.policy.findings import schema_of
from gateway.policy.schema import Policy
from gateway.policy.schema.tests import PolicyTests

PAGE = Path("docs/policy.md").read_text()
BLOCKS = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def load_yaml(text: str) -> Any:
    return yaml.load(text, yaml.BaseLoader)  # noqa: S506 - plain text of plain data


def merged(whole: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    """``part`` in the place of the same part of ``whole``: lists as a whole, named things one by one."""
    result = copy.deepcopy(whole)
    for section, value in part.items():
        named = section in ("models", "pools", "tenants", "guards", "classify") and isinstance(value, dict)
        result[section] = {**result.get(section, {}), **value} if named else value
    return result


def text_of(data: Any) -> str:
    """YAML in which every scalar stays as it was written."""
    return re.sub(r"'(true|false|\d[\d.]*)'", r"\1", yaml.safe_dump(data, sort_keys=False, width=10_000))


EXAMPLES = [block for block in BLOCKS if "test.yaml" not in block]


@pytest.mark.parametrize("block", EXAMPLES, ids=[block.split(":")[0] for block in EXAMPLES])
def test_every_example_loads(block: str, policies: Any) -> None:
    """The first as it stands, the others in its place, without an error."""
    whole = load_yaml(EXAMPLES[0])
    text = EXAMPLES[0] if block is EXAMPLES[0] else text_of(merged(whole, load_yaml(block)))
    assert policies.text(policy=text).digest


def test_the_tests_on_the_page_hold(tmp_path: Path) -> None:
    """The example of a test file, run against the whole policy of the page."""
    import io

    from gateway.cli.policy_test import run

    (tmp_path / "policy.yaml").write_text(EXAMPLES[0])
    (block,) = [block for block in BLOCKS if "test.yaml" in block]
    (tmp_path / "chat.test.yaml").write_text(block)
    out = io.StringIO()
    assert run(tmp_path, out=out) == 0, out.getvalue()


def keys_of(schema: Any) -> set[str]:
    if isinstance(schema, dict):
        own = set(schema["properties"]) if isinstance(schema.get("properties"), dict) else set()
        return own.union(*(keys_of(value) for value in schema.values()))
    return set().union(*(keys_of(item) for item in schema)) if isinstance(schema, list) else set()


@pytest.mark.parametrize("model", [Policy, PolicyTests])
def test_every_key_is_explained_and_shown(model: Any) -> None:
    """A key that is added to the language appears in prose and in an example."""
    prose = re.sub(r"^```yaml\n.*?^```$", "", PAGE, flags=re.DOTALL | re.MULTILINE)
    for key in sorted(keys_of(schema_of(model))):
        assert re.search(rf"\b{key}\b", prose), f"{key} is not explained"
        assert re.search(rf"\b{key}: ", "\n".join(BLOCKS)) or re.search(
            rf"^\s*{key}:$", "\n".join(BLOCKS), re.MULTILINE
        ), key
