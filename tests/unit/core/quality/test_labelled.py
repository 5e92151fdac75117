"""The checks against the labelled set: precise where they decide by grammar, measured where they weigh evidence."""

import importlib.util
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from gateway.core.quality import STRUCTURAL, Check

ROOT = Path(__file__).parents[4]
LABELLED = ROOT / "tests" / "data" / "labelled"


def _load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"labelled_{name}", LABELLED / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


measure = _load("measure")
CASES = measure.read_cases()
ROWS, DISAGREEMENTS = measure.measure(CASES)


def test_the_set_is_large_real_and_bilingual() -> None:
    """At least 400 answers: good and broken, by hand and by real models, English and Chinese; known labels."""
    assert len(CASES) >= 400
    languages = Counter(case["lang"] for case in CASES)
    assert languages["zh"] >= 100
    assert languages["en"] >= 300
    assert sum(case["origin"].startswith("model:") for case in CASES) >= 100
    broken = sum(bool(case["labels"]["fail"]) for case in CASES)
    assert 200 <= broken <= len(CASES) - 200
    assert len(CASES) == len({case["id"] for case in CASES})
    known = {check.value for check in Check}
    for case in CASES:
        labels = case["labels"]
        assert set(labels["fail"]) | set(labels["pass"]) | set(labels["unsure"]) <= known
        assert not set(labels["fail"]) & (set(labels["pass"]) | set(labels["unsure"]))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.check.value)
def test_precision(row: Any, record_property: Callable[[str, object], None]) -> None:
    """Structural checks reach 0.99 precision and recall, weighed ones 0.95 and 0.9; all are reported."""
    least = (0.99, 0.99) if row.check in STRUCTURAL else (0.95, 0.9)
    for name in ("precision", "recall", "false_positive_rate"):
        record_property(name, getattr(row, name))
    assert row.true_positives + row.false_negatives > 0, "no faulty case for this check"
    assert row.precision >= least[0], DISAGREEMENTS
    assert row.recall >= least[1], DISAGREEMENTS
    assert row.false_positive_rate <= 0.01


def test_good_answers_raise_no_alarm() -> None:
    """Of the answers without any fault, at most one in a hundred fails any check."""
    good = [case for case in CASES if not case["labels"]["fail"] and not case["labels"]["unsure"]]
    alarms = [case["id"] for case in good if not measure.inspect_case(case).ok]
    assert len(alarms) <= 0.01 * len(good), alarms


def test_what_must_pass_passes() -> None:
    """A check that applies and holds says pass, and does not hide behind 'not applicable'."""
    assert not [line for line in DISAGREEMENTS if line.endswith("must pass")]


def test_synthetic_part_is_what_the_generators_make() -> None:
    """The stored cases are current: the same generators give the same bytes, in another process too."""
    done = subprocess.run([sys.executable, "build.py", "--check"], cwd=LABELLED, check=False)
    assert done.returncode == 0


def test_page_shows_current_numbers() -> None:
    """docs/checks.md holds the table that the set gives today, and names every check."""
    page = (ROOT / "docs" / "checks.md").read_text(encoding="utf-8")
    shown = page.partition(measure.BEGIN)[2].partition(measure.END)[0].strip()
    assert measure.page_section().strip() == shown
    prose = page.partition(measure.BEGIN)[0]
    assert not [check.value for check in Check if f"`{check.value}`" not in prose]


def test_real_answers_say_how_they_were_made() -> None:
    """Every variant of the real-model part is described beside it."""
    readme = (LABELLED / "README.md").read_text(encoding="utf-8")
    variants = {case["origin"].partition(":")[2] for case in CASES if case["origin"] != "hand"}
    assert not [variant for variant in variants if f"`{variant}`" not in readme]
