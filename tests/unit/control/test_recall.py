"""Answers that feedback speaks of and memory does not know are found on record."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from sqlalchemy import Engine

from gateway.control import recall as module
from gateway.control.archive import Archive
from gateway.control.joining import Joining
from gateway.control.recall import PATIENCE_S, Recall
from gateway.model.messages import Feedback
from gateway.store import aftermath
from gateway.store.aftermath import Consequence
from gateway.store.engine import open_engine, url_of
from gateway.store.migrate import upgrade
from tests.unit.dataplane.outcome_values import make_outcome
from tests.unit.store.outcome_rows import Record, put

AT = 1_700_000_000.0


class Searched:
    """A joiner, an archive over a real SQLite file, and the search between them."""

    def __init__(self, folder: Path) -> None:
        self.kept: list[Consequence] = []
        self.now = AT
        self.joining = Joining(self.kept.append)
        self.archive = Archive(folder, lambda: self.now, lambda: self.now)
        self.recall = Recall(self.joining, self.archive, lambda: self.now, every_s=0.001)

    def says(self, request_id: str, score: float = 0.0) -> None:
        self.joining.take_feedback(Feedback(0, self.now, "acme", request_id, "", score))


@pytest.fixture
def searched(tmp_path: Path) -> Searched:
    """Nothing said yet; the database is not open."""
    return Searched(tmp_path)


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    """The database with one answer."""
    opened = open_engine(url_of("", tmp_path))
    upgrade(opened)
    put(opened, Record(make_outcome(request_id="old", at=AT - 60, tenant="acme", bucket="b", pool="int4")))
    return opened


async def test_feedback_counts_for_an_answer_on_record(searched: Searched, engine: Engine) -> None:
    """Once its own outcome has had the time to come."""
    searched.archive.engine = engine
    searched.says("old")
    await searched.recall.once()
    assert searched.kept == []
    searched.now += PATIENCE_S
    await searched.recall.once()
    assert [(found.request_id, found.pool, found.score) for found in searched.kept] == [("old", "int4", 0.0)]
    searched.says("old")
    assert len(searched.kept) == 1
    assert searched.joining.ignored.rows[("repeated",)][0] == 1


async def test_a_database_that_is_away_is_asked_again(searched: Searched, engine: Engine, tmp_path: Path) -> None:
    """Not open yet, or broken: the feedback waits on."""
    searched.says("old")
    searched.now += PATIENCE_S
    await searched.recall.once()
    broken = open_engine(url_of("sqlite://", tmp_path))
    searched.archive.engine = broken
    await searched.recall.once()
    assert searched.joining.waiting == 1
    searched.archive.engine = engine
    looking = asyncio.create_task(searched.recall.run())
    async with asyncio.timeout(20):
        while searched.joining.waiting:
            await asyncio.sleep(0.01)
    looking.cancel()
    assert len(searched.kept) == 1


async def test_unknown_ids_keep_nobody_from_being_found(
    searched: Searched, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many stand before it, and never all in one statement."""
    searched.archive.engine = engine
    asked: list[int] = []

    def answered(engine: Engine, request_ids: Sequence[str]) -> list[aftermath.Answered]:
        asked.append(len(request_ids))
        return real(engine, request_ids)

    real = aftermath.answered
    monkeypatch.setattr(module.aftermath, "answered", answered)
    for number in range(1_200):
        searched.says(f"nobody-{number}")
    searched.says("old")
    searched.now += PATIENCE_S
    await searched.recall.once()
    assert asked == [500, 500, 201]
    assert [found.request_id for found in searched.kept] == ["old"]
