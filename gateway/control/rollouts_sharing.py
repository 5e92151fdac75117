"""Evidence of several gateways: each reports the blocks that it has closed, and all are judged by the sum.

Owns the exchange over the database, once a turn: our report behind the others', then all that came since, merged into
blocks that are complete. Every gateway reads the same reports in the same order, so their copies of a meter trip on the
same block. With SQLite there is one gateway, and its own blocks are all there is. While the database does not answer
for ``ALONE_S``, what is seen here is judged alone: a bad pool must not stay in for want of a database. When it answers
again, the meters go back to where they were, and what was judged alone is reported and judged as a part of the whole.
Called by the service.
"""

import asyncio
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from math import inf
from typing import NamedTuple, TypeVar

import msgspec
import structlog
from sqlalchemy import Engine as Database
from sqlalchemy.exc import SQLAlchemyError

from gateway.control.rollouts import Engine
from gateway.control.rollouts_clock import fed_until, is_of_before
from gateway.control.rollouts_names import Names, moved
from gateway.control.rollouts_values import EngineState
from gateway.core.evidence import (
    Judge,
    JudgeState,
    KeyedBlock,
    Merger,
    Report,
    UnknownSeriesError,
    Watched,
)
from gateway.core.evidence.setting import AHEAD_S
from gateway.store import reports
from gateway.store.reports import Meters

WAIT_S = 1.0
ALONE_S = 5.0
REPLAY_S = 900.0
"""How far back a gateway reads that joins: longer than any guard's block stays open."""
KEEP_S = 1_800.0
METERS_S = 60.0
WAITING_MOST = 20_000

T = TypeVar("T")

_log = structlog.get_logger("control.rollouts_sharing")


class Heard(NamedTuple):
    """What an exchange brought: reports in their order up to a position, and others' meters for who joins."""

    position: int
    reports: tuple[Report, ...]
    meters: EngineState | None = None


class Sharing:
    """``process`` names this gateway among the others, also after a restart."""

    def __init__(self, database: Callable[[], Database | None], process: str, *, always: bool = False) -> None:
        self.merger = Merger()
        self.alone = False
        self._database = database
        self._process = process
        self._always = always
        self._names = Names()
        self._waiting: list[tuple[str, KeyedBlock]] = []
        self._sent = 0
        self._fed = 0  # of those that wait, the first so many were judged alone
        self._alone_since_s: float | None = None
        self._before: JudgeState | None = None  # the meters at that moment, as long as all since then is kept
        self._position: int | None = None
        self._was_ahead = False
        self._joins = True  # what is under way with the database begins where others' meters stand
        self._work: asyncio.Task[Heard] | None = None
        self._answered_s: float | None = None
        self._metered_s = 0.0
        self._set: tuple[float, float] | None = None  # what this gateway's clock was set from and to
        self._set_by_s = 0.0  # and by how much while it waited
        self._was_set_back = self._says_set_back = False  # and has not told the others; tells them now

    @property
    def shared(self) -> bool:
        """Whether other gateways may be on the same database."""
        database = self._database()
        if database is None:
            return self._position is not None  # it was there, and is away
        return self._always or database.dialect.name == "postgresql"

    async def exchange(self, engine: Engine, blocks: Sequence[KeyedBlock], now_s: float) -> list[KeyedBlock]:
        """The blocks that are to be fed now, given those that were closed here."""
        if not self.shared:
            return [*self._own(), *blocks]
        watched = self._names.of(engine.judge, engine.salt)
        self._waiting += [(self._names.name(block.key), block) for block in blocks]
        work = self._work or self._talk_to_others(engine, now_s)
        self._set_by_s = 0.0
        await asyncio.wait([work], timeout=WAIT_S)
        now_s += self._set_by_s
        heard = self._heard()
        if heard is None:
            return self._without_others(engine, now_s)
        self._answered_s = now_s
        self._go_back(engine)
        self._before, self._alone_since_s = None, None
        self._be_alone(False)
        return self._merged(engine, heard, watched, now_s)

    def shift(self, engine: Engine, was_s: float, now_s: float) -> None:
        """The clock was set. Meters count by the slowest clock of all that are on the database, if there are others."""
        step_s, others = now_s - was_s, self.shared and self.merger.alive > 1
        self._go_back(engine)  # the meters of then move along as well, and what was judged alone is judged again
        engine.shift(was_s, now_s, meters=not others)
        if self._before is not None:
            self._before = engine.judge.state()
        watched = self._names.of(engine.judge, engine.salt)
        self._waiting = [(name, moved(block, watched.get(name), was_s, now_s)) for name, block in self._waiting]
        if not others:
            self.merger.shift(watched, was_s, now_s)
        self._metered_s += step_s
        self._set_by_s += step_s
        self._set = (was_s, now_s)
        self._was_set_back = self._was_set_back or step_s < 0.0
        self._answered_s = None if self._answered_s is None else self._answered_s + step_s
        self._alone_since_s = None if self._alone_since_s is None else self._alone_since_s + step_s

    async def leave(self, engine: Engine, now_s: float) -> None:
        """Say that nobody needs to wait for this gateway any more."""
        if self.shared and self._work is None and self._position is not None and not self.alone:
            self._names.of(engine.judge, engine.salt)
            await asyncio.wait([self._talk_to_others(engine, now_s, leaving=True)], timeout=WAIT_S)

    def _without_others(self, engine: Engine, now_s: float) -> list[KeyedBlock]:
        """What to feed while the database does not answer: nothing for a while, then what is seen here."""
        self._answered_s = now_s if self._answered_s is None else self._answered_s
        alone = now_s - self._answered_s > ALONE_S or len(self._waiting) > WAITING_MOST
        if alone and not self.alone:
            self._alone_since_s, self._before = now_s, engine.judge.state()
        self._be_alone(alone)
        if not alone:
            return []
        if self._before is None or len(self._waiting) > WAITING_MOST:
            return self._own()  # too much to be kept: it counts here alone
        own = [block for _, block in self._waiting[self._fed :]]
        self._fed = len(self._waiting)
        return own

    def _go_back(self, engine: Engine) -> None:
        """Take back what was judged alone: it was kept, and the others are told of it now."""
        self._fed = 0
        if self._before is not None:
            engine.judge.go_back(self._before)
            for run in engine.runs.values():
                run.forget_steps()

    def _be_alone(self, alone: bool) -> None:
        if alone is not self.alone:
            self.alone = alone
            _log.warning("evidence_judged_alone" if alone else "evidence_shared_again")

    def _talk_to_others(self, engine: Engine, now_s: float, *, leaving: bool = False) -> asyncio.Task[Heard]:
        held = {self._names.name(key): first for key, first in engine.judge.held(now_s).items()}
        blocks = tuple((name, block.record) for name, block in self._waiting)
        # Also where it was while control was down: what others have of this gateway beyond now was another time.
        set_back = self._was_set_back or (self._position is None and engine.was_ahead)
        report, state = Report(self._process, now_s, blocks, held, leaving, set_back), None
        self._was_set_back, self._says_set_back = False, set_back
        self._sent = len(blocks)
        if self._position is not None and not self.alone and now_s - self._metered_s >= METERS_S:
            self._metered_s, state = now_s, engine.state(now_s, whole=False)
        since_s = self._alone_since_s
        # Away for longer than is read back: others' meters are ahead of all that could still be read.
        self._was_ahead = engine.was_ahead
        self._joins = self._position is None or (since_s is not None and now_s - since_s > REPLAY_S)
        metered_s = engine.metered_s if since_s is None else since_s
        self._work = asyncio.create_task(asyncio.to_thread(self._talk, report, state, metered_s), name="share")
        return self._work

    def _heard(self) -> Heard | None:
        """What the exchange brought, if it is through and did not fail."""
        if self._work is None or not self._work.done():
            return None
        work, self._work = self._work, None
        try:
            heard = work.result()
        except (SQLAlchemyError, OSError) as error:
            _log.warning("evidence_not_shared", error=type(error).__name__)
            self._was_set_back = self._was_set_back or self._says_set_back
            return None
        del self._waiting[: self._sent]
        self._sent = 0
        return heard

    def _merged(self, engine: Engine, heard: Heard, watched: Mapping[str, Watched], now_s: float) -> list[KeyedBlock]:
        joins, self._position = self._joins, heard.position
        if joins and heard.meters is not None and fed_until(heard.meters.judge) <= now_s + AHEAD_S:
            engine.take_over(heard.meters, now_s)
        reports = self._placed(heard.reports, watched, now_s)
        found: list[KeyedBlock] = []
        for one in (one for report in reports for one in self.merger.take(report, watched)):
            if isinstance(one, KeyedBlock):
                found.append(one)
                continue
            with suppress(UnknownSeriesError):  # another policy came into force meanwhile
                series = engine.judge.series(one.key)
                # Others' meters have followed already; its own, of before a restart, may not have.
                if not joins or series.meter.end_s > now_s + AHEAD_S:
                    series.follow(one.was, one.now)
                    found = [one.block(block) for block in found]
        # What was reported before a gateway joined is read again, and is in its meters already.
        return [block for block in found if not joins or _is_new(engine.judge, block, now_s)]

    def _placed(self, reports: Sequence[Report], watched: Mapping[str, Watched], now_s: float) -> Sequence[Report]:
        """Nobody else counts by what this gateway said before its clock was set: it was said by the clock of now."""
        if self._set is None or self.merger.alive > 1:
            return reports
        was_s, set_s = self._set
        return [
            report.shifted(watched, was_s, set_s)
            if report.process == self._process and is_of_before(report.at_s, was_s, set_s, now_s)
            else report
            for report in reports
        ]

    def _own(self) -> list[KeyedBlock]:
        """What waits and was not judged yet, to be judged alone; nothing of it is told any more."""
        own = [block for _, block in self._waiting[self._fed :]]
        self._waiting.clear()
        self._sent = self._fed = 0
        self._before = None
        return own

    # in a thread

    def _talk(self, report: Report, state: EngineState | None, metered_s: float) -> Heard:
        database = self._database()
        if database is None:
            raise OSError("the database is away")
        position, meters = self._position, None
        if self._joins or position is None:
            # What a clock said that was ahead would be taken for news: it lies after all that the meters have seen.
            since_s = report.at_s - REPLAY_S if not self._was_ahead else inf
            position = reports.position_at(database, since_s)
            meters = _newer_meters(database, metered_s)
        # If this fails it may have been written all the same: said twice counts once.
        reports.append(database, report.at_s, _packed(report))
        found: list[Report] = []
        while rows := reports.read(database, position):
            position = rows[-1].position
            found += [decoded for row in rows if (decoded := _decoded(row.body, Report)) is not None]
        if state is not None:
            _leave_meters(database, state)
        return Heard(position, tuple(found), meters)


def _is_new(judge: Judge, block: KeyedBlock, now_s: float) -> bool:
    """Neither judged already, nor of a clock that was ahead and was judged as what is over now."""
    try:
        series = judge.series(block.key)
        return series.meter.block < block.record.number <= series.timeline.number_at(now_s + AHEAD_S)
    except UnknownSeriesError:  # another policy came into force meanwhile
        return False


def _newer_meters(database: Database, metered_s: float) -> EngineState | None:
    kept = reports.meters(database)
    return _decoded(kept.body, EngineState) if kept is not None and kept.at > metered_s + METERS_S else None


def _leave_meters(database: Database, state: EngineState) -> None:
    """For gateways that join; one of all that run does it. With it goes what nobody needs any more."""
    newest = reports.meters(database)
    if newest is None or abs(state.at_s - newest.at) >= METERS_S:  # or left by a clock that was ahead
        reports.put_meters(database, Meters(state.at_s, _packed(state)))
    reports.forget(database, state.at_s, KEEP_S)


def _packed(value: object) -> bytes:
    return zlib.compress(msgspec.msgpack.encode(value), 1)  # a fifth of the size: the names repeat


def _decoded(body: bytes, kind: type[T]) -> T | None:
    try:
        return msgspec.msgpack.decode(zlib.decompress(body), type=kind)
    except (msgspec.MsgspecError, zlib.error) as error:  # another version's; its own gateways understand it
        _log.warning("evidence_not_understood", what=kind.__name__, error=str(error))
        return None
