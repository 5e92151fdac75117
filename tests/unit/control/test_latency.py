"""Sketches of control's own process: right numbers, a rolling hour, bounded memory."""

import pytest

from gateway.control import latency as module
from gateway.control.latency import BLOCK_S, Latency, as_values
from gateway.core.sketch import Sketch
from tests.unit.control.conftest import outcome
from tests.unit.control.exchanges import batch


class Clock:
    """A clock that is set."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def latency(clock: Clock) -> Latency:
    return Latency(clock)


def values(latency: Latency, within_s: float | None = None) -> dict:
    return {(found["bucket"], found["pool"]): found for found in as_values(latency.cells(within_s).items())}


def test_each_part_of_a_request_has_its_sketch(latency: Latency) -> None:
    """TTFT, TPOT and gaps of streams, end to end of whole answers, the queue of every request."""
    latency.take_batch(
        batch(
            outcome(
                ttft_s=0.1, first_to_last_s=1.0, completion_tokens=11, longest_gap_s=0.3, total_s=1.2, queue_s=0.01
            ),
            outcome(stream=False, total_s=2.0),
            outcome(result="upstream_error", total_s=9.0),
        )
    )
    found = values(latency)["m/short", "bf16"]
    counts = {name: found[name]["count"] for name in module.NAMES}
    assert counts == {"queue": 3, "ttft": 1, "tpot": 1, "gap": 1, "total": 2}
    assert found["tpot"]["p50"] == pytest.approx(0.1, rel=0.01)
    assert found["gap"]["max"] == 0.3
    assert found["total"]["mean"] == 1.6


def test_prefix_cache_hits_are_told_where_the_runtime_tells(latency: Latency) -> None:
    """Silence is no miss."""
    latency.take_batch(
        batch(
            outcome(prompt_tokens=100, cached_tokens=60),
            outcome(prompt_tokens=100, cached_tokens=0),
            outcome(prompt_tokens=100, cached_tokens=-1),
        )
    )
    assert values(latency)["m/short", "bf16"]["prefix_cache"] == {
        "requests": 2,
        "requests_with_hit": 1,
        "prompt_tokens": 200,
        "cached_tokens": 60,
        "cached_share": 0.3,
    }


def test_without_data_numbers_are_null(latency: Latency) -> None:
    """Never zero."""
    latency.take_batch(batch(outcome(stream=False, queue_s=-1.0, prompt_tokens=-1)))
    found = values(latency)["m/short", "bf16"]
    assert found["ttft"] == {"count": 0, "mean": None, "p50": None, "p90": None, "p95": None, "p99": None, "max": None}
    assert found["prefix_cache"]["cached_share"] is None


def test_requests_without_a_pool_are_nobodys_latency(latency: Latency) -> None:
    """Shed and refused requests."""
    latency.take_batch(batch(outcome(pool="", result="shed")))
    assert values(latency) == {}


def test_the_last_hour_rolls_and_the_start_is_kept(latency: Latency, clock: Clock) -> None:
    """A window counts the blocks that reach into it; since the start everything counts once."""
    for _ in range(8):
        latency.take_batch(batch(outcome()))
        clock.now += BLOCK_S
    latency.take_batch(batch(outcome()))
    key = ("m/short", "bf16")
    assert values(latency)[key]["total"]["count"] == 9
    assert values(latency, 3600.0)[key]["total"]["count"] == 5
    assert values(latency, 60.0)[key]["total"]["count"] == 2  # the block that ended now, and the current one


def test_cells_are_bounded(latency: Latency, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names over the bound are counted together, also when blocks are joined."""
    monkeypatch.setattr(module, "CELLS_MOST", 3)
    for turn in range(4):
        latency.take_batch(batch(*(outcome(bucket=f"b{turn}-{index}") for index in range(10))))
        clock.now += BLOCK_S
    found = values(latency)
    assert len(found) == 4
    assert sum(cell["total"]["count"] for cell in found.values()) == 40


def test_sketches_travel(latency: Latency) -> None:
    """Hex of the sketch's bytes, for whoever merges replicas."""
    latency.take_batch(batch(outcome(total_s=0.5)))
    (found,) = as_values(latency.cells().items(), with_sketches=True)
    assert Sketch.decode(bytes.fromhex(found["total"]["sketch"])).most == 0.5
