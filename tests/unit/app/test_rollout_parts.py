"""The rollouts' parts of control are wired so that a real outcome reaches a series, and a decision a worker."""

import asyncio
from pathlib import Path

import pytest

from gateway.app.rollout_parts import RolloutParts
from gateway.control.durable import Durable
from gateway.control.evidence import Evidence
from gateway.control.hub import Hub
from gateway.control.link import Link
from gateway.control.metrics import Metrics
from gateway.control.probes import Probes
from gateway.control.publisher import Publisher
from gateway.control.recorder import Recorder
from gateway.control.reload import Reloader
from gateway.core.rollout import State
from gateway.model.messages import Start, Starts
from gateway.model.proving import Oversight, Samples
from gateway.policy.load import load_snapshot
from gateway.runtimes import ADAPTERS
from tests.unit.control.conftest import compiled
from tests.unit.control.exchanges import arrived
from tests.unit.control.rollout_rig import START_S, request_of, rollout_policy

BUCKET = "m/short/chat"


@pytest.fixture
def parts(tmp_path: Path) -> RolloutParts:
    """Wired over parts that are not started."""

    def wall() -> float:
        return START_S

    evidence = Evidence(tmp_path, processes=0, monotonic=wall, wall=wall, rand=lambda: 0.5)
    publisher = Publisher(Durable(tmp_path), compiled, wall)
    policy = tmp_path / "p.yaml"
    made = RolloutParts(tmp_path, config=policy, evidence=evidence, publisher=publisher, metrics=Metrics(), wall=wall)
    recorder = Recorder()
    hub = Hub(publisher, Metrics(), recorder, lambda _: None, lambda _: None, starts=made.take_starts)
    link = Link(tmp_path / "s", hub)
    made.connect(
        link,
        Probes(link.broadcast, ADAPTERS, wall, lambda: 0.5),
        recorder,
        Reloader(policy, load_snapshot, publisher, wall),
    )
    recorder.subscribe("evidence", evidence.take_batch)
    made.recorder = recorder  # type: ignore[attr-defined]
    return made


async def test_an_outcome_meets_its_bucket_and_is_announced_before(parts: RolloutParts) -> None:
    """By the recorder, and by the checks that follow it."""
    table = rollout_policy()
    parts.apply(table, Oversight(None, 1e9, Samples(), (), (), 1.0, 1024))
    parts.service.engine.restore([], None, START_S)
    recorder: Recorder = parts.recorder  # type: ignore[attr-defined]
    for number in range(3):
        parts.take_starts(Starts(0, [Start(int(START_S), BUCKET, "bf16", 1)]))
        recorder.record(arrived(request_of(BUCKET, "bf16", START_S, f"r{number}")))
        recorder.flush()
    run = parts.service.engine.runs[table.rollouts[0].identity, BUCKET]
    assert run.standing.state is State.PENDING
    assert run.feed.seen == {"bf16": 3}
    assert recorder.failures.rows == {}
    assert {route.path for route in parts.routes()} >= {"/api/v1/rollouts"}
    assert "quantgate_rollout_state" in {family.name for family in parts.families()}
    assert {counter.name for counter in parts.counters} >= {"quantgate_notifications_total"}


async def test_its_tasks_run_until_they_are_cancelled(parts: RolloutParts) -> None:
    """Turns, notifications, edges; each named."""
    tasks = parts.tasks(asyncio.get_running_loop())
    await asyncio.sleep(0)
    assert {task.get_name() for task in tasks} == {"rollouts", "webhooks", "edges"}
    assert not any(task.done() for task in tasks)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
