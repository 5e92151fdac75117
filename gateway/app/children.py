"""One supervised subprocess: started, watched, restarted with growing pauses.

Owns the process and the decision when it may be started again; must not know what the process does. A child runs in its
own session, so a terminal's Ctrl-C reaches the supervisor alone, and the kernel kills it when the supervisor dies.
Called by ``app.supervisor``.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Collection, Mapping, Sequence

BACKOFF_FIRST_S = 0.1
BACKOFF_MOST_S = 5.0
HEALTHY_AFTER_S = 30.0

_PR_SET_PDEATHSIG = 1


class Backoff:
    """Pauses before restarts: doubling from ``BACKOFF_FIRST_S`` to ``BACKOFF_MOST_S``, anew after a healthy life."""

    def __init__(self) -> None:
        self._next_s = BACKOFF_FIRST_S

    def pause_s(self, lived_s: float) -> float:
        """How long to wait before starting again a process that lived ``lived_s``."""
        if lived_s >= HEALTHY_AFTER_S:
            self._next_s = BACKOFF_FIRST_S
        pause_s = self._next_s
        self._next_s = min(self._next_s * 2.0, BACKOFF_MOST_S)
        return pause_s


class Child:
    """A process that shall run. ``monotonic`` gives seconds; ``starts`` counts how often it was started."""

    def __init__(
        self,
        name: str,
        argv: Sequence[str],
        monotonic: Callable[[], float],
        environment: Mapping[str, str] | None = None,
        keep_open: Sequence[int] = (),
    ) -> None:
        self.name = name
        self.argv = tuple(argv)
        self.starts = 0
        self.due_at: float | None = None
        self._monotonic = monotonic
        self._environment = environment
        self._keep_open = tuple(keep_open)
        self._backoff = Backoff()
        self._process: subprocess.Popen[bytes] | None = None
        self._started_at = 0.0

    @property
    def pid(self) -> int | None:
        """Of the running process."""
        return self._process.pid if self._process is not None else None

    def start(self) -> None:
        """Start it now. Raises ``OSError`` if the system cannot."""
        self.due_at = None
        self._process = subprocess.Popen(  # noqa: S603 - our own argv, no shell
            self.argv,
            stdin=subprocess.DEVNULL,
            env=None if self._environment is None else {**os.environ, **self._environment},
            pass_fds=self._keep_open,
            start_new_session=True,
            preexec_fn=die_with_parent(os.getpid()),  # noqa: PLW1509 - the supervisor has one thread
        )
        self._keep_open = ()
        self._started_at = self._monotonic()
        self.starts += 1

    def reap(self) -> int | None:
        """The exit code, once, if the process has ended (negative = by that signal); then plans the restart.

        What it had started itself goes with it: its group still bears its number while it is not waited for.
        """
        if self._process is None:
            return None
        if os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            return None
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        code = self._process.wait()
        self._process = None
        now = self._monotonic()
        self.due_at = now + self._backoff.pause_s(now - self._started_at)
        return code

    def retry_later(self) -> None:
        """Plan another start after one that failed."""
        self.due_at = self._monotonic() + self._backoff.pause_s(0.0)

    def signal(self, number: int) -> None:
        """Send a signal if it runs."""
        if self._process is not None:
            self._process.send_signal(number)


def reap_strangers(own: Collection[int]) -> int:
    """As process 1 of a container: wait for ended processes that nobody else waits for, but not for our ``own``."""
    count = 0
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) is not None:
            if ended.si_pid in own:
                break
            os.waitpid(ended.si_pid, 0)
            count += 1
    return count


def die_with_parent(parent: int) -> Callable[[], None] | None:
    """What a new child runs before its program: the kernel shall kill it when ``parent`` dies. None off Linux."""
    if not sys.platform.startswith("linux"):
        return None
    prctl = ctypes.CDLL(None, use_errno=True).prctl

    def ask() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died between the fork and the request
            os.kill(os.getpid(), signal.SIGKILL)

    return ask
