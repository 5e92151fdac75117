"""The second part takes up its policy, watches while requests run, and ends by itself. ``tests/e2e`` runs all of it."""

import asyncio
import io
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from rich.console import Console

from gateway.demo.policy import DemoPolicyError
from gateway.demo.rollout import chapter as module
from gateway.demo.rollout.chapter import Watch, take_up, way_of
from gateway.demo.rollout.notes import Requests, Way
from gateway.demo.rollout.screen import Board
from gateway.demo.rollout.standing import Bucket
from gateway.demo.rollout.traffic import Course, Tally
from gateway.demo.screen import Screen
from tests.unit.demo.rollout.story import BUCKETS, EVENTS, bucket

TEXT = Path("routing_policies/demo-rollout.yaml").read_text()


class Options(msgspec.Struct):
    """Where the policy is."""

    policy: Path


class Gateway:
    """Tells what it is told to tell."""

    def __init__(self, folder: Path) -> None:
        self.options = Options(folder / "demo.yaml")
        self.states: list[dict[str, Any]] = [{}]
        self.buckets: list[Bucket] = []
        self.lines: list[dict[str, Any]] = []
        self.gone = False

    def state(self) -> dict[str, Any]:
        """The next answer of ``/readyz``; the last one stays."""
        return self.states.pop(0) if len(self.states) > 1 else self.states[0]

    def check(self) -> None:
        """Whether it is there."""
        if self.gone:
            raise RuntimeError("the gateway ended")

    def rollouts(self, name: str) -> dict[str, Any]:
        """Where the rollout stands."""
        assert name == "q4-json"
        return {"buckets": msgspec.to_builtins(self.buckets)}

    def rollout_history(self, name: str) -> dict[str, Any]:
        """The record, newest first."""
        assert name == "q4-json"
        return {"events": list(reversed(self.lines))}


@pytest.fixture
def gateway(tmp_path: Path) -> Gateway:
    """One that knows nothing yet."""
    return Gateway(tmp_path)


def state(generation: int, workers: int) -> dict[str, Any]:
    """An answer of ``/readyz``."""
    return {"generation": generation, "workers": {"on_current_generation": workers}}


def test_the_policy_is_taken_up_by_every_worker(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only then requests are sent: a worker on the policy before it would decide otherwise."""
    monkeypatch.setattr(module, "LOOK_S", 0.0)
    gateway.states = [state(2, 2), state(2, 2), state(3, 1), {}, state(3, 2)]
    assert take_up(gateway, TEXT, 2) == (2, 3)  # type: ignore[arg-type]
    assert gateway.options.policy.read_text() == TEXT
    assert len(gateway.states) == 1


def test_a_policy_that_is_not_good_is_told(gateway: Gateway) -> None:
    """With its finding, before anything is waited for."""
    gateway.states = [state(2, 2)]
    with pytest.raises(DemoPolicyError, match="no pool 'q9'"):
        take_up(gateway, TEXT.replace("candidate: q4", "candidate: q9"), 2)  # type: ignore[arg-type]


def test_a_policy_that_is_not_taken_up_is_told(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a while, instead of waiting for ever; a gateway that is gone is told at once."""
    monkeypatch.setattr(module, "LOOK_S", 0.0)
    monkeypatch.setattr(module, "TAKE_UP_S", 0.0)
    gateway.states = [state(2, 2)]
    with pytest.raises(DemoPolicyError, match="did not take up"):
        take_up(gateway, TEXT, 2)  # type: ignore[arg-type]
    gateway.gone = True
    with pytest.raises(RuntimeError, match="ended"):
        take_up(gateway, TEXT, 2)  # type: ignore[arg-type]


class Watching:
    """A watch with what it works on."""

    def __init__(self, gateway: Gateway) -> None:
        self.out = io.StringIO()
        self.gateway = gateway
        self.course = Course(Requests(1, 7), 7)
        board = Board(Screen(Console(file=self.out, width=100)), "q4", "bf16")
        self.watch = Watch(gateway, "q4-json", board, self.course, Tally())  # type: ignore[arg-type]


@pytest.fixture
def watching(gateway: Gateway) -> Watching:
    """Nothing has happened yet."""
    return Watching(gateway)


def lines(*ways: Way) -> list[dict[str, Any]]:
    """The record of some ways, in the order of time."""
    events = sorted((event for way in ways for event in EVENTS[way]), key=lambda event: event.at)
    return [msgspec.to_builtins(event) for event in events]


async def test_every_event_is_told_once(watching: Watching) -> None:
    """However often it is looked at, in the order in which it happened."""
    watching.gateway.lines = lines(Way.SCHEMA)[:2]
    await watching.watch.look()
    watching.gateway.lines = lines(*Way)
    for _ in range(3):
        await watching.watch.look()
    text = watching.out.getvalue()
    assert text.count("q4 enters at 25 %") == 2
    assert text.count("stepped to 50 %") == text.count("promoted") == text.count("rolled back") == 1
    assert watching.watch.events == {way: list(EVENTS[way]) for way in Way}


async def test_other_buckets_are_none_of_its_business(watching: Watching) -> None:
    """Only the two that the notes are in are shown and waited for."""
    watching.gateway.buckets = [msgspec.structs.replace(bucket(Way.FREE), bucket="medium/chat/none")]
    watching.gateway.lines = [{**lines(Way.FREE)[0], "bucket": "medium/chat/none"}]
    await watching.watch.look()
    assert watching.watch.buckets == {}
    assert watching.watch.events == {}


async def test_a_decision_counts_once_every_worker_knows(watching: Watching, monkeypatch: pytest.MonkeyPatch) -> None:
    """That is some time after the gateway told of it, and not when it is seen for the first time."""
    clock = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: clock[0])
    watching.gateway.buckets = [bucket(Way.FREE, "rolled_back", -1), bucket(Way.SCHEMA)]
    await watching.watch.look()
    clock[0] += module.SETTLE_S / 2
    await watching.watch.look()
    assert watching.course.decisions == {}
    clock[0] += module.SETTLE_S / 2
    await watching.watch.look()
    assert {way: decision.state for way, decision in watching.course.decisions.items()} == {Way.FREE: "rolled_back"}


async def test_a_gateway_that_is_silent_for_a_moment(watching: Watching, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was known stays known."""
    watching.gateway.buckets = [bucket(Way.SCHEMA)]
    await watching.watch.look()
    monkeypatch.setattr(watching.gateway, "rollouts", lambda name: {})
    await watching.watch.look()
    assert watching.watch.buckets == {Way.SCHEMA: bucket(Way.SCHEMA)}


async def test_when_its_time_is_over_it_ends(watching: Watching, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not decided is a result too: no further request is sent."""
    monkeypatch.setattr(module, "LOOK_S", 0.0)
    assert watching.course.next() is not None
    running = asyncio.create_task(watching.watch.run(longest_s=-1.0))
    deadline = time.monotonic() + 10
    while watching.course.next() is not None:
        assert time.monotonic() < deadline
        await asyncio.sleep(0)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


@pytest.mark.parametrize("way", list(Way))
def test_whose_bucket_it_is(way: Way) -> None:
    """By the task in its label."""
    assert way_of(BUCKETS[way]) is way
    assert way_of(f"short/not-{way}/none") is None
