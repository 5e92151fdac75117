"""The engine: slots, queue, time, cache. Time is a loop that a test turns by hand."""

import heapq
import itertools
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from gateway.simulator.config import Capacity, Config, Slowdown
from gateway.simulator.engine import Engine, Job, PrefixCache


class Entry:
    """Stands for a handle."""

    def __init__(self, callback: Callable[..., None], args: tuple[Any, ...]) -> None:
        self.callback = callback
        self.args = args
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class Clock:
    """Stands for the loop: callbacks run in order of time when ``run`` is called."""

    def __init__(self) -> None:
        self.now = 0.0
        self._heap: list[tuple[float, int, Entry]] = []
        self._numbers = itertools.count()

    def time(self) -> float:
        return self.now

    def call_later(self, delay: float, callback: Callable[..., None], *args: Any) -> Entry:
        entry = Entry(callback, args)
        heapq.heappush(self._heap, (self.now + delay, next(self._numbers), entry))
        return entry

    def call_soon(self, callback: Callable[..., None], *args: Any) -> Entry:
        return self.call_later(0.0, callback, *args)

    def run(self, until: float = 1e9) -> None:
        while self._heap and self._heap[0][0] <= until:
            self.now, _, entry = heapq.heappop(self._heap)
            if not entry.cancelled:
                entry.callback(*entry.args)
        self.now = max(self.now, until) if until < 1e9 else self.now


class Rig:
    """An engine on a clock, and jobs that note what happens to them."""

    def __init__(self, config: Config) -> None:
        self.clock = Clock()
        self.engine = Engine(config, self.clock, Random(1))  # type: ignore[arg-type]
        self.log: list[tuple[float, str]] = []

    def job(self, name: str, *, steps: int = 3, streamed: bool = True, **options: Any) -> Job:
        left = itertools.count(1)

        def step() -> bool:
            number = next(left)
            self.log.append((self.clock.now, f"{name}{number}"))
            return number < steps

        settings = {"prompt_tokens": 10, "cached_tokens": 0, "ttft": 1.0, "tpot": 0.5, **options}
        job = Job(
            steps=steps,
            step=step if streamed else None,
            done=lambda: self.log.append((self.clock.now, f"{name}!")),
            **settings,
        )
        self.engine.submit(job)
        return job


def test_tokens_leave_on_time() -> None:
    """The first after TTFT, each further one a TPOT later, then done."""
    rig = Rig(Config())
    rig.job("a")
    rig.clock.run()
    assert rig.log == [(1.0, "a1"), (1.5, "a2"), (2.0, "a3"), (2.0, "a!")]
    meters = rig.engine.meters
    assert (meters.generation_tokens, meters.prompt_tokens) == (3, 10)
    assert meters.ttft.total == 1.0
    assert meters.inter_token.total == pytest.approx(1.0)


def test_whole_answers_take_as_long_as_streams() -> None:
    """Without a step the answer is due when the last token would have left."""
    rig = Rig(Config())
    rig.job("a", streamed=False)
    rig.clock.run()
    assert rig.log == [(2.0, "a!")]
    assert sum(rig.engine.meters.inter_token.counts) == 2


def test_queue_is_first_come_first_served() -> None:
    """Over the capacity jobs wait in order, and a full queue has no room."""
    rig = Rig(Config(capacity=Capacity(running=1, queue=2)))
    for name in "abc":
        assert rig.engine.has_room
        rig.job(name, steps=1)
    assert not rig.engine.has_room
    assert (len(rig.engine.running), len(rig.engine.waiting)) == (1, 2)
    rig.clock.run()
    assert [name for _, name in rig.log if name.endswith("!")] == ["a!", "b!", "c!"]
    assert rig.engine.meters.queue_time.total == pytest.approx(1.0 + 2.0)


def test_abort_frees_the_slot_at_once() -> None:
    """An aborted job sends nothing more and the next one starts in its place; it counts once."""
    rig = Rig(Config(capacity=Capacity(running=1)))
    first = rig.job("a")
    second = rig.job("b", steps=1)
    third = rig.job("c", steps=1)
    rig.clock.run(1.2)
    rig.engine.abort(first)
    rig.engine.abort(first)
    rig.engine.abort(third)
    assert second in rig.engine.running
    rig.clock.run()
    assert [name for _, name in rig.log] == ["a1", "b1", "b!"]
    assert rig.engine.meters.aborts == 2


def test_freezing_keeps_the_slot() -> None:
    """A frozen job stays in its slot until it is aborted, before the first token or after some."""
    rig = Rig(Config())
    hung = rig.job("a", freeze_after=0)
    stalled = rig.job("b", freeze_after=2)
    whole = rig.job("c", streamed=False, freeze_after=1)
    rig.clock.run()
    assert [name for _, name in rig.log] == ["b1", "b2"]
    assert rig.engine.running == {hung, stalled, whole}


def test_a_client_that_does_not_read_holds_the_next_token() -> None:
    """A blocked job goes on where it stopped when it is unblocked."""
    rig = Rig(Config())
    job = rig.job("a")
    rig.clock.run(0.5)
    job.blocked = True
    rig.clock.run()
    assert [name for _, name in rig.log] == ["a1"]
    rig.engine.unblock(job)
    rig.clock.run()
    assert [name for _, name in rig.log] == ["a1", "a2", "a3", "a!"]


def test_load_slows_down() -> None:
    """Latencies grow with the share of the capacity in use."""
    rig = Rig(Config(capacity=Capacity(running=2), slowdown=Slowdown(at_full=1.0)))
    rig.job("a", steps=1)
    rig.clock.run()
    assert rig.log[0] == (1.5, "a1")
    rig.job("b", steps=1)
    rig.job("c", steps=1)
    rig.clock.run()
    assert rig.log[-1][0] == pytest.approx(1.5 + 2.0)


def test_jitter_spreads_single_tokens() -> None:
    """Gaps differ from token to token within the share."""
    rig = Rig(Config(tpot_jitter=0.5))
    rig.job("a", steps=30)
    rig.clock.run()
    times = [at for at, name in rig.log if not name.endswith("!")]
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert all(0.25 <= gap <= 0.75 for gap in gaps)
    assert len({round(gap, 6) for gap in gaps}) > 20


def test_a_long_queue_of_instant_jobs_is_no_deep_stack() -> None:
    """Thousands of waiting jobs without any latency finish one after another."""
    rig = Rig(Config(capacity=Capacity(running=1)))
    rig.job("a", steps=1)
    for _ in range(5000):
        rig.job("b", steps=1, streamed=False, ttft=0.0, tpot=0.0)
    rig.clock.run()
    assert len([name for _, name in rig.log if name == "b!"]) == 5000


def test_kv_usage_is_what_running_jobs_hold() -> None:
    """Prompt and generated tokens of running jobs over the capacity, never above one."""
    rig = Rig(Config(capacity=Capacity(kv_tokens=40)))
    rig.job("a")
    assert rig.engine.kv_usage == 0.25
    rig.clock.run(1.1)
    assert rig.engine.kv_usage == 11 / 40
    rig.job("b", prompt_tokens=1000)
    assert rig.engine.kv_usage == 1.0
    rig.clock.run()
    assert rig.engine.kv_usage == 0.0


def test_prefix_cache_hits_whole_blocks() -> None:
    """The longest known prefix counts, rounded down to blocks; unknown ones are learned."""
    cache = PrefixCache()
    assert cache.hit([(b"a", 40), (b"b", 100)]) == 0
    assert cache.hit([(b"a", 40), (b"c", 90)]) == 32
    assert cache.hit([(b"a", 40), (b"b", 100)]) == 96
