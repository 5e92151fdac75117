"""One coarse timer for every deadline of a process.

An item says when it is ``due`` and what to do then; infinity stands for never, and such an item is not kept here.
Moving ``due`` later costs one attribute write: the item is looked at when its old slot comes round and put back. Moving
it earlier needs ``add`` again. Removal is explicit, so a finished request is not kept alive by its deadline. Resolution
is one tick, which is plenty for limits of seconds.
"""

import asyncio
from collections.abc import Callable
from typing import Final

NEVER: Final = float("inf")
_ROUND: Final = 2048  # slots; what is due later waits in the last of them, and is looked at and put back there


class Due:
    """Something with a deadline on the loop's clock.

    A class and no protocol: each request sets deadlines and takes them off, and compiled code reads the attributes of
    its own classes directly.
    """

    __slots__ = ("due", "wheel_slot")

    def __init__(self) -> None:
        self.due: float = NEVER
        self.wheel_slot = 0

    def on_due(self, now: float) -> None:
        """Called once ``due`` has passed; the item is no longer on the wheel."""
        raise NotImplementedError


class Alarm(Due):
    """The deadline of something that has another base: ``call`` hears of it. ``drop`` lets go of whose it was."""

    __slots__ = ("_call",)

    def __init__(self, call: Callable[[float], None]) -> None:
        super().__init__()
        self._call: Callable[[float], None] | None = call

    def on_due(self, now: float) -> None:
        """The deadline passed."""
        if self._call is not None:
            self._call(now)

    def drop(self) -> None:
        """Nobody is called any more. Both hold each other, and such a cycle would wait for the collector."""
        self._call = None


class Wheel:
    """Deadline slots of ``tick_s`` seconds. Not thread-safe: it belongs to one loop."""

    def __init__(self, clock: Callable[[], float], tick_s: float = 0.05) -> None:
        self._clock = clock
        self._tick_s = tick_s
        self._slots: list[set[Due] | None] = [None] * _ROUND  # a slot's place is its number modulo their number
        self._at = int(clock() / tick_s)
        self._handle: asyncio.TimerHandle | None = None

    def add(self, item: Due) -> None:
        """Put an item on the wheel at its ``due``; replaces its former place."""
        if item.wheel_slot:
            self.discard(item)
        if item.due == NEVER:
            return
        slot = int(item.due / self._tick_s) + 1
        if slot <= self._at:
            slot = self._at + 1
        elif slot >= self._at + _ROUND:
            slot = self._at + _ROUND - 1
        item.wheel_slot = slot
        bucket = self._slots[slot % _ROUND]
        if bucket is None:
            self._slots[slot % _ROUND] = {item}
        else:
            bucket.add(item)

    def discard(self, item: Due) -> None:
        """Take an item off; harmless if it is not on."""
        if not item.wheel_slot:
            return
        bucket = self._slots[item.wheel_slot % _ROUND]
        if bucket is not None:
            bucket.discard(item)
        item.wheel_slot = 0

    def turn(self) -> None:
        """Fire everything that is due by now; items whose ``due`` has moved on are put back."""
        now = self._clock()
        last = int(now / self._tick_s)
        while self._at < last:
            self._at += 1
            items = self._slots[self._at % _ROUND]
            if items is not None:
                self._slots[self._at % _ROUND] = None
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
