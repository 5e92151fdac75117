"""Rows of the result table: what was expected, what was measured, how far apart they may be."""

import math
from collections.abc import Iterable, Sequence

import msgspec


class Row(msgspec.Struct, frozen=True):
    """One comparison; ``note`` says where the expectation comes from."""

    name: str
    expected: str
    measured: str
    tolerance: str
    holds: bool
    note: str = ""


def share_row(name: str, expected_percent: float, count: int, runs: int, *, reference_runs: int = 10_000) -> Row:
    """A share of runs against a simulated share: three standard errors of both, plus half a unit of the printed digit.

    The expectation is itself a share of ``reference_runs`` simulated runs, so both errors count.
    """
    measured = count / runs
    expected = expected_percent / 100.0
    pooled = (expected * reference_runs + count) / (reference_runs + runs)
    error = math.sqrt(pooled * (1.0 - pooled) * (1.0 / runs + 1.0 / reference_runs))
    rounding = _half_unit(expected_percent) / 100.0
    # Where hardly any run trips, one run more or less is not a deviation but the grain of the measurement.
    within = 3.0 * error + rounding + 1.0 / runs
    return Row(
        name,
        f"{expected_percent:g} %",
        f"{100.0 * measured:.2f} %",
        f"± {100.0 * within:.2f} points",
        abs(measured - expected) <= within,
        f"{runs} runs",
    )


def _half_unit(percent: float) -> float:
    """Half a unit of the last digit of a percentage printed with two significant digits (0.005 below 1 %)."""
    if percent < 1.0:
        return 0.005
    return 0.05 if percent < 10.0 else 0.5


_WIDTHS = (62, 24, 10, 18, 8)
"""Column widths; fixed, so that rows appear as they are known and not after a quarter of an hour."""

_HEADS = ("claim", "expected", "measured", "tolerance", "verdict", "note")


def print_rows(rows: Iterable[Row]) -> bool:
    """Print the table row by row; True if every row holds."""
    print(_line(_HEADS))
    failed = 0
    for row in rows:
        verdict = "ok" if row.holds else "FAILED"
        print(_line((row.name, row.expected, row.measured, row.tolerance, verdict, row.note)), flush=True)
        failed += not row.holds
    print(f"{failed} claims do not hold" if failed else "every claim holds")
    return failed == 0


def _line(cells: Sequence[str]) -> str:
    padded = (cell.ljust(width) for cell, width in zip(cells, _WIDTHS, strict=False))
    return "  ".join((*padded, cells[-1])).rstrip()
