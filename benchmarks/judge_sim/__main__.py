"""``python -m benchmarks.judge_sim [--quick]``: the table of claims; exit status 1 if one does not hold.

The full run takes some ten minutes on one core, the quick one under a minute with fewer runs and accordingly wider
tolerances.
"""

import sys
from collections.abc import Iterator

from benchmarks.judge_sim import delays, dispatch_order, fleet, null_runs
from benchmarks.judge_sim.report import Row, print_rows


def all_rows(*, quick: bool) -> Iterator[Row]:
    """Every claim; deterministic for a given mode."""
    yield from null_runs.null_rows(100 if quick else null_runs.RUNS)
    yield from delays.delay_rows(60 if quick else delays.RUNS)
    yield from fleet.fleet_rows(0.25 if quick else fleet.DAYS)
    yield from dispatch_order.dispatch_rows(100 if quick else dispatch_order.RUNS)


def main(arguments: list[str]) -> int:
    """Run, print, and return the exit status."""
    if not set(arguments) <= {"--quick"}:
        print("usage: python -m benchmarks.judge_sim [--quick]", file=sys.stderr)
        return 2
    return 0 if print_rows(all_rows(quick="--quick" in arguments)) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
