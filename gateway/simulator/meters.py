"""Counters and histograms of the simulated engine.

Owns the numbers behind ``/metrics`` and ``/sim/state``. No I/O. ``engine`` and ``routes`` write, ``exposition`` and
``control`` read.
"""

from bisect import bisect_left
from collections import Counter

_TTFT = (
    0.001,
    0.005,
    0.01,
    0.02,
    0.04,
    0.06,
    0.08,
    0.1,
    0.25,
    0.5,
    0.75,
    1,
    2.5,
    5,
    7.5,
    10,
    20,
    40,
    80,
    160,
    640,
    2560,
)
_TOKEN = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80)
_LATENCY = (0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680)
_COUNT = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000)


class Histogram:
    """Counts per bucket, with the sum. ``bounds`` are inclusive upper bounds, ascending."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def add(self, value: float, times: int = 1) -> None:
        """Take ``value`` in, ``times`` times."""
        self.counts[bisect_left(self.bounds, value)] += times
        self.total += value * times


class Meters:
    """All numbers of one engine since its start."""

    def __init__(self) -> None:
        self.prompt_tokens = 0
        self.cached_tokens = 0
        self.generation_tokens = 0
        self.prefix_queries = 0
        self.prefix_hits = 0
        self.rejections = 0
        self.aborts = 0
        self.finished: Counter[str] = Counter()
        self.requests: Counter[str] = Counter()
        self.statuses: Counter[int] = Counter()
        self.struck: Counter[str] = Counter()
        self.connections = 0
        self.ttft = Histogram(_TTFT)
        self.inter_token = Histogram(_TOKEN)
        self.per_output_token = Histogram(_TOKEN)
        self.end_to_end = Histogram(_LATENCY)
        self.queue_time = Histogram(_LATENCY)
        self.inference_time = Histogram(_LATENCY)
        self.prefill_time = Histogram(_LATENCY)
        self.decode_time = Histogram(_LATENCY)
        self.request_prompt_tokens = Histogram(_COUNT)
        self.request_generation_tokens = Histogram(_COUNT)
