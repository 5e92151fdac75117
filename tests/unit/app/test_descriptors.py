"""The limit that the command's processes run under."""

import resource
import subprocess
import sys

import pytest

from gateway.app.descriptors import PLENTY

PROGRAM = """
import resource, subprocess, sys
from gateway.app.descriptors import raise_descriptor_limit
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]), int(sys.argv[2])))
print(raise_descriptor_limit(), subprocess.check_output(["sh", "-c", "ulimit -n"], text=True).strip())
"""
HARD = resource.getrlimit(resource.RLIMIT_NOFILE)[1]


@pytest.mark.parametrize(
    ("soft", "hard", "found"), [(256, 1000, 1000), (1000, 1000, 1000), (900, HARD, min(HARD, PLENTY))]
)
def test_as_many_as_the_system_allows_here_and_in_children(soft: int, hard: int, found: int) -> None:
    """A service manager's default of 1,024 is 500 streams."""
    said = subprocess.check_output([sys.executable, "-c", PROGRAM, str(soft), str(hard)], text=True)
    assert said.split() == [str(found), str(found)]
