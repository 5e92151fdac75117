"""One coarse timer for every deadline of a process.

An item says when it is ``due`` and what to do then; infinity stands for never, and such an item is not kept here.
Moving ``due`` later costs one attribute write: the item is looked at when its old slot comes round and put back. Moving
it earlier needs ``add`` again. Removal is explicit, so a finished request is not kept alive by its deadline. Resolution
is one tick, which is plenty for limits of seconds.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol

NEVER = float("inf")


class Due(Protocol):
    """Something with a deadline on the loop's clock."""

    due: float
    wheel_slot: int

    def on_due(self, now: float) -> None:
        """Called once ``due`` has passed; the item is no longer on the wheel."""
        ...


class Wheel:
    """Deadline slots of ``tick_s`` seconds. Not thread-safe: it belongs to one loop."""

    def __init__(self, clock: Callable[[], float], tick_s: float = 0.05) -> None:
        self._clock = clock
        self._tick_s = tick_s
        self._slots: dict[int, set[Due]] = {}
        self._at = int(clock() / tick_s)
        self._handle: asyncio.TimerHandle | None = None

    def add(self, item: Due) -> None:
        """Put an item on the wheel at its ``due``; replaces its former place."""
        if item.wheel_slot:
            self.discard(item)
        if item.due == NEVER:
            return
        slot = max(int(item.due / self._tick_s) + 1, self._at + 1)
        item.wheel_slot = slot
        bucket = self._slots.get(slot)
        if bucket is None:
            self._slots[slot] = {item}
        else:
            bucket.add(item)

    def discard(self, item: Due) -> None:
        """Take an item off; harmless if it is not on."""
        bucket = self._slots.get(item.wheel_slot)
        if bucket is not None:
            bucket.discard(item)
        item.wheel_slot = 0

    def turn(self) -> None:
        """Fire everything that is due by now; items whose ``due`` has moved on are put back."""
        now = self._clock()
        last = int(now / self._tick_s)
        while self._at < last:
            self._at += 1
            items = self._slots.pop(self._at, None)
            if items:
                self._fire(items, now)

    def _fire(self, items: set[Due], now: float) -> None:
        try:
            while items:
                item = items.pop()
                if item.wheel_slot != self._at:
                    continue  # discarded or moved by a neighbour that fired just before
                item.wheel_slot = 0
                if item.due > now:
                    self.add(item)
                else:
                    item.on_due(now)
        finally:
            for item in items:  # one item's fault must not cost its neighbours their deadlines
                if item.wheel_slot == self._at:
                    self.add(item)

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Turn by itself on this loop until ``stop``."""

        def turn() -> None:
            self._handle = loop.call_later(self._tick_s, turn)
            self.turn()

        self._handle = loop.call_later(self._tick_s, turn)

    def stop(self) -> None:
        """Stop turning."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
