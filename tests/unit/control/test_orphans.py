"""Processes of a pool end with the one that started them, however it ends."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import multiprocessing, os, signal
from concurrent.futures import ProcessPoolExecutor
from gateway.control.{module} import {start}
if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(1, mp_context=context, initializer={start})
    print(pool.submit(os.getpid).result(), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize(("module", "start"), [("orphans", "end_with_parent"), ("scorer_process", "start")])
def test_a_killed_parent_leaves_no_process_behind(tmp_path, module, start):
    """Standard output is inherited: its end is read once the last process that holds it is gone."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format(module=module, start=start))
    env = {**os.environ, "PYTHONPATH": str(Path.cwd())}
    done = subprocess.run(
        [sys.executable, str(program)], stdout=subprocess.PIPE, text=True, timeout=60, check=False, env=env
    )
    assert done.returncode == -9
    assert int(done.stdout) != 0
