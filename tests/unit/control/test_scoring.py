"""The checks' stage, with real processes: every outcome comes out once, whatever happens to a scorer."""

import os
import signal
from collections.abc import AsyncIterator

import pytest

from gateway.control import scoring as module
from gateway.control.scoring import Scoring
from gateway.model.enums import Result
from tests.unit.control.conftest import outcome
from tests.unit.control.exchanges import Ear, batch, captured, until


@pytest.fixture
async def stage() -> AsyncIterator[tuple[Scoring, Ear]]:
    """One scorer process and somebody who listens."""
    made, ear = Scoring(1), Ear()
    made.subscribe("ear", ear)
    yield made, ear
    await made.stop(10.0)


def skipped(stage: Scoring) -> dict[str, float]:
    return {key[0]: row[0] for key, row in stage.skipped.rows.items() if row[0]}


async def test_answers_are_checked_in_a_process_of_their_own(stage: tuple[Scoring, Ear]) -> None:
    """Good and bad ones get their inspection, in the order in which they came; nothing is skipped."""
    scoring, ear = stage
    scoring.take_batch(batch(*(captured(f"r{n}", '{"a": 1}' if n % 2 else "none") for n in range(60))))
    heard = await ear.reach(60)
    assert [found.outcome.request_id for found in heard] == [f"r{n}" for n in range(60)]
    assert [found.inspection.ok for found in heard if found.inspection] == [bool(n % 2) for n in range(60)]
    assert all(found.trace is not None for found in heard)
    assert skipped(scoring) == {}


async def test_a_killed_scorer_costs_its_batches_their_checks_and_nothing_else(stage: tuple[Scoring, Ear]) -> None:
    """Its outcomes go on unchecked and are counted; the next ones find a new process."""
    scoring, ear = stage
    scoring.take_batch(batch(captured("before")))
    await ear.reach(1)
    assert scoring._pool is not None
    (pid,) = scoring._pool._processes
    os.kill(pid, signal.SIGSTOP)  # so that what follows is surely under way when it dies
    scoring.take_batch(batch(*(captured(f"hit{n}") for n in range(30))))
    pool = scoring._pool  # a batch that comes to it after the death is found would get a new one
    await until(lambda: len(pool._pending_work_items) == len(scoring._under_way))
    os.kill(pid, signal.SIGKILL)
    await ear.reach(31)
    scoring.take_batch(batch(captured("after")))
    await ear.reach(32)
    assert ear.checked == {"before", "after"}
    assert skipped(scoring) == {"scorer_died": 30}


async def test_a_check_that_hangs_is_ended() -> None:
    """After its time the process is killed, its batch goes on unchecked, and a new process takes over."""
    scoring, ear = Scoring(1, score_s=120.0), Ear()
    scoring.subscribe("ear", ear)
    scoring.take_batch(batch(captured("before")))
    await ear.reach(1)
    assert scoring._pool is not None
    (pid,) = scoring._pool._processes
    os.kill(pid, signal.SIGSTOP)
    scoring._score_s = 0.2
    scoring.take_batch(batch(captured("hangs")))
    await ear.reach(2)
    scoring._score_s = 120.0
    scoring.take_batch(batch(captured("after")))
    await ear.reach(3)
    assert skipped(scoring) == {"too_slow": 1}
    assert ear.checked == {"before", "after"}
    await scoring.stop(10.0)


async def test_what_does_not_fit_goes_on_unchecked() -> None:
    """The queue is bounded in bytes; answers over the bound are counted and lost for the checks alone."""
    scoring, ear = Scoring(1, waiting_bytes=1000), Ear()
    scoring.subscribe("ear", ear)
    scoring.take_batch(batch(*(captured(f"r{n}") for n in range(40))))
    await ear.reach(40)
    assert len({found.outcome.request_id for found in ear.heard}) == 40
    assert skipped(scoring)["queue_full"] == 40 - len(ear.checked) > 0
    assert scoring._waiting_bytes == 0
    await scoring.stop(10.0)


async def test_what_carries_no_text_goes_straight_through() -> None:
    """Also answers that were cut, texts given up by a worker, and everything while the checks are off."""
    scoring, ear, plain = Scoring(0), Ear(), []
    scoring.subscribe("ear", ear, lambda batch: plain.extend(batch.request_id))
    cut = captured("cut", cut=True)
    scoring.take_batch(batch(outcome(request_id="plain"), cut, captured("off")))
    scoring.take_batch(batch(outcome(request_id="plainer"), outcome(request_id="plainest")))
    scoring.take_lost(7)
    assert plain == ["plain", "plainer", "plainest"]
    assert [found.outcome.request_id for found in ear.heard] == ["cut", "off"]
    assert all(found.inspection is None for found in ear.heard)
    assert skipped(scoring) == {"answer_too_long": 1, "off": 1, "worker_full": 7}


async def test_what_the_client_left_is_not_checked(stage: tuple[Scoring, Ear]) -> None:
    """Half a JSON object is no bad answer of the pool; nobody waits for it, and it comes out unchecked."""
    scoring, ear = stage
    left = captured("left", '{"a": ', result=Result.CLIENT_CANCELLED.value, status=499)
    scoring.take_batch(batch(left, captured("whole")))
    heard = await ear.reach(2)
    assert {found.outcome.request_id: found.inspection is None for found in heard} == {"left": True, "whole": False}
    assert skipped(scoring) == {"cancelled": 1}


async def test_stopping_gives_up_what_is_not_checked_in_time() -> None:
    """Nothing vanishes: what waits and what is under way comes out unchecked."""
    scoring, ear = Scoring(1), Ear()
    scoring.subscribe("ear", ear)
    scoring.take_batch(batch(captured("before")))
    await ear.reach(1)
    assert scoring._pool is not None
    (pid,) = scoring._pool._processes
    os.kill(pid, signal.SIGSTOP)
    scoring.take_batch(batch(*(captured(f"r{n}") for n in range(100))))
    await scoring.stop(0.05)
    os.kill(pid, signal.SIGKILL)
    assert len(ear.heard) == 101
    assert {found.outcome.request_id for found in ear.heard} == {"before", *(f"r{n}" for n in range(100))}
    assert skipped(scoring) == {"stopping": 100}


async def test_a_fault_of_our_own_loses_no_outcome(monkeypatch: pytest.MonkeyPatch) -> None:
    """A result that cannot be read is counted as a skipped check."""
    scoring, ear = Scoring(1), Ear()
    scoring.subscribe("ear", ear)
    monkeypatch.setattr(module.scorer_process, "decode", lambda _: [])
    scoring.take_batch(batch(captured("r")))
    await ear.reach(1)
    assert skipped(scoring) == {"failed": 1}
    await scoring.stop(10.0)


async def test_a_subscriber_that_fails_takes_nothing_from_the_others() -> None:
    """It is told in the log."""
    scoring, ear = Scoring(0), Ear()
    plain: list[str] = []
    scoring.subscribe("broken", lambda _: 1 / 0, lambda _: 1 / 0)  # type: ignore[arg-type, return-value]
    scoring.subscribe("ear", ear, lambda batch: plain.extend(batch.request_id))
    scoring.take_batch(batch(outcome(request_id="plain"), captured("captured")))
    assert (plain, [found.outcome.request_id for found in ear.heard]) == (["plain"], ["captured"])
