"""Runs a file of statistical test vectors through the judge's own engine and prints every difference.

Owns the command's function and its output. ``meters`` and ``sections`` know the format of the file, ``report`` what
counts as equal; none of them computes a statistic itself. Called by the command line and by tests.
"""

import json
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from gateway.cli.vectors.report import VectorReport, entries_of
from gateway.cli.vectors.sections import SECTIONS

DEFAULT_FILE = Path("tests/data/stat_vectors.json")


def run_vectors(path: Path = DEFAULT_FILE) -> VectorReport:
    """Check the file at ``path`` and print the result; raises OSError if it cannot be read."""
    report = check_vectors(json.loads(path.read_bytes()))
    print(f"{path}: {report.numbers} numbers and {report.exacts} decisions checked")
    print(f"largest relative difference {report.largest:.2e} at {report.largest_path or '-'}")
    for mismatch in report.mismatches:
        print(f"MISMATCH {mismatch.path}: expected {mismatch.expected!r}, measured {mismatch.measured!r}")
    for place in report.unsupported:
        print(f"UNSUPPORTED {place}")
    print("all agree" if report.passed else "FAILED")
    return report


def main(path: Annotated[Path, typer.Argument(metavar="FILE", help="File of vectors.")] = DEFAULT_FILE) -> NoReturn:
    """Check the judge's statistics against a file of test vectors; exit status 0 if everything agrees, else 1."""
    try:
        passed = run_vectors(path).passed
    except (OSError, ValueError) as error:
        print(f"{path}: {error}")
        passed = False
    raise SystemExit(0 if passed else 1)


def check_vectors(content: Any) -> VectorReport:
    """Check parsed vectors: a mapping from section to its entries."""
    report = VectorReport()
    if not isinstance(content, dict):
        report.unsupported.append("the file is no mapping of sections")
        return report
    for name, section in content.items():
        if isinstance(section, str):
            continue
        check = SECTIONS.get(name)
        if check is None:
            report.unsupported.append(f"{name}: unknown section")
            continue
        for path, entry in entries_of(name, section):
            try:
                check(report, path, entry)
            except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
                report.unsupported.append(f"{path}: {type(error).__name__}: {error}")
    return report
