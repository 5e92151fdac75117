"""Changes and readings never wait long for a database; what came too late is found again."""

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest
from sqlalchemy.exc import OperationalError

from gateway.control import rollouts_storing
from gateway.control.rollouts_keeping import Kept
from gateway.control.rollouts_storing import News, Storing
from gateway.core.rollout import EventKind, Standing
from gateway.store.rollouts import Change
from tests.unit.control.test_rollouts_keeping import NEW, change

BEGUN = change(NEW, EventKind.BEGIN)
FAILED = change(BEGUN.standing, EventKind.FAIL)


class SlowKeeper:
    """A keeper whose database answers when ``answer`` is set."""

    def __init__(self) -> None:
        self.answer = threading.Event()
        self.answer.set()
        self.ends = Kept.STORED
        self.lost: list[Change] = []
        self.rows: list[Standing] = []
        self.owing: list[Change] = []
        self.asked: list[dict[tuple[str, str], int]] = []
        self.broken = False

    def commit(self, change: Change, *, tightens: bool) -> Kept:
        assert self.answer.wait(20)
        return self.ends

    def owe(self, change: Change) -> None:
        self.owing.append(change)

    def settle(self, standings: list[Standing]) -> list[Change]:
        assert self.answer.wait(20)
        if self.broken:
            raise OperationalError("select", {}, Exception("gone"))
        lost, self.lost = self.lost, []
        return lost

    def newer(self, known: dict[tuple[str, str], int]) -> list[Standing]:
        self.asked.append(known)
        return [one for one in self.rows if one.version > known.get((one.identity, one.bucket), 0)]


@pytest.fixture
async def keeper(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SlowKeeper]:
    """With hardly any patience for it."""
    monkeypatch.setattr(rollouts_storing, "STORE_S", 0.02)
    made = SlowKeeper()
    yield made
    made.answer.set()


def storing(keeper: SlowKeeper) -> Storing:
    return Storing(keeper)  # type: ignore[arg-type]


async def settled(found: Storing) -> None:
    """Everything that is under way has ended."""
    tasks = [*found._late, *([found._reading] if found._reading is not None else [])]
    await asyncio.wait(tasks, timeout=20) if tasks else None


@pytest.mark.parametrize("ends", [Kept.STORED, Kept.OVERTAKEN, Kept.REFUSED, Kept.OWED])
async def test_a_database_that_answers_has_the_word(keeper: SlowKeeper, ends: Kept) -> None:
    """As the keeper says."""
    keeper.ends = ends
    assert await storing(keeper).store(BEGUN, tightens=False) is ends
    assert ends.acts == (ends in (Kept.STORED, Kept.OWED))


async def test_out_of_a_hanging_database_a_pool_goes_and_none_comes_in(keeper: SlowKeeper) -> None:
    """A rollback acts although a beginning still hangs before it, and so does every further one."""
    keeper.answer.clear()
    found = storing(keeper)
    assert await found.store(BEGUN, tightens=False) is Kept.REFUSED
    assert await found.store(FAILED, tightens=True) is Kept.OWED
    assert await found.store(BEGUN, tightens=False) is Kept.REFUSED
    assert keeper.owing == [FAILED]
    keeper.answer.set()
    await settled(found)
    assert await found.store(BEGUN, tightens=False) is Kept.STORED


async def test_a_rollback_that_hangs_acts_and_is_told_if_it_was_overtaken(keeper: SlowKeeper) -> None:
    """By the time the database has answered, another gateway's change stands there."""
    keeper.answer.clear()
    found = storing(keeper)
    assert await found.store(FAILED, tightens=True) is Kept.OWED
    assert await found.news([FAILED.standing]) == News()
    keeper.ends = Kept.OVERTAKEN
    keeper.rows = [change(BEGUN.standing, EventKind.HOLD).standing]
    keeper.answer.set()
    await settled(found)
    assert await found.news([FAILED.standing]) == News()  # what was read before anybody knew
    await settled(found)
    assert await found.news([FAILED.standing]) == News(tuple(keeper.rows), (FAILED,))
    assert await found.news([FAILED.standing]) == News()


async def test_a_hanging_reading_is_waited_for_once(keeper: SlowKeeper) -> None:
    """The judge's turns go on; what it read comes with a later one."""
    keeper.answer.clear()
    keeper.rows = [BEGUN.standing]
    found = storing(keeper)
    assert await found.news([]) == News()
    assert await found.news([]) == News()
    keeper.answer.set()
    await settled(found)
    assert await found.news([]) == News((BEGUN.standing,))
    assert len(keeper.asked) == 1


async def test_what_was_owed_and_overtaken_is_read_again(keeper: SlowKeeper) -> None:
    """Whatever version it has here."""
    keeper.lost, keeper.rows = [FAILED], [BEGUN.standing]
    assert await storing(keeper).news([FAILED.standing]) == News((BEGUN.standing,), (FAILED,))


async def test_a_database_that_fails_has_no_news(keeper: SlowKeeper) -> None:
    """The next reading tries again."""
    keeper.broken = True
    found = storing(keeper)
    assert await found.news([]) == News()
    keeper.broken, keeper.rows = False, [BEGUN.standing]
    assert await found.news([]) == News((BEGUN.standing,))
