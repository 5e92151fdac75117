"""``ARCHITECTURE.md`` names files, contracts and tests that exist."""

import ast
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "ARCHITECTURE.md").read_text()
LAYERS = "cli › app › control | dataplane | demo | simulator › wire | runtimes | store | policy › core › model › errors"


def test_the_tests_that_hold_the_promises_exist() -> None:
    """Each promise names a file and a function in it."""
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)
    assert len(named) >= 15
    for file, name in named:
        tree = ast.parse((ROOT / file).read_text())
        functions = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
        assert name in functions, f"{file}::{name}"


def test_the_files_exist() -> None:
    """Every path of the request's way and of the places for new things is there."""
    ours = re.findall(r"`((?:wire|dataplane|core|control|model|policy|runtimes|cli|store)/[\w/.]*)`", PAGE)
    others = re.findall(r"`((?:docs|tests)/[\w/.-]+)`", PAGE)
    assert len(ours) >= 30 and others
    assert [path for path in ours if not (ROOT / "gateway" / path).exists()] == []
    assert [path for path in others if not (ROOT / path).exists()] == []


def test_layers_and_contracts_are_those_that_are_enforced() -> None:
    """The line of the layers and the table of the contracts say what import-linter checks."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = [contract["layers"] for contract in contracts if contract["type"] == "layers"]
    assert LAYERS in PAGE
    assert LAYERS.split(" › ") == [layer for layer in layers if layer != "__main__"]
    for contract in contracts:
        assert f"| {contract['name']} |" in PAGE, contract["name"]
