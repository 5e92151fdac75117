"""Which endpoint of a pool gets a request: stickiness where it costs little, else the better of two random ones.

Pure: loads and random numbers are arguments. The data plane calls ``choose`` once per attempt.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from hashlib import blake2b

VNODES = 64  # points per endpoint on the ring: shares of 4 endpoints stay within about ±12 %
STICKY_SLACK = 2.0  # a sticky endpoint may carry this much more than the least loaded …
STICKY_RATIO = 1.25  # … or this factor of it (bounded-load consistent hashing)
KV_FULL = 0.95  # above this usage a vLLM-like runtime begins to preempt
STALE_S = 10.0  # a report older than this says nothing


def pressure(inflight: int, running: float, waiting: float, kv_usage: float, age_s: float) -> float:
    """Load of an endpoint in requests: the larger of our own in-flight and what it reports, its queue counted twice.

    Unknown numbers are negative. A nearly full KV cache counts as a queue of its own, because new requests will
    preempt or wait.
    """
    load = float(inflight)
    if 0.0 <= age_s <= STALE_S:
        if running >= 0.0:
            load = max(load, running + max(waiting, 0.0))
        load += max(waiting, 0.0)
        if kv_usage > KV_FULL:
            load += 0.25 * load + 4.0
    return load


class Ring:
    """A consistent-hash ring over endpoint names: a conversation keeps its endpoint when others come and go."""

    __slots__ = ("_owners", "_points")

    def __init__(self, names: Sequence[str]) -> None:
        points = sorted(
            (int.from_bytes(blake2b(f"{name}#{vnode}".encode(), digest_size=8).digest(), "big"), index)
            for index, name in enumerate(names)
            for vnode in range(VNODES)
        )
        self._points = [point for point, _ in points]
        self._owners = [index for _, index in points]

    def walk(self, key: bytes, allowed: Sequence[int]) -> int:
        """The first allowed endpoint clockwise of the key. ``allowed`` must not be empty."""
        at = bisect_left(self._points, int.from_bytes(key[:8].ljust(8, b"\0"), "big"))
        owners = self._owners
        size = len(owners)
        for step in range(size):
            owner = owners[(at + step) % size]
            if owner in allowed:
                return owner
        return allowed[0]


def choose(
    allowed: Sequence[int],
    load: Callable[[int], float],
    sticky: int | None,
    rand: Callable[[], float],
) -> int:
    """Pick among ``allowed`` endpoint indexes; ``load`` gives an endpoint's pressure, ``rand`` numbers in [0, 1)."""
    count = len(allowed)
    if count == 1:
        return allowed[0]
    first = allowed[int(rand() * count)]
    second = allowed[int(rand() * (count - 1))]
    if second == first:
        second = allowed[-1] if first != allowed[-1] else allowed[0]
    first_load, second_load = load(first), load(second)
    best, best_load = (first, first_load) if first_load <= second_load else (second, second_load)
    if sticky is not None and sticky != best:
        sticky_load = load(sticky)
        if sticky_load <= best_load + STICKY_SLACK or sticky_load <= best_load * STICKY_RATIO:
            return sticky
    return best
