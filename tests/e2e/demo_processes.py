"""A demo as a process: what it says, what it started, what its printed lines do. For the tests of both of its parts."""

import os
import subprocess
import sys
import time
from pathlib import Path

DEMO = (sys.executable, "-m", "gateway", "demo", "--requests", "18", "--workers", "2")


def descendants(pid: int) -> set[int]:
    """Every process that came of ``pid``."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                status = (entry / "stat").read_text()
            except OSError:  # it has ended meanwhile
                continue
            parents[int(entry.name)] = int(status.rpartition(")")[2].split()[1])
    found, grown = {pid}, True
    while grown:
        more = {child for child, parent in parents.items() if parent in found} - found
        found |= more
        grown = bool(more)
    return found - {pid}


def gone(pids: set[int], within_s: float = 10.0) -> set[int]:
    """Those of ``pids`` that still run after a while."""
    deadline = time.monotonic() + within_s
    while (left := {pid for pid in pids if _runs(pid)}) and time.monotonic() < deadline:
        time.sleep(0.1)
    return left


def _runs(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def read_until(process: subprocess.Popen[str], text: str) -> str:
    """The output up to a line that holds ``text``."""
    assert process.stdout is not None
    seen = []
    for line in process.stdout:
        seen.append(line)
        if text in line:
            return "".join(seen)
    raise AssertionError(f"{text!r} never came:\n{''.join(seen)}")


def shell(line: str) -> str:
    """What a line prints, run as it was printed."""
    done = subprocess.run(
        ("sh", "-c", line),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd="/",
        env={**os.environ, "EDITOR": "true"},
    )
    assert done.returncode == 0, (line, done.stderr)
    return done.stdout
