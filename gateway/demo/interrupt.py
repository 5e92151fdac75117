"""Ctrl-C and its relatives, so that everything that was started is stopped for sure.

One handler for the whole life of the demo: outside an event loop a signal raises ``Interrupted`` in the main thread;
inside it cancels the main task; while a signal is waited for it ends the waiting, and while things are being stopped it
is only noted. Called by ``gateway.cli.demo``.
"""

import asyncio
import os
import select
import signal
from collections.abc import Callable, Coroutine
from types import FrameType, TracebackType
from typing import Any, Self, TypeVar

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

T = TypeVar("T")


class Interrupted(BaseException):
    """A signal came. ``number`` tells which."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.strsignal(number))
        self.number = number


class Interrupts:
    """The handler, as a context of the main thread."""

    def __init__(self) -> None:
        self._before: dict[int, Any] = {}
        self._held = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[Any] | None = None
        self._number = 0
        self._bell: int | None = None

    def __enter__(self) -> Self:
        for number in SIGNALS:
            self._before[number] = signal.signal(number, self._came)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    def hold(self) -> None:
        """From now on signals disturb nothing: what runs is the stopping."""
        self._held = True

    def wait(self, look: Callable[[], None], every_s: float) -> None:
        """Until a signal comes, calling ``look`` now and then; from then on signals are held.

        ``look`` is never cut in two: it waits for processes, and half of that would leave their locks taken.
        """
        ear, self._bell = os.pipe()
        try:
            waiting = select.poll()  # ``select`` takes no descriptor above 1,023
            waiting.register(ear, select.POLLIN)
            while not waiting.poll(every_s * 1000.0):
                look()
        finally:
            self.hold()
            os.close(self._bell)
            os.close(ear)
            self._bell = None

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        """``asyncio.run`` that ends with ``Interrupted`` when a signal comes, whatever its parts say to that."""
        self._number = 0
        try:
            result = asyncio.run(self._run(main))
        except BaseException as error:
            if self._number and not isinstance(error, Interrupted):
                raise Interrupted(self._number) from None
            raise
        finally:
            self._loop = self._task = None
        if self._number:  # it came when there was nothing left to cancel
            raise Interrupted(self._number)
        return result

    async def _run(self, main: Coroutine[Any, Any, T]) -> T:
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        return await main

    def _came(self, number: int, frame: FrameType | None) -> None:
        del frame
        if self._held:
            return
        self._number = number
        if self._bell is not None:
            os.write(self._bell, b"!")
            return
        if self._loop is not None and self._task is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._task.cancel)
            return
        raise Interrupted(number)
