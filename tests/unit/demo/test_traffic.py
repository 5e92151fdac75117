"""Requests run side by side where they may, in order where they must, and around the edits as promised."""

import asyncio
import io
from typing import Any

from rich.console import Console

from gateway.demo.client import Answer
from gateway.demo.screen import Screen, Tally
from gateway.demo.traffic import AT_ONCE, Runner, edit
from gateway.demo.workload import TRIAL_REQUESTS, Item, Kind, Step, items_of, workload

STEPS = workload(30, 7)
(LIMITED,) = [step for step in STEPS if step[0].kind is Kind.TRIAL]


class Client:
    """Answers everything, and notes what ran and what was edited before it."""

    def __init__(self) -> None:
        self.running: set[int] = set()
        self.beside: dict[int, set[int]] = {}
        self.most = 0
        self.order: list[int] = []
        self.edited_before: dict[int, tuple[bool, bool]] = {}
        self.edits = Editor()

    async def send(self, item: Item) -> Answer:
        """One answer, after a turn of the loop."""
        self.running.add(item.number)
        self.most = max(self.most, len(self.running))
        self.order.append(item.number)
        for number in self.running:
            self.beside.setdefault(number, set()).update(self.running)
        self.edited_before[item.number] = (self.edits.misspelt_now, self.edits.reversed_now)
        await asyncio.sleep(0)
        self.running.discard(item.number)
        return Answer(item.number, 200, 0.1, pool="q4")


class Editor:
    """Stands for the edits."""

    order_before, order_after, misspelt = ("q4", "bf16"), ("bf16", "q4"), ("q44", "bf16")

    def __init__(self) -> None:
        self.misspelt_now = self.reversed_now = False

    async def misspell(self) -> tuple[str, int]:
        """The wrong edit."""
        self.misspelt_now = True
        return "no pool", 1

    async def reverse(self, before: int) -> tuple[int, float, None]:
        """The right edit."""
        assert self.misspelt_now
        self.reversed_now = True
        return before + 1, 0.1, None


class Gateway:
    """Tells a generation."""

    def state(self) -> dict[str, Any]:
        """As ``/readyz``."""
        return {"generation": 1}


async def run(steps: tuple[Step, ...]) -> tuple[Runner, Client, Any]:
    """The whole workload."""
    client = Client()
    total = len(items_of(steps))
    tally = Tally(Screen(Console(file=io.StringIO())), total, ("q4",))
    runner = Runner(client, steps, tally)  # type: ignore[arg-type]
    async with asyncio.TaskGroup() as group:
        edits = group.create_task(edit(client.edits, runner, tally, Gateway()))  # type: ignore[arg-type]
        for _ in range(AT_ONCE):
            group.create_task(runner.work())
    return runner, client, edits.result()


async def test_everything_is_sent_once() -> None:
    """Every request has its answer, and no more run at once than may."""
    runner, client, _ = await run(STEPS)
    assert sorted(client.order) == sorted(runner.answers) == [item.number for item in items_of(STEPS)]
    assert 1 < client.most < AT_ONCE + len(LIMITED)


async def test_a_step_is_in_order() -> None:
    """The questions of one step come one after another."""
    _, client, _ = await run(STEPS)
    for step in STEPS:
        numbers = [item.number for item in step]
        assert [number for number in client.order if number in numbers] == numbers
        together = all(client.beside[number] >= set(numbers) for number in numbers)
        assert together == (len(step) == 1 or step == LIMITED)


async def test_what_meets_a_rate_limit_is_sent_at_once() -> None:
    """One after another, on a busy machine, would take longer than the minute in which they are too many."""
    _, client, _ = await run(STEPS)
    numbers = {item.number for item in LIMITED}
    assert len(numbers) > TRIAL_REQUESTS
    assert all(client.beside[number] >= numbers for number in numbers)


async def test_both_generations_see_traffic() -> None:
    """The first request runs before any edit, the last third after both."""
    _, client, edits = await run(STEPS)
    assert client.edited_before[STEPS[0][0].number] == (False, False)
    for step in STEPS[len(STEPS) * 2 // 3 + 1 :]:
        assert client.edited_before[step[0].number] == (True, True)
    assert (edits.generation_before, edits.generation_after, edits.refusal) == (1, 2, "no pool")


async def test_a_failing_edit_lets_the_workload_go_on() -> None:
    """An error in the edits comes out, and no request waits for it for ever."""
    client = Client()
    tally = Tally(Screen(Console(file=io.StringIO())), 30, ("q4",))
    runner = Runner(client, STEPS, tally)  # type: ignore[arg-type]

    async def broken() -> tuple[str, int]:
        raise RuntimeError("no file")

    client.edits.misspell = broken  # type: ignore[method-assign]
    editing = edit(client.edits, runner, tally, Gateway())  # type: ignore[arg-type]
    async with asyncio.timeout(10):
        failed, _ = await asyncio.gather(editing, runner.work(), return_exceptions=True)
    assert isinstance(failed, RuntimeError)
    assert len(runner.answers) == 30
