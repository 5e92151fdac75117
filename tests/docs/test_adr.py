"""The decisions are listed, and every dependency has its reason."""

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "adr"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def names(requirements: list[str]) -> set[str]:
    return {Requirement(line).name.lower() for line in requirements}


def test_every_decision_is_listed_under_its_title() -> None:
    """The index and the files agree, numbers follow each other."""
    index = dict(re.findall(r"^\| \[\d{4}\]\(([^)]+)\) \| (.+) \|$", (FOLDER / "README.md").read_text(), re.MULTILINE))
    files = sorted(path.name for path in FOLDER.glob("[0-9]*.md"))
    assert list(index) == files
    assert [int(name[:4]) for name in files] == list(range(1, len(files) + 1))
    for name, title in index.items():
        assert (FOLDER / name).read_text().startswith(f"# {name[:4]}: {title}\n"), name


def test_every_dependency_has_its_reason() -> None:
    """pyproject.toml and the page name the same packages, each in its part."""
    page = (FOLDER / "0012-dependencies.md").read_text()
    _, to_run, by_choice, to_develop = re.split(r"^## .*$", page, flags=re.MULTILINE)

    def listed(text: str) -> set[str]:
        firsts = re.findall(r"^\| ([a-z0-9, -]+?) \|", text, re.MULTILINE)
        return {name for first in firsts for name in first.split(", ")} - {"package"}

    extras = PROJECT["optional-dependencies"]
    develop = names([*extras["dev"], *extras["compile"]])
    chosen = names([line for extra, lines in extras.items() if extra not in ("dev", "compile") for line in lines])
    assert listed(to_run) == names(PROJECT["dependencies"])
    assert listed(by_choice) == chosen
    assert listed(to_develop) == develop - chosen
