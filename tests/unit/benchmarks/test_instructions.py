"""Instructions by library, from what callgrind writes."""

from benchmarks.instructions import by_library

WRITTEN = """\
version: 1
cmd: python -m x
positions: line
events: Ir

ob=(1) /usr/bin/python3
fl=(1) a.c
fn=(1) main
10 5
+2 7
cob=(2) /usr/lib/libc.so.6
cfn=(2) malloc
calls=3 20
* 1000

ob=(2)
fn=(2)
20 40
-1 2

ob=(1)
fn=(3) other
* 100
totals: 154
"""


def test_a_library_has_what_it_ran_itself() -> None:
    """Calls into others are theirs, and a number stands for a name wherever that was given first."""
    assert by_library(WRITTEN.splitlines()) == {"python3": 112, "libc.so.6": 42}
