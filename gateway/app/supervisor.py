"""``quantgate serve``: starts control and the workers, keeps them alive, stops them in order.

Owns processes, signals and the two ports; serves nothing itself and reads no policy. Start: control first; workers only
when control holds a valid policy. Life: what dies is started again, alone; control's death touches no worker. Stop:
workers finish their requests within the drain time, then control records the last outcomes. Called by ``cli``.

Single-threaded on purpose (children are started with a pre-exec function) and woken by SIGCHLD and a readiness pipe.
"""

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import Sequence
from enum import IntEnum
from pathlib import Path

import msgspec
import structlog

from gateway.app.addresses import Address, AddressError, Reservation, reserve
from gateway.app.children import Child, reap_strangers
from gateway.app.compiled import describe
from gateway.app.logs import set_up_logs
from gateway.app.state_dir import StateDirError, lock_state_dir, socket_path

CONTROL_STOP_S = 10.0
# A worker that has drained still sends its last outcomes.
WORKER_STOP_S = 3.0
OPEN_S = 30.0
_HERE = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}
READY_LINE = b"ready\n"

_log = structlog.get_logger("app.supervisor")


class Exit(IntEnum):
    """Exit codes of ``quantgate serve`` and of its control process."""

    OK = 0
    FAILED = 1
    POLICY = 2  # no valid policy; the findings are on standard error
    ADDRESS = 3  # a port cannot be taken


class ServeOptions(msgspec.Struct, frozen=True):
    """What ``quantgate serve`` was asked for. ``access_log``: a path, ``-`` for standard output, ``off``."""

    config: Path
    listen: Address
    admin: Address
    workers: int
    state_dir: Path
    drain_s: float = 30.0
    access_log: str = "-"
    log_level: str = "info"
    use_snapshot: bool = False


class Programs(msgspec.Struct, frozen=True):
    """How the two kinds of process are started, without their options."""

    control: tuple[str, ...] = (sys.executable, "-m", "gateway.app.control_main")
    worker: tuple[str, ...] = (sys.executable, "-m", "gateway.app.worker_main")


def serve(options: ServeOptions, programs: Programs | None = None) -> int:
    """Run until stopped; the exit code. Says what is wrong on standard error in one line."""
    set_up_logs("supervisor", options.log_level)
    try:
        lock = lock_state_dir(options.state_dir)
        with contextlib.ExitStack() as held:
            held.callback(lock.close)
            listen = reserve(options.listen, "--listen")
            held.callback(listen.release)
            admin = reserve(options.admin, "--admin", clients=listen)
            held.callback(admin.release)
            return asyncio.run(Supervisor(options, listen, admin, programs).run())
    except AddressError as error:
        sys.stderr.write(f"quantgate: {error}\n")
        return Exit.ADDRESS
    except (OSError, StateDirError) as error:
        sys.stderr.write(f"quantgate: {error}\n")
        return Exit.FAILED


class Supervisor:
    """The processes of one gateway. ``programs`` are the commands that start control and a worker."""

    def __init__(
        self, options: ServeOptions, listen: Reservation, admin: Reservation, programs: Programs | None = None
    ) -> None:
        self._options = options
        self._programs = programs or Programs()
        self._listen = listen.address
        self._admin = admin.address
        self._socket = socket_path(options.state_dir)
        self._ready_read, ready_write = os.pipe()
        self._ready_write: int | None = ready_write
        self._control = Child("control", self._control_argv(ready_write), time.monotonic, keep_open=(ready_write,))
        self._workers = [
            Child(f"worker-{index}", self._worker_argv(index), time.monotonic) for index in range(options.workers)
        ]
        self._wake = asyncio.Event()
        self._ready = False
        self._stop_signals = 0

    async def run(self) -> int:
        """Start, supervise, stop."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop_asked)
        loop.add_signal_handler(signal.SIGHUP, self._reload_asked)
        loop.add_signal_handler(signal.SIGCHLD, self._wake.set)
        loop.add_reader(self._ready_read, self._control_said)
        try:
            code = await self._start()
            if code is None:
                await self._supervise()
                code = Exit.OK
        finally:
            loop.remove_reader(self._ready_read)
            await self._stop()
        return code

    # -- start --------------------------------------------------------------------------------------------------

    async def _start(self) -> int | None:
        """Control, then the workers. An exit code if control found no valid policy or we were stopped before."""
        self._control.start()
        assert self._ready_write is not None  # noqa: S101 - written once, here
        os.close(self._ready_write)
        self._ready_write = None
        self._control.argv = tuple(self._control_argv(None))
        while not self._ready:
            await self._wait(None)
            if self._stop_signals:
                return Exit.OK
            code = self._control.reap()
            if code is not None:
                return code if code in (Exit.POLICY, Exit.ADDRESS) else Exit.FAILED
        for worker in self._workers:
            worker.start()
        await self._until_open()
        _log.info(
            "serving",
            listen=str(self._listen),
            admin=str(self._admin),
            workers=len(self._workers),
            request_path=describe(),
            pids={child.name: child.pid for child in (self._control, *self._workers)},
        )
        return None

    async def _until_open(self) -> None:
        """Wait until a worker takes connections, so that "serving" is true when it is said.

        Not for ever: a worker that cannot start says why itself.
        """
        deadline = time.monotonic() + OPEN_S
        while time.monotonic() < deadline and not self._stop_signals:
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_connection(
                    _HERE.get(self._listen.host, self._listen.host), self._listen.port
                )
                writer.close()
                return
            await self._wait(0.02)
            self._reap()
            self._start_due(time.monotonic())

    def _control_said(self) -> None:
        said = os.read(self._ready_read, 64)
        self._ready = self._ready or said.startswith(READY_LINE)
        if not said:
            asyncio.get_running_loop().remove_reader(self._ready_read)
        self._wake.set()

    # -- life ---------------------------------------------------------------------------------------------------

    async def _supervise(self) -> None:
        while self._stop_signals == 0:
            now = time.monotonic()
            due = [child.due_at for child in self._children() if child.due_at is not None]
            await self._wait(max(0.0, min(due) - now) if due else None)
            if self._stop_signals > 0:
                return
            self._reap()
            self._start_due(time.monotonic())

    def _reap(self) -> None:
        for child in self._children():
            pid = child.pid
            code = child.reap()
            if code is not None and child.due_at is not None:
                _log.error(
                    "process_died",
                    name=child.name,
                    pid=pid,
                    exit=code,
                    restart_in_s=round(child.due_at - time.monotonic(), 3),
                )
        if os.getpid() == 1:
            reap_strangers({child.pid for child in self._children() if child.pid is not None})

    def _start_due(self, now: float) -> None:
        for child in self._children():
            if child.due_at is not None and child.due_at <= now:
                try:
                    child.start()
                except OSError as error:
                    child.retry_later()
                    _log.error("process_not_started", name=child.name, error=str(error))
                else:
                    _log.info("process_restarted", name=child.name, pid=child.pid, starts=child.starts)

    # -- stop ---------------------------------------------------------------------------------------------------

    async def _stop(self) -> None:
        """Workers drain, then control; whoever overstays is killed. A second stop signal cuts the drain short."""
        if any(worker.pid for worker in self._workers):
            _log.info("draining", within_s=self._options.drain_s)
        await self._end(self._workers, self._options.drain_s + WORKER_STOP_S)
        await self._end([self._control], CONTROL_STOP_S)
        if self._ready:
            _log.info("stopped")

    async def _end(self, children: Sequence[Child], within_s: float) -> None:
        asked_before = self._stop_signals
        for child in children:
            child.signal(signal.SIGTERM)
        asked = time.monotonic()
        deadline = asked + within_s
        while any(child.pid for child in children):
            left_s = deadline - time.monotonic()
            if left_s <= 0.0 or self._stop_signals > max(asked_before, 1):
                break
            await self._wait(left_s)
            for child in children:
                child.reap()
        for child in children:
            if child.pid:
                after_s = round(time.monotonic() - asked, 1)
                _log.error("process_killed", name=child.name, pid=child.pid, after_s=after_s)
                child.signal(signal.SIGKILL)
        while any(child.pid for child in children):
            await self._wait(1.0)
            for child in children:
                child.reap()

    # -- signals and the rest -----------------------------------------------------------------------------------

    def _stop_asked(self) -> None:
        self._stop_signals += 1
        self._wake.set()

    def _reload_asked(self) -> None:
        self._control.signal(signal.SIGHUP)

    async def _wait(self, within_s: float | None) -> None:
        """Until something happened, or ``within_s``."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._wake.wait()
        self._wake.clear()

    def _children(self) -> list[Child]:
        return [self._control, *self._workers]

    def _control_argv(self, ready_fd: int | None) -> list[str]:
        """The first control insists on valid files and says when it is ready; its successors keep the gateway alive."""
        options = self._options
        argv = [
            *self._programs.control,
            *("--config", str(options.config)),
            *("--admin", str(self._admin)),
            *("--control-socket", str(self._socket)),
            *("--state-dir", str(options.state_dir)),
            *("--workers", str(options.workers)),
            *("--access-log", options.access_log),
            *("--log-level", options.log_level),
        ]
        if options.use_snapshot or ready_fd is None:
            argv.append("--use-snapshot")
        return argv if ready_fd is None else [*argv, "--ready-fd", str(ready_fd)]

    def _worker_argv(self, index: int) -> list[str]:
        return [
            *self._programs.worker,
            *("--index", str(index)),
            *("--workers", str(self._options.workers)),
            *("--listen", str(self._listen)),
            *("--control-socket", str(self._socket)),
            *("--state-dir", str(self._options.state_dir)),
            *("--drain-s", str(self._options.drain_s)),
        ]
