"""The root of the ``quantgate`` command."""

import ast
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gateway import __version__, cli
from gateway.app.compiled import describe


@pytest.fixture
def invoke():
    """Run a command line."""
    runner = CliRunner()
    return lambda *arguments: runner.invoke(cli.app, list(arguments), prog_name="quantgate")


def test_help_lists_every_command_and_imports_none(invoke):
    """A person sees what there is; nothing heavy is loaded for it."""
    code = (
        "import sys\nfrom gateway.cli import app\n"
        "try:\n    app(['--help'])\nexcept SystemExit as e:\n    assert not e.code\n"
        "heavy = {'aiohttp', 'uvloop', 'sqlalchemy', 'pydantic', 'yaml', 'structlog', 'openai'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    for name, (_, _, summary) in cli.COMMANDS.items():
        assert f"\n  {name} " in ended.stdout
        assert summary.split()[0] in ended.stdout


def test_the_version_is_the_packages(invoke):
    """--version prints it and ends."""
    assert invoke("--version").output == f"quantgate {__version__} ({describe()})\n"


def test_an_unknown_command_is_told(invoke):
    """Exit code 2, as for every usage error."""
    result = invoke("srve")
    assert result.exit_code == 2
    assert "srve" in result.output


@pytest.mark.parametrize("name", list(cli.COMMANDS))
def test_every_command_that_is_listed_is_there(name):
    """The module exists and holds the function; read as text, so that extras need not be installed."""
    module, attribute, _ = cli.COMMANDS[name]
    spec = importlib.util.find_spec(module)
    assert spec is not None and spec.origin is not None, f"{module} is missing"
    tree = ast.parse(Path(spec.origin).read_text())
    names = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    names |= {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    names |= {
        alias.asname or alias.name for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert attribute in names


def test_the_module_runs_as_the_command_does():
    """``python -m gateway`` is ``quantgate``."""
    ended = subprocess.run([sys.executable, "-m", "gateway", "--version"], capture_output=True, text=True, check=False)
    assert ended.stdout.startswith(f"quantgate {__version__} (")
