"""The gateway that the benchmarks measure starts under its policy and answers, or says why not."""

import os
import sys
from pathlib import Path

import pytest

from benchmarks import contenders
from benchmarks.contenders import CannotStartError, start_gateway
from benchmarks.processes import Program, free_ports


def cores() -> tuple[int, int]:
    """The first and the last that there are."""
    found = sorted(os.sched_getaffinity(0))
    return found[0], found[-1]


def test_the_gateway_under_test_answers(tmp_path: Path) -> None:
    """It is one program in two rows, and counts as started once a request was answered with 200."""
    (port,) = free_ports(1)
    with (tmp_path / "log").open("w") as output:
        backend = Program("backend", [sys.executable, "-m", "benchmarks.backend", str(port)], cores(), output)
        try:
            rows = start_gateway(tmp_path, port, cores(), output)
            rows[0].program.stop()
        finally:
            backend.stop()
    assert [row.name for row in rows] == ["quantgate", "quantgate, one core"]
    assert rows[0].program is rows[1].program


def test_a_gateway_that_does_not_start_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its folder is gone when somebody reads the message, so the message has the fault itself."""
    monkeypatch.setattr(contenders, "POLICY", contenders.POLICY.replace("baseline: bf16", "baseline: none-such"))
    with (tmp_path / "log").open("w") as output, pytest.raises(CannotStartError, match="there is no pool of m 'none-s"):
        start_gateway(tmp_path, 9, cores(), output)
