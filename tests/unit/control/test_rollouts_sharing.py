"""Gateways on one database judge by the sum of what they saw, through kills, late joiners and a database that goes."""

import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import msgspec
import pytest
from sqlalchemy import Engine as Database

from gateway.control import rollouts_sharing
from gateway.control.rollouts_gauges import rollout_families
from gateway.control.rollouts_service import RolloutService
from gateway.control.rollouts_sharing import ALONE_S, METERS_S, Sharing
from gateway.control.scoring import Scored
from gateway.control.webhooks import Webhooks
from gateway.core.evidence import SeriesKey
from gateway.core.rollout import Standing, State
from gateway.model.messages import Start, Starts
from gateway.store import reports, rollouts
from gateway.store.engine import open_engine, url_of
from gateway.store.migrate import upgrade
from tests.unit.control.rollout_rig import START_S, EngineRig, World, inspection, request_of, rollout_policy
from tests.unit.control.rollout_served import BUCKET, OVERSIGHT

TABLE = rollout_policy()
NEVER_PASSED = rollout_policy(stages="[{weight: 50%, at_least: {requests: 100000}}]")
JSON = SeriesKey("json", BUCKET, "int4")


class Traffic:
    """The same requests whoever serves them: half on each pool, every so-many'th answer of the candidate bad."""

    def __init__(self, rate: int = 20) -> None:
        self.every_bad = 0
        self._rate = rate
        self._count = self._candidates = 0

    def second(self, at_s: float) -> list[Scored]:
        """One second of it."""
        found = []
        for _ in range(self._rate):
            self._count += 1
            candidate = self._count % 4 in (0, 1)
            self._candidates += candidate
            bad = candidate and self.every_bad > 0 and self._candidates % self.every_bad == 0
            request = request_of(BUCKET, "int4" if candidate else "bf16", at_s, f"q{self._count}")
            found.append(Scored(request, inspection(json=not bad)))
        return found


def take(service: RolloutService, batch: Sequence[Scored], at_s: float) -> None:
    """What workers tell of a batch."""
    engine = service.engine
    starts: dict[str, int] = {}
    for scored in batch:
        starts[scored.outcome.kind.pool] = starts.get(scored.outcome.kind.pool, 0) + 1
    engine.take_starts(Starts(0, [Start(int(at_s), BUCKET, pool, number) for pool, number in starts.items()]))
    engine.take_outcomes([scored.outcome for scored in batch], at_s)
    engine.take_scored(list(batch), at_s)


class Fleet:
    """Several controls on one database, each with a folder of its own, and a clock that all share."""

    def __init__(self, folder: Path, number: int) -> None:
        self.folder = folder
        self.now_s = START_S
        self.database: Database | None = open_engine(url_of(None, folder))
        upgrade(self.database)
        self.away: set[int] = set()
        self.ahead_s = dict.fromkeys(range(number), 0.0)  # by how much each one's clock is
        self.services = [self.start(index) for index in range(number)]

    def start(self, index: int) -> RolloutService:
        """A fresh control over its folder."""
        folder = self.folder / str(index)
        folder.mkdir(exist_ok=True)
        webhooks = Webhooks(lambda: self.now_s)

        def database() -> Database | None:
            return None if index in self.away else self.database

        service = RolloutService(
            folder,
            database=database,
            broadcast=lambda _: None,
            surroundings=World(),
            webhooks=webhooks,
            wall=lambda: self.now_s + self.ahead_s.get(index, 0.0),
            monotonic=lambda: self.now_s,
        )
        service.sharing = Sharing(database, service.keeper.name(), always=True)
        service.apply(TABLE, OVERSIGHT, {"int4": "r-a", "bf16": "r-b"})
        service.take_up()
        return service

    async def second(self, batch: Sequence[Scored] = (), share: Callable[[int], int] | None = None) -> None:
        """A second of traffic, spread over the controls, and a turn of each."""
        which = share or (lambda number: number % len(self.services))
        for index, service in enumerate(self.services):
            at_s = self.now_s + self.ahead_s.get(index, 0.0)
            service.clock()
            own = [one for number, one in enumerate(batch) if which(number) == index]
            take(service, [one._replace(outcome=msgspec.structs.replace(one.outcome, at=at_s)) for one in own], at_s)
        self.now_s += 1.0
        for service in self.services:
            await service.turn()

    async def idle(self, seconds: int) -> None:
        """Nothing but turns."""
        for _ in range(seconds):
            await self.second()

    def standing(self, index: int) -> Standing | None:
        """Of the bucket, as that control has it."""
        return self.services[index].engine.standings.get((TABLE.rollouts[0].identity, BUCKET))

    def all_at(self, state: State) -> bool:
        """Whether every control has it there."""
        return all((one := self.standing(i)) is not None and one.state is state for i in range(len(self.services)))

    async def until(self, state: State, traffic: Traffic, most: int = 400) -> int:
        """Seconds of traffic until all controls have the bucket in that state."""
        for second in range(most):
            if self.all_at(state):
                return second
            await self.second(traffic.second(self.now_s))
        raise AssertionError([self.standing(index) for index in range(len(self.services))])

    async def begun(self, traffic: Traffic) -> None:
        """The bucket is met and its first stage runs everywhere; then everything that was under way is judged."""
        await self.second()  # the stored standings are read
        await self.second(traffic.second(self.now_s))
        await self.idle(20)
        assert self.all_at(State.STEPPING)


@pytest.fixture
async def fleet(tmp_path: Path) -> AsyncIterator[Callable[[int], Fleet]]:
    """Made by the number of its controls."""
    made: list[Fleet] = []

    def make(number: int) -> Fleet:
        folder = tmp_path / f"fleet-{len(made)}"
        folder.mkdir()
        made.append(Fleet(folder, number))
        return made[-1]

    yield make
    for one in made:
        if one.database is not None:
            one.database.dispose()


async def tripped(fleet: Fleet, share: Callable[[int], int] | None = None) -> tuple[int, int, float]:
    """Seconds until the bucket is out everywhere when one answer in twelve is bad; the block and the money it took."""
    traffic = Traffic()
    await fleet.begun(traffic)
    began_s, traffic.every_bad = fleet.now_s, 12
    for second in range(600):
        if fleet.all_at(State.ROLLED_BACK):
            trip = fleet.services[0].engine.judge.series(JSON).trip
            assert trip is not None
            return second, int(trip.block - began_s), trip.total
        await fleet.second(traffic.second(fleet.now_s), share)
    raise AssertionError("it never tripped")


async def test_two_that_see_half_each_trip_as_one_that_sees_all(fleet: Callable[[int], Fleet]) -> None:
    """On the same block, with the same money; a part of the traffic alone takes longer."""
    alone_s, alone_block, alone_total = await tripped(fleet(1))
    both_s, both_block, both_total = await tripped(fleet(2))
    assert both_block == alone_block
    assert both_total == pytest.approx(alone_total, rel=1e-3)
    assert both_s - alone_s <= 4
    part_s, part_block, _ = await tripped(fleet(1), share=lambda number: number // 4 % 2)
    assert part_block > alone_block
    assert part_s > both_s


async def test_uneven_parts_and_three_of_them_make_the_same_whole(fleet: Callable[[int], Fleet]) -> None:
    """However the balancer in front shares out the requests."""
    _, block, total = await tripped(fleet(1))
    _, parts_block, parts_total = await tripped(fleet(3), share=lambda number: 0 if number < 15 else 1 + number % 2)
    assert (parts_block, parts_total) == (block, pytest.approx(total, rel=1e-3))


async def test_one_rollback_is_on_record_though_all_saw_it(fleet: Callable[[int], Fleet]) -> None:
    """Whoever is first; the others take it up."""
    many = fleet(3)
    await tripped(many)
    assert many.database is not None
    events = [row.event for row in rollouts.history(many.database)]
    assert events == ["fail", "begin"]


async def test_a_stage_passes_on_the_evidence_of_all(fleet: Callable[[int], Fleet]) -> None:
    """In about the time that one control with all the traffic needs."""
    seconds = []
    for number in (1, 2):
        found = fleet(number)
        traffic = Traffic()
        await found.begun(traffic)
        for second in range(400):
            if all((one := found.standing(i)) is not None and one.stage == 1 for i in range(number)):
                seconds.append(second)
                break
            await found.second(traffic.second(found.now_s))
    assert len(seconds) == 2
    assert abs(seconds[0] - seconds[1]) <= 4


async def test_a_killed_control_is_not_waited_for_and_says_nothing_twice(fleet: Callable[[int], Fleet]) -> None:
    """Its blocks count once, though what it had saved is older than what it had reported."""
    both, traffic = fleet(2), Traffic()
    await both.begun(traffic)
    for _ in range(20):
        await both.second(traffic.second(both.now_s))
    saved = {path.name: path.read_bytes() for path in (both.folder / "1").iterdir()}
    for _ in range(3):
        await both.second(traffic.second(both.now_s))
    for name, data in saved.items():  # what a kill would have left
        (both.folder / "1" / name).write_bytes(data)
    both.services[1] = both.start(1)
    await both.idle(15)
    counted = [service.engine.judge.series(JSON).evidence.number for service in both.services]
    assert 21 * 10 <= counted[0] <= 23 * 10  # what it had seen and not reported is lost, and nothing is there twice
    assert counted[1] == counted[0]
    both.services.pop()
    traffic.every_bad = 1
    assert await both.until(State.ROLLED_BACK, traffic) < 40


async def test_a_killed_control_finds_its_open_blocks_and_says_nothing_twice(
    fleet: Callable[[int], Fleet], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Differences of both arms that it found, reported and had not stored yet are found again, of the same seconds."""
    stages = "[{weight: 50%, at_least: {requests: 100000}}]"
    guards = "\n  json: {metric: format_error_rate, margin_to_baseline: 2%, feed: product, block: 5s, deadline: 10s}\n"
    monkeypatch.setattr(sys.modules[__name__], "TABLE", rollout_policy(guards=guards, names="json", stages=stages))
    counted = {}
    for kills in (False, True):
        both, traffic = fleet(2), Traffic()
        await both.begun(traffic)
        for second in range(40):
            seen_by_both = second not in range(21, 25)
            await both.second(traffic.second(both.now_s), None if seen_by_both else lambda _: 0)
            if second == 20:
                await both.services[1]._save_meters()
                saved = {path.name: path.read_bytes() for path in (both.folder / "1").iterdir()}
            if kills and second == 24:
                for name, data in saved.items():
                    (both.folder / "1" / name).write_bytes(data)
                both.services[1] = both.start(1)
        await both.idle(30)
        found = [service.engine.judge.series(SeriesKey("json.margin", BUCKET, "int4")) for service in both.services]
        counted[kills] = [one.evidence.number for one in found]
    assert counted[False][0] > 300
    assert counted[True] == counted[False] == [counted[False][0]] * 2


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("ahead_s", [3_600.0, 300.0])
async def test_a_clock_that_was_ahead_and_is_set_back_hides_nothing(
    fleet: Callable[[int], Fleet], monkeypatch: pytest.MonkeyPatch, number: int, ahead_s: float
) -> None:
    """The last one's was. Alone on the database it goes on at once; beside others nothing it says is taken for said."""
    monkeypatch.setattr(sys.modules[__name__], "TABLE", NEVER_PASSED)
    found, traffic = fleet(number), Traffic()
    await found.begun(traffic)
    found.ahead_s[number - 1] = ahead_s
    for _ in range(40):
        await found.second(traffic.second(found.now_s))
    found.ahead_s[number - 1] = 0.0
    counted = found.services[0].engine.judge.series(JSON).evidence.number
    for _ in range(40):
        await found.second(traffic.second(found.now_s))
    await found.idle(15)
    series = [service.engine.judge.series(JSON) for service in found.services]
    assert len({one.evidence.number for one in series}) == 1
    assert series[0].evidence.number - counted >= 40 * 10 - 10, "but for what was on its way"
    assert series[0].evidence.number <= 80 * 10, "and nothing twice"
    traffic.every_bad = 1
    assert await found.until(State.ROLLED_BACK, traffic) < 20


async def test_a_restart_after_the_clock_was_set_back_counts_nothing_twice(
    fleet: Callable[[int], Fleet], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is on the database lies in the future of the meters, and is in them."""
    monkeypatch.setattr(sys.modules[__name__], "TABLE", NEVER_PASSED)
    found, traffic = fleet(1), Traffic()
    found.ahead_s[0] = 3_600.0
    await found.begun(traffic)
    for _ in range(40):
        await found.second(traffic.second(found.now_s))
    await found.services[0].stop()
    counted = found.services[0].engine.judge.series(JSON).evidence.number
    found.ahead_s[0] = 0.0
    found.services[0] = found.start(0)
    await found.idle(15)
    assert counted >= 390
    assert found.services[0].engine.judge.series(JSON).evidence.number == 40 * 10
    traffic.every_bad = 1
    assert await found.until(State.ROLLED_BACK, traffic) < 20


async def test_who_leaves_is_not_waited_for_at_all(fleet: Callable[[int], Fleet]) -> None:
    """It says so, with its last blocks."""
    both, traffic = fleet(2), Traffic()
    await both.begun(traffic)
    await both.second(traffic.second(both.now_s))
    assert both.services[0].sharing.merger.alive == 2
    families = rollout_families(both.services[0].engine, both.services[0].keeper, both.now_s, both.services[0].sharing)
    shown = {family.name: family.samples.get((), (None,))[0] for family in families}
    assert (shown["quantgate_rollout_gateways"], shown["quantgate_rollout_alone"]) == (2.0, 0.0)
    leaving = both.services.pop()
    await leaving.stop()
    await both.second()
    assert both.services[0].sharing.merger.alive == 1


async def test_who_joins_goes_on_from_the_others_meters(fleet: Callable[[int], Fleet]) -> None:
    """A fresh host finds the stage's evidence, and judges like the rest from then on."""
    found, traffic = fleet(1), Traffic(rate=4)
    await found.begun(traffic)
    for _ in range(int(METERS_S) + 15):
        await found.second(traffic.second(found.now_s))
    found.services.append(found.start(1))
    await found.idle(20)
    old, new = (service.engine.judge.series(JSON) for service in found.services)
    assert new.evidence.number == old.evidence.number == 2 * (int(METERS_S) + 15)
    assert new.meter.total == pytest.approx(old.meter.total, rel=1e-3)
    traffic.every_bad = 2
    await found.until(State.ROLLED_BACK, traffic)


async def test_meters_older_than_a_stage_do_not_pass_it(fleet: Callable[[int], Fleet]) -> None:
    """What was won at another share says nothing about this one."""
    found, traffic = fleet(1), Traffic()
    await found.begun(traffic)
    for _ in range(int(METERS_S) + 15):
        await found.second(traffic.second(found.now_s))
    standing = found.standing(0)
    assert standing is not None and found.database is not None
    late = msgspec.structs.replace(standing, stage_since_s=found.now_s + 5, version=standing.version + 1)
    engine = found.services[0].engine
    engine.restore([late], engine.state(found.now_s), found.now_s)
    assert engine.judge.series(JSON).evidence.number == 0


async def test_without_the_database_each_judges_what_it_sees(fleet: Callable[[int], Fleet]) -> None:
    """After a few seconds; and together again when it is back."""
    both, traffic = fleet(2), Traffic()
    await both.begun(traffic)
    both.away = {0, 1}
    for _ in range(int(ALONE_S) + 2):
        await both.second(traffic.second(both.now_s))
    assert all(service.sharing.alone for service in both.services)
    before = [service.engine.judge.series(JSON).evidence.number for service in both.services]
    assert all(number > 10 for number in before), before
    both.away = set()
    await both.second(traffic.second(both.now_s))
    assert not any(service.sharing.alone for service in both.services)
    both.away = {0, 1}
    traffic.every_bad = 1
    await both.until(State.ROLLED_BACK, traffic)


async def through_an_outage(found: Fleet, away: set[int], seconds: int, every_bad: int = 40) -> None:
    """Good traffic but for the outage, in which all bad answers are seen by the first control alone."""
    traffic = Traffic()
    await found.begun(traffic)
    found.away, traffic.every_bad = away, every_bad
    for _ in range(seconds):
        batch = traffic.second(found.now_s)
        bad = [one.inspection is not None and bool(one.inspection.failures) for one in batch]
        await found.second(batch, lambda n, bad=bad: 0 if bad[n] else n % len(found.services))  # type: ignore[misc]
    found.away, traffic.every_bad = set(), 0
    for _ in range(10):
        await found.second(traffic.second(found.now_s))
    await found.idle(15)


def stands_at(service: RolloutService, key: SeriesKey = JSON) -> tuple[object, ...]:
    """Money, evidence and counts of a series, and the blocks that its record tells of."""
    series = service.engine.judge.series(key)
    (run,) = service.engine.runs.values()
    told = [line[0] for line in run.history[key]]
    assert told == sorted(set(told)), "a block is told once"
    return series.meter.state().bets, series.evidence.state(), series.bad, told


@pytest.mark.parametrize("seconds", [3, int(ALONE_S) + 8])
async def test_after_an_outage_all_stand_where_one_stands_that_saw_everything(
    fleet: Callable[[int], Fleet], seconds: int
) -> None:
    """What each judged alone is taken back and judged as a part of the whole, so no copy keeps a luck of its own."""
    both, one = fleet(2), fleet(1)
    await through_an_outage(both, {0, 1}, seconds)
    await through_an_outage(one, set(), seconds)
    first, second = (stands_at(service) for service in both.services)
    assert first == second == stands_at(one.services[0])
    assert [service.sharing.merger.late for service in both.services] == [0, 0]


@pytest.mark.parametrize("read_back_s", [900.0, 10.0])
async def test_who_alone_was_away_goes_on_from_the_others_meters(
    fleet: Callable[[int], Fleet], monkeypatch: pytest.MonkeyPatch, read_back_s: float
) -> None:
    """The others went on without it, and what it saw meanwhile came too late; also where their reports are gone."""
    monkeypatch.setattr(rollouts_sharing, "REPLAY_S", read_back_s)
    monkeypatch.setattr(rollouts_sharing, "KEEP_S", 2 * read_back_s)
    monkeypatch.setattr(rollouts_sharing, "METERS_S", 5.0)
    both = fleet(2)
    await through_an_outage(both, {1}, 60, every_bad=100)
    first, second = (service.engine.judge.series(JSON) for service in both.services)
    assert second.meter.total == pytest.approx(first.meter.total, rel=1e-3)
    assert second.evidence.state() == first.evidence.state()


async def test_what_is_too_much_to_be_kept_counts_alone(
    fleet: Callable[[int], Fleet], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory is bounded: then each keeps what it judged, once, and they judge together from there on."""
    monkeypatch.setattr(rollouts_sharing, "WAITING_MOST", 100)
    both = fleet(2)
    await through_an_outage(both, {0, 1}, 20, every_bad=0)
    numbers = [service.engine.judge.series(JSON).evidence.number for service in both.services]
    # The last second of the outage was still to be judged when the database came back.
    assert sum(numbers) == 19 * 10 + 2 * 11 * 10, "the outage in one of them each, what came later in both"
    assert not any(service.sharing.alone or service.sharing._waiting for service in both.services)


async def test_a_trip_of_one_that_was_alone_is_not_taken_back(fleet: Callable[[int], Fleet]) -> None:
    """It was acted upon; when the database is back the others take it up, and nobody answers it twice."""
    both = fleet(2)
    await through_an_outage(both, {0, 1}, 30, every_bad=3)
    assert both.all_at(State.ROLLED_BACK)
    assert both.database is not None
    kinds = [one.event for one in rollouts.history(both.database, rollout="int4-all", bucket=BUCKET, most=50)]
    assert kinds.count("fail") == 1, kinds


async def test_a_database_that_hangs_holds_no_turn_up(
    fleet: Callable[[int], Fleet], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it says at last is taken in, and what was judged alone meanwhile is not judged again."""
    found, traffic = fleet(1), Traffic()
    await found.begun(traffic)
    monkeypatch.setattr(rollouts_sharing, "WAIT_S", 0.01)
    answer, append = threading.Event(), reports.append

    def slow(*arguments: object) -> int:
        assert answer.wait(20)
        return append(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(reports, "append", slow)
    for _ in range(int(ALONE_S) + 3):
        await found.second(traffic.second(found.now_s))
    sharing = found.services[0].sharing
    assert sharing.alone
    answer.set()
    assert sharing._work is not None
    await asyncio.wait([sharing._work], timeout=20)
    monkeypatch.setattr(rollouts_sharing, "WAIT_S", 5.0)
    await found.idle(5)
    assert not sharing.alone
    assert found.services[0].engine.judge.series(JSON).evidence.number == (int(ALONE_S) + 3) * 10


async def test_one_gateway_with_a_file_shares_with_nobody(fleet: Callable[[int], Fleet]) -> None:
    """Its own blocks are all there is, at once and without a report."""
    found, traffic = fleet(1), Traffic()
    found.services[0].sharing = Sharing(lambda: found.database, "a")
    await found.begun(traffic)
    assert not found.services[0].sharing.shared
    assert found.database is not None
    assert reports.read(found.database, 0) == []
    rig = EngineRig(TABLE)
    assert rig.engine.turn(rig.now_s) == []


async def test_reports_of_another_version_are_passed_over(fleet: Callable[[int], Fleet]) -> None:
    """Its own gateways understand them."""
    found, traffic = fleet(1), Traffic()
    await found.begun(traffic)
    assert found.database is not None
    reports.append(found.database, found.now_s, b"\xc1 nonsense")
    await found.second(traffic.second(found.now_s))
    await found.idle(3)
    assert not found.services[0].sharing.alone


async def test_a_clock_that_is_set_while_the_database_is_away_judges_nothing_twice(
    fleet: Callable[[int], Fleet], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was judged alone is taken back, moved along, and judged again."""
    monkeypatch.setattr(sys.modules[__name__], "TABLE", NEVER_PASSED)
    found, traffic = fleet(1), Traffic()
    await found.begun(traffic)
    for second in range(40):
        found.away = {0} if 5 <= second < 35 else set()
        found.ahead_s[0] = 3_600.0 if second >= 20 else 0.0
        await found.second(traffic.second(found.now_s))
    await found.idle(15)
    (run,) = found.services[0].engine.runs.values()
    assert 40 * 10 - 10 <= run.judge.series(JSON).evidence.number <= 40 * 10


@pytest.mark.parametrize("apart", [0, 7])
async def test_clocks_that_were_all_ahead_and_are_set_back_one_by_one_hide_nothing(
    fleet: Callable[[int], Fleet], monkeypatch: pytest.MonkeyPatch, apart: int
) -> None:
    """Whoever is first says so, and the meters of all follow it, from the same report on."""
    monkeypatch.setattr(sys.modules[__name__], "TABLE", NEVER_PASSED)
    both, traffic = fleet(2), Traffic()
    both.ahead_s = {0: 3_600.0, 1: 3_600.0}
    await both.begun(traffic)
    for _ in range(40):
        await both.second(traffic.second(both.now_s))
    for index in (1, 0):
        both.ahead_s[index] = 0.0
        for _ in range(apart):
            await both.second(traffic.second(both.now_s))
    for _ in range(30):
        await both.second(traffic.second(both.now_s))
    await both.idle(15)
    series = [service.engine.judge.series(JSON) for service in both.services]
    assert series[0].evidence.number == series[1].evidence.number
    assert series[0].meter.state() == series[1].meter.state()
    told = (40 + 30 + 2 * apart) * 10
    waits = apart * 5  # what the second one said while its clock was still ahead: an hour, then it counts
    assert told - waits - 20 <= series[0].evidence.number <= told, "and nothing twice"
    traffic.every_bad = 1
    assert await both.until(State.ROLLED_BACK, traffic) < 20


@pytest.mark.parametrize("ahead_s", [5.0, 200.0])
async def test_nothing_of_after_a_step_is_taken_for_said_before_it(
    fleet: Callable[[int], Fleet], monkeypatch: pytest.MonkeyPatch, ahead_s: float
) -> None:
    """Also when the clock shows again what it showed before it was set back."""
    monkeypatch.setattr(sys.modules[__name__], "TABLE", NEVER_PASSED)
    found, traffic = fleet(1), Traffic()
    found.ahead_s[0] = ahead_s
    await found.begun(traffic)
    for second in range(int(ahead_s) + 60):
        found.ahead_s[0] = ahead_s if second < 20 else 0.0
        await found.second(traffic.second(found.now_s))
    await found.idle(15)
    told = (int(ahead_s) + 60) * 10
    assert told - 20 <= found.services[0].engine.judge.series(JSON).evidence.number <= told
    assert found.services[0].sharing.merger.late <= 20


@pytest.mark.parametrize("step_s", [-20.0, 20.0])
async def test_a_step_while_each_judges_alone_leaves_the_whole_as_it_is(
    fleet: Callable[[int], Fleet], monkeypatch: pytest.MonkeyPatch, step_s: float
) -> None:
    """What was judged alone by the clock of before is a part of the whole, once, in every copy."""
    monkeypatch.setattr(sys.modules[__name__], "TABLE", NEVER_PASSED)
    both, traffic = fleet(2), Traffic()
    await both.begun(traffic)
    for second in range(60):
        both.away = {0, 1} if 5 <= second < 40 else set()
        both.ahead_s[0] = step_s if second >= 30 else 0.0
        await both.second(traffic.second(both.now_s))
    await both.idle(60)
    numbers = [service.engine.judge.series(JSON).evidence.number for service in both.services]
    assert numbers[0] == numbers[1]
    assert 600 - max(0.0, -step_s) * 5 <= numbers[0] <= 600, "but for seconds that the others had closed already"


async def test_a_clock_that_is_set_back_while_each_judges_alone_hides_nothing(
    fleet: Callable[[int], Fleet], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it has judged alone of the future does not close the blocks of now."""
    monkeypatch.setattr(sys.modules[__name__], "TABLE", NEVER_PASSED)
    both, traffic = fleet(2), Traffic()
    await both.begun(traffic)
    both.ahead_s[0] = 3_600.0
    for second in range(40):
        both.away = {0, 1} if second >= 20 else set()
        await both.second(traffic.second(both.now_s))
    both.ahead_s[0], traffic.every_bad = 0.0, 1
    assert await both.until(State.ROLLED_BACK, traffic) < 20


@pytest.mark.parametrize("then_s", [0.0, 3.0])
async def test_a_step_while_a_report_is_under_way_is_told_with_the_next(
    fleet: Callable[[int], Fleet], monkeypatch: pytest.MonkeyPatch, then_s: float
) -> None:
    """Or all would wait for an hour that is over; also where another step ahead follows at once."""
    monkeypatch.setattr(sys.modules[__name__], "TABLE", NEVER_PASSED)
    both, traffic = fleet(2), Traffic()
    both.ahead_s = {0: 3_600.0, 1: 3_600.0}
    await both.begun(traffic)
    for _ in range(20):
        await both.second(traffic.second(both.now_s))
    append = reports.append

    def slow(*arguments: object) -> int:
        for index, service in enumerate(both.services):
            if service.sharing._work is not None and both.ahead_s[index] == 3_600.0:
                for both.ahead_s[index] in (0.0, then_s):
                    service.clock()
        return append(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(reports, "append", slow)
    for _ in range(30):
        await both.second(traffic.second(both.now_s))
    assert both.ahead_s == {0: then_s, 1: then_s}
    traffic.every_bad = 1
    assert await both.until(State.ROLLED_BACK, traffic) < 20


async def test_a_clock_that_was_set_back_while_control_was_down_is_heard_by_the_others(
    fleet: Callable[[int], Fleet], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it says now of seconds that it has spoken of before the restart is no second word."""
    monkeypatch.setattr(sys.modules[__name__], "TABLE", NEVER_PASSED)
    both, traffic = fleet(2), Traffic()
    both.ahead_s[1] = 60.0
    await both.begun(traffic)
    for _ in range(70):
        await both.second(traffic.second(both.now_s))
    await both.services[1]._save_meters()
    both.ahead_s[1] = 0.0
    both.services[1] = both.start(1)
    await both.idle(2)
    before = both.services[0].engine.judge.series(JSON).evidence.number
    for _ in range(40):
        await both.second(traffic.second(both.now_s))
    await both.idle(70)
    counted = both.services[0].engine.judge.series(JSON).evidence.number
    assert counted == 110 * 10, (before, counted)


async def test_who_was_down_while_all_followed_a_clock_follows_it_too(
    fleet: Callable[[int], Fleet], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its stored meters are those of before, of an hour that nobody waits for any more."""
    monkeypatch.setattr(sys.modules[__name__], "TABLE", NEVER_PASSED)
    both, traffic = fleet(2), Traffic()
    await both.begun(traffic)
    both.away, both.ahead_s[1] = {0}, 3_600.0
    for _ in range(20):  # the other one goes on alone, by its clock
        await both.second(traffic.second(both.now_s))
    both.away = set()
    for _ in range(10):  # and it reads that
        await both.second(traffic.second(both.now_s))
    await both.services[0]._save_meters()
    both.away, both.ahead_s[1] = {0}, 0.0
    both.services[0] = both.start(0)
    for _ in range(5):
        await both.second(traffic.second(both.now_s))
    both.away = set()
    for _ in range(20):
        await both.second(traffic.second(both.now_s))
    ends = [service.engine.judge.series(JSON).meter.end_s for service in both.services]
    assert ends[1] - 1.0 <= ends[0] <= both.now_s
