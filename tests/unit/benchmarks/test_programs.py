"""The programs under ``benchmarks`` run, as short as they can, and are what is told of them.

What needs real models, other programs or minutes is run by hand.
"""

import contextlib
import io
import pkgutil
import re
import runpy
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml

import benchmarks
from benchmarks import (
    comparison_cost,
    demo_matrix,
    micro_core,
    micro_request,
    outcome_parts,
    outcome_values,
    record_cost,
    shadow,
    shadow_real,
)
from gateway.policy.load import load

ROOT = Path(__file__).resolve().parents[3]
MODULES = sorted(found.name for found in pkgutil.walk_packages(benchmarks.__path__, "benchmarks.") if not found.ispkg)
PROGRAMS = sorted(
    name.removesuffix(".__main__")
    for name in MODULES
    if '__name__ == "__main__"' in (ROOT / name.replace(".", "/")).with_suffix(".py").read_text()
)
WITHOUT_HELP = {"benchmarks.judge_sim"}  # its one option has a test of its own
PAGES = [
    ROOT / "Makefile",
    *(
        path
        for kind in ("*.md", "docs/**/*.md", "benchmarks/**/*.md", "benchmarks/**/*.py")
        for path in ROOT.glob(kind)
    ),
]
COMMAND = re.compile(r"python -m (benchmarks\.\w+)([^`\n#]*)")


def test_every_module_can_be_imported() -> None:
    """What a module takes from the gateway is there under that name."""
    for name in MODULES:
        import_module(name)


def test_every_program_is_told_of() -> None:
    """A program that no page names is run by nobody."""
    page = (ROOT / "benchmarks" / "README.md").read_text()
    assert [name for name in PROGRAMS if f"python -m {name}" not in page] == []


def told() -> dict[str, set[str]]:
    """The options that pages and docstrings give to each program."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in PAGES:
        for name, options in COMMAND.findall(path.read_text()):
            found[name] |= set(re.findall(r"--[a-z][a-z-]*", options))
    return found


@pytest.mark.filterwarnings("ignore:.*found in sys.modules:RuntimeWarning")
@pytest.mark.parametrize("name", sorted(set(PROGRAMS) - WITHOUT_HELP))
def test_a_program_takes_the_options_that_are_told_of_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each program says what it takes, and a command that is written down is one that it takes."""
    monkeypatch.setattr(sys, "argv", [name, "--help"])
    with contextlib.redirect_stdout(io.StringIO()) as said, pytest.raises(SystemExit) as ended:
        runpy.run_module(name, run_name="__main__")
    assert ended.value.code in (0, None)
    options = said.getvalue().rpartition("options:")[2]
    assert {option for option in told()[name] if not re.search(rf"{option}\b", options)} == set()


def test_what_is_told_of_exists() -> None:
    """No page names a program that is gone."""
    assert set(told()) - set(PROGRAMS) == set()


@pytest.mark.parametrize(
    ("program", "options", "last"),
    [
        (micro_core.main, "--seconds 0.00001", r"a stream's end: strip usage +[\d.]+"),
        (micro_request.main, "--count 2 --rounds 1", r"[\d.]+ us a request"),
        (micro_request.main, "--count 1 --rounds 1 --stream", r"[\d.]+ us a stream of 100 events, [\d.]+ us an event"),
        (micro_request.main, "--count 2 --cold", r"[\d.]+ us a request with cold caches"),
        (record_cost.main, "--count 2 --rounds 1", r"[\d.]+ us a request \(build [^)]*\); promised: under 5"),
        (comparison_cost.main, "1", r"4 tool calls, arguments differ: \d+ µs"),
    ],
    ids=["core", "request", "stream", "cold", "record", "comparison"],
)
def test_small_measurements_run_to_their_last_line(
    program: Callable[[Sequence[str]], None], options: str, last: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each measures something and says so: a field that goes and a type that changes end none of them."""
    program(options.split())
    assert re.fullmatch(last, capsys.readouterr().out.splitlines()[-1])


def test_every_part_of_control_takes_the_outcomes_of_the_benchmark(capsys: pytest.CaptureFixture[str]) -> None:
    """What ``outcomes`` sends is what control understands, to the last part."""
    outcome_parts.measure(batches=1, warm=0)
    assert "rollout, turn" in capsys.readouterr().out


@cache
def policies() -> dict[str, str]:
    """The policies that programs write, but for the one of ``contenders``."""

    def text(document: dict[str, Any]) -> str:
        return yaml.safe_dump(document)

    url = "http://127.0.0.1:9"
    return {
        "outcomes": outcome_values.policy(rollout=False),
        "outcomes, rollout": outcome_values.policy(rollout=True),
        "demo_matrix": demo_matrix.POLICY.format(bf16=url, q8=url, q4=url),
        "shadow": text(shadow.policy(9, 10)),
        "shadow, off": text(shadow.policy(9, None)),
        "shadow_real": text(shadow_real.policy({"bf16": url, "q4": url}, "10%")),
    }


@pytest.mark.parametrize("name", policies())
def test_the_policies_of_programs_are_good(name: str, tmp_path: Path) -> None:
    """A key that the policy language loses is missed here, and not in the middle of a measurement."""
    (tmp_path / "policy.yaml").write_text(policies()[name])
    assert load(tmp_path / "policy.yaml").document
