"""One supervised process."""

import os
import signal
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.app.children import BACKOFF_FIRST_S, BACKOFF_MOST_S, HEALTHY_AFTER_S, Backoff, Child, reap_strangers


class Clock:
    """Seconds that a test moves."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def test_pauses_double_up_to_the_most():
    """A process that dies at once is not started in a busy loop."""
    backoff = Backoff()
    assert [backoff.pause_s(0.0) for _ in range(8)] == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]


@given(st.lists(st.floats(0, 100), max_size=30))
def test_a_healthy_life_makes_the_pauses_short_again(lives):
    """Whatever came before, a process that lived long enough is started again at once."""
    backoff = Backoff()
    for lived_s in lives:
        assert BACKOFF_FIRST_S <= backoff.pause_s(lived_s) <= BACKOFF_MOST_S
    assert backoff.pause_s(HEALTHY_AFTER_S) == BACKOFF_FIRST_S


@pytest.fixture
def child(eventually):
    """Children that run a line of Python; ended when the test is."""
    made = []

    def make(code, clock=None, **options):
        made.append(Child("c", (sys.executable, "-c", code), clock or Clock(), **options))
        return made[-1]

    yield make
    for each in made:
        each.signal(signal.SIGKILL)
        eventually(lambda each=each: each.pid is None or each.reap() is not None)


def test_an_exit_is_told_once_and_plans_the_restart(child, eventually):
    """The code is the process's own; the start is due after the pause."""
    clock = Clock()
    process = child("raise SystemExit(7)", clock)
    process.start()
    assert process.due_at is None
    assert eventually(process.reap) == 7
    assert process.reap() is None
    assert process.pid is None
    assert process.due_at == pytest.approx(clock.now + BACKOFF_FIRST_S)
    process.start()
    assert process.due_at is None and process.starts == 2


def test_a_signal_is_told_as_its_negative_number(child, eventually):
    """As subprocess does."""
    process = child("import time; time.sleep(100)")
    process.start()
    process.signal(signal.SIGKILL)
    assert eventually(process.reap) == -signal.SIGKILL
    process.signal(signal.SIGKILL)  # nobody there: nothing happens


def test_a_program_that_cannot_be_started_is_tried_later():
    """The executable may be missing for the moment of an upgrade."""
    clock = Clock()
    process = Child("c", ("/no/such/program",), clock)
    with pytest.raises(OSError, match="no/such"):
        process.start()
    process.retry_later()
    assert process.due_at == pytest.approx(clock.now + BACKOFF_FIRST_S)


def test_a_child_has_its_own_session_no_stdin_and_the_given_descriptor(child, eventually, tmp_path):
    """Ctrl-C in a terminal does not reach it; it reads nothing; it writes where it was told, the first time only."""
    read_end, write_end = os.pipe()
    code = (
        "import os, sys; assert os.getsid(0) == os.getpid() and sys.stdin.read() == ''; "
        f"os.write({write_end}, os.environ['WORD'].encode())"
    )
    process = child(code, keep_open=(write_end,), environment={"WORD": "hello"})
    process.start()
    os.close(write_end)
    assert eventually(lambda: process.reap() is not None or process.pid is None)
    assert os.read(read_end, 100) == b"hello"
    os.close(read_end)


def test_what_a_dead_child_had_started_is_ended_too(child, eventually, alive, tmp_path):
    """Helpers of a killed process do not pile up over restarts."""
    note = tmp_path / "pid"
    code = (
        "import subprocess, sys, time, pathlib\n"
        "helper = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(1000)'])\n"
        f"p = pathlib.Path({str(note)!r})\n"
        "p.with_suffix('.new').write_text(str(helper.pid))\np.with_suffix('.new').rename(p)\n"
        "time.sleep(1000)\n"
    )
    process = child(code)
    process.start()
    helper = int(eventually(lambda: note.exists() and note.read_text()))
    assert alive(helper)
    process.signal(signal.SIGKILL)
    assert eventually(process.reap) == -signal.SIGKILL
    eventually(lambda: not alive(helper))


def test_strangers_are_reaped_and_our_own_are_left(child, eventually):
    """As process 1, orphans become ours; the exit codes of real children must not be lost to them."""
    stranger = subprocess.Popen([sys.executable, "-c", ""])
    assert eventually(lambda: reap_strangers(())) == 1
    assert stranger.poll() == 0  # nothing left to wait for: subprocess then assumes 0
    process = child("raise SystemExit(3)")
    process.start()
    pid = process.pid
    eventually(lambda: os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT))
    assert reap_strangers({pid}) == 0
    assert process.reap() == 3


def test_a_child_dies_with_its_parent(eventually, alive, tmp_path):
    """The kernel ends it even when the parent is killed."""
    note = tmp_path / "pid"
    sleeper = "import time; time.sleep(1000)"
    parent = (
        "import sys, time, pathlib\nfrom gateway.app.children import Child\n"
        f"c = Child('x', (sys.executable, '-c', {sleeper!r}), time.monotonic)\nc.start()\n"
        f"p = pathlib.Path({str(note)!r})\n"
        "p.with_suffix('.new').write_text(str(c.pid))\np.with_suffix('.new').rename(p)\n"
        "time.sleep(1000)\n"
    )
    process = Child("parent", (sys.executable, "-c", parent), Clock())
    process.start()
    pid = int(eventually(lambda: note.exists() and note.read_text()))
    assert alive(pid)
    process.signal(signal.SIGKILL)
    eventually(lambda: not alive(pid))
    eventually(lambda: process.reap() is not None)
