"""The programs under ``benchmarks`` run, as short as they can. What needs real models or minutes is run by hand."""

import re
from collections.abc import Callable, Sequence

import pytest

from benchmarks import comparison_cost, micro_core, micro_request, record_cost


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
