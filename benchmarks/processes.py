"""Processes of a measurement: started on given cores, measured with all their descendants, stopped whatever happens.

Linux only: processor time is read from the scheduler in nanoseconds, memory as the proportional set size.
"""

import contextlib
import os
import random
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).resolve().parents[1]
STOP_S = 15.0
# After a load: what a program puts off (batches of half a second, say) has begun by then, and is done once it is quiet.
PUT_OFF_S = 1.0
QUIET_S = 0.25
QUIET_SHARE = 0.02  # of a core, which idle timers stay below
SETTLE_MOST_S = 10.0


class Program:
    """A started command with everything that it starts. ``output`` takes both of its streams unless they are piped."""

    def __init__(
        self, name: str, command: Sequence[str], cores: Iterable[int], output: IO[Any], **options: Any
    ) -> None:
        self.name = name
        chosen = set(cores)
        self.process = subprocess.Popen(
            list(command),
            start_new_session=True,
            preexec_fn=lambda: os.sched_setaffinity(0, chosen),  # noqa: PLW1509 - one thread here
            **{"cwd": ROOT, "stdout": output, "stderr": output, "stdin": subprocess.DEVNULL, **options},
        )

    @property
    def pid(self) -> int:
        return self.process.pid

    def pids(self) -> list[int]:
        """Its process and all descendants that live."""
        children: dict[int, list[int]] = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError):
                    parent = int((entry / "stat").read_bytes().rpartition(b")")[2].split()[1])
                    children.setdefault(parent, []).append(int(entry.name))
        found, todo = [], [self.pid]
        while todo:
            pid = todo.pop()
            found.append(pid)
            todo += children.get(pid, [])
        return found

    def cpu_s(self) -> float:
        """Processor seconds used so far by all of them that live."""
        return sum(_thread_cpu_s(pid) for pid in self.pids())

    def settled_cpu_s(self) -> float:
        """``cpu_s`` once everything that the last load left to do is done, or after ten seconds of that."""
        time.sleep(PUT_OFF_S)
        used_s = self.cpu_s()
        for _ in range(int(SETTLE_MOST_S / QUIET_S)):
            time.sleep(QUIET_S)
            before_s, used_s = used_s, self.cpu_s()
            if used_s - before_s <= QUIET_SHARE * QUIET_S:
                break
        return used_s

    def memory_kib(self) -> int:
        """Proportional set size of all of them."""
        return sum(_pss_kib(pid) for pid in self.pids())

    def stop(self) -> None:
        """SIGTERM, then SIGKILL for whoever overstays; descendants in sessions of their own included."""
        family = [(pid, _started_at(pid)) for pid in self.pids()] if self.process.poll() is None else []
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGTERM)
        try:
            self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            self.process.wait()
        for pid, started_at in family:
            if started_at and _started_at(pid) == started_at:  # not another one that got its number
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def pin(pid: int, cores: Iterable[int]) -> None:
    """Move a running process, with all its threads, to these cores."""
    chosen = set(cores)
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(ProcessLookupError):
            os.sched_setaffinity(int(thread.name), chosen)


def _started_at(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[19].decode()
    return ""


def _thread_cpu_s(pid: int) -> float:
    total_ns = 0
    with contextlib.suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):
                total_ns += int((thread / "schedstat").read_text().split()[0])
    return total_ns / 1e9


def _pss_kib(pid: int) -> int:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1])
    return 0


def free_ports(count: int) -> list[int]:
    """Ports that nobody uses at this moment, below those that the system gives to outgoing connections by itself."""
    found: list[int] = []
    with contextlib.ExitStack() as held:
        while len(found) < count:
            port = random.randrange(20_000, 32_000)
            one = held.enter_context(socket.socket())
            with contextlib.suppress(OSError):
                one.bind(("127.0.0.1", port))
                found.append(port)
    return found


def wait_until(condition: Callable[[], bool], what: str, alive: Callable[[], bool], tries: int = 600) -> None:
    """Ask ten times a second; raises ``RuntimeError`` if it never holds or ``alive`` ends."""
    for _ in range(tries):
        if condition():
            return
        if not alive():
            break
        time.sleep(0.1)
    raise RuntimeError(what)
