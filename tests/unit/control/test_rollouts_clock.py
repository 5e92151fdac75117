"""A clock that is set, ahead or back, changes nothing of what evidence says, and blinds nobody."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from gateway.control.rollouts_clock import STAMPED_S, Clock, Since, Stamps, believed
from gateway.control.rollouts_service import RolloutService
from gateway.control.scoring import Scored
from gateway.control.webhooks import Webhooks
from gateway.core.consequence import Consequence
from gateway.core.evidence import SeriesKey
from gateway.core.evidence.setting import AHEAD_S
from gateway.core.rollout import Brake, EventKind, State, Tripped
from gateway.model.messages import Start, Starts
from gateway.model.table import Table
from gateway.store.engine import open_engine, url_of
from gateway.store.migrate import upgrade
from tests.unit.control.rollout_rig import START_S, EngineRig, World, inspection, request_of, rollout_policy
from tests.unit.control.rollout_served import BUCKET, OVERSIGHT
from tests.unit.control.test_rollouts_open import SECONDS, Control, Event, history, policy

HOUR = 3_600.0
TABLE = policy(margins=False)  # groups are drawn by their block's number, which is another one by another clock


class Time:
    """A wall clock that may be set, and a monotonic one that may not."""

    def __init__(self) -> None:
        self.wall_s, self.ticks_s = START_S, 50.0
        self.steps: list[tuple[float, float]] = []
        self.clock = Clock(lambda: self.wall_s, lambda: self.ticks_s, lambda was, now: self.steps.append((was, now)))

    def wait(self, seconds: float) -> None:
        """Time goes by."""
        self.wall_s += seconds
        self.ticks_s += seconds


def test_a_step_is_what_the_monotonic_clock_did_not_see() -> None:
    """Time that passes is none, however long nobody looked; nor is a clock that is being adjusted."""
    time = Time()
    for seconds in (0.0, 1.0, 5_000.0):
        time.wait(seconds)
        assert time.clock() == time.wall_s
    for _ in range(100):
        time.wait(1.0)
        time.wall_s += 0.01
        time.clock()
    assert time.steps == []
    time.wait(10.0)
    time.wall_s -= HOUR
    assert time.clock() == time.wall_s
    (step,) = time.steps
    assert step == pytest.approx((time.wall_s + HOUR, time.wall_s))


def test_a_process_that_is_stopped_between_two_looks_sees_no_step() -> None:
    """The looks are repeated until they are of one moment."""
    time, stops = Time(), [30.0]
    time.clock()

    def wall() -> float:
        now_s = time.wall_s
        if stops:
            time.wait(stops.pop())
        return now_s

    time.clock._wall = wall
    time.clock()
    stops.append(30.0)
    time.clock()
    time.clock()
    assert time.steps == []


def test_what_was_stamped_before_a_step_is_known_by_where_it_lies() -> None:
    """After a step ahead behind it, after a step back in the future; an hour later nothing comes any more."""
    stamps = Stamps()
    assert stamps.settled and stamps.moment(5.0) == 5.0
    stamps.stepped(1_000.0, 4_600.0)
    stamps.see(4_700.0)
    assert [stamps.moment(at_s) for at_s in (990.0, 4_600.0, 4_700.0)] == [4_590.0, 4_600.0, 4_700.0]
    stamps.stepped(8_000.0, 4_400.0)
    stamps.see(4_410.0)
    assert [stamps.moment(at_s) for at_s in (7_990.0, 4_405.0, 4_411.0)] == [4_390.0, 4_405.0, 4_411.0]
    stamps.see(4_400.0 + STAMPED_S + 1)
    assert stamps.settled


@pytest.mark.parametrize("first_s", [-HOUR, HOUR])
@pytest.mark.parametrize("second_s", [-HOUR, -3.0, 3.0, HOUR])
def test_each_step_counts_for_what_was_stamped_before_it(first_s: float, second_s: float) -> None:
    """A clock is often set twice: by an hour, and by seconds once it knows better."""
    stamps = Stamps()
    stamps.stepped(10_000.0, 10_000.0 + first_s)
    stamps.stepped(10_100.0 + first_s, 10_100.0 + first_s + second_s)
    now_s = 10_110.0 + first_s + second_s
    stamps.see(now_s)
    ago = [now_s - stamps.moment(at_s) for at_s in (9_990.0, 10_050.0 + first_s, now_s - 1.0)]
    # A little back is no future: what is no older than now may be of after the step.
    assert ago == [120.0, pytest.approx(60.0, abs=3.0), 1.0]


def test_a_standing_is_as_old_as_it_is_whatever_the_clock_was_set_to() -> None:
    """And one from the future began when it was first seen."""
    rig = EngineRig(rollout_policy())
    rig.second()
    standing = msgspec.structs.replace(rig.state(), since_s=100.0, stage_since_s=40.0)
    since = Since()
    assert since.of(standing, 150.0) == (100.0, 40.0)
    since.shift(standing, 160.0, 7_160.0)
    assert since.of(standing, 7_200.0) == (7_100.0, 7_040.0)
    since.shift(standing, 7_200.0, 200.0)
    assert since.of(standing, 200.0) == (100.0, 40.0)
    later = msgspec.structs.replace(standing, since_s=9_000.0)
    assert [since.of(later, now_s) for now_s in (200.0, 300.0)] == [(200.0, 40.0), (200.0, 40.0)]
    assert (believed(250.0, 200.0), believed(200.0 + AHEAD_S + 1, 200.0)) == (250.0, 200.0)


# the engine


def stepped(events: dict[int, list[Event]], steps: dict[int, float], table: Table = TABLE) -> Control:
    """The same history by a clock that is set at some seconds, by so much; requests are stamped as they arrive."""
    control = Control(events, until=0, table=table)
    offset = 0.0
    for second in range(SECONDS + 80):
        if second in steps:
            now_s = START_S + second + offset
            control.engine.shift(now_s, now_s + steps[second])
            offset += steps[second]
        for happen in events[second]:
            happen(_Set(control.engine, steps), START_S + second + offset)  # type: ignore[arg-type]
        control._turn(START_S + second + 1.0 + offset)
    return control


class _Set:
    """An engine whose requests bear the time of a clock that was set at some seconds."""

    def __init__(self, engine: object, steps: dict[int, float]) -> None:
        self._engine, self._steps = engine, steps

    def _at(self, at_s: float) -> float:
        return at_s + sum(step for second, step in self._steps.items() if at_s >= START_S + second)

    def take_starts(self, message: Starts) -> None:
        counts = [Start(int(self._at(one.second)), one.bucket, one.pool, one.number) for one in message.counts]
        self._engine.take_starts(Starts(0, counts))

    def take_outcomes(self, batch: list, now_s: float) -> None:
        self._engine.take_outcomes([msgspec.structs.replace(one, at=self._at(one.at)) for one in batch], now_s)

    def take_scored(self, batch: list, now_s: float) -> None:
        placed = [
            one._replace(outcome=msgspec.structs.replace(one.outcome, at=self._at(one.outcome.at))) for one in batch
        ]
        self._engine.take_scored(placed, now_s)

    def take_consequence(self, found: Consequence, bad: float, now_s: float) -> None:
        subject = msgspec.structs.replace(found.subject, at=self._at(found.subject.at))
        self._engine.take_consequence(msgspec.structs.replace(found, subject=subject), bad, now_s)


def said(control: Control) -> tuple[object, ...]:
    """What every series has counted, its money, and how long its stage runs."""
    judge, turned_s = control.engine.judge, control.turned_s
    return [move.split(" ", 1)[1] for move in control.moves], {
        str(key): (
            one.evidence.number,
            one.bad,
            one.meter.trips,
            one.meter.state().bets,
            one.timeline.late,
            round(turned_s - one.stage_s, 3),
            round(turned_s - one.meter.end_s, 3),
        )
        for key in judge.keys()  # noqa: SIM118 - a method
        if (one := judge.series(key))
    }


@given(
    st.integers(0, 10**6),
    st.integers(5, SECONDS + 70),
    st.sampled_from([-86_400.0 * 400, -3_600.0, -1_200.0, 600.0, 3_600.0, 86_400.0 * 400]),
)
@settings(max_examples=15, deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate))
def test_a_step_at_any_moment_changes_nothing(seed: int, second: int, step_s: float) -> None:
    """Same counts, same money to the last bit, same trips; no stage is older or younger for it."""
    events = history(seed)
    assert said(stepped(events, {second: step_s})) == said(Control(events, table=TABLE))


@pytest.mark.parametrize("step_s", [-HOUR, HOUR])
def test_differences_of_both_arms_are_as_many_over_a_step(step_s: float) -> None:
    """No outcome is lost, and none is in two of them."""
    events, numbers = history(7), []
    for steps in ({}, {60: step_s}):
        control = stepped(events, steps, policy())
        series = [
            control.engine.judge.series(SeriesKey(f"{name}.margin", BUCKET, "int4")) for name in ("json", "words")
        ]
        numbers.append([(one.evidence.number, one.timeline.late) for one in series])
    assert numbers[0] == numbers[1] and all(number for number, _ in numbers[0])


def test_a_clock_that_was_ahead_before_a_restart_blinds_nobody() -> None:
    """What was stored speaks of the future: it is taken for now, and the log says so."""
    rig = EngineRig(rollout_policy(stages="[{weight: 50%, at_least: {requests: 100000}}]"))
    rig.until(lambda: rig.at(State.STEPPING))
    for _ in range(50):
        rig.second()
    before = rig.engine.judge.series(SeriesKey("json", BUCKET, "int4")).evidence.number
    state, standings = rig.engine.state(rig.now_s), list(rig.engine.standings.values())
    rig.now_s -= HOUR
    rig.engine = rig._made()
    rig.engine.restore(standings, state, rig.now_s)
    series = rig.engine.judge.series(SeriesKey("json", BUCKET, "int4"))
    assert series.evidence.number == before > 100, "the stage goes on"
    assert rig.until(lambda: rig.at(State.ROLLED_BACK), json=1.0) <= 10


def test_a_step_ahead_passes_no_stage_and_lets_nobody_in_again() -> None:
    """The stage's least time, the time to cool down and the hour of calm are time that passed."""
    stages = "[{weight: 50%, at_least: {time: 1h, requests: 50}}]"
    rig = EngineRig(rollout_policy(stages=stages, extra="reentry: {after: 1h, most: 1}"))
    rig.until(lambda: rig.at(State.STEPPING))
    for _ in range(300):
        rig.second(rate=20)
    rig.engine.shift(rig.now_s, rig.now_s + 2 * HOUR)
    rig.now_s += 2 * HOUR
    for _ in range(30):
        rig.second(rate=20)
    assert rig.at(State.STEPPING) and rig.state().stage == 0
    rig.until(lambda: rig.at(State.ROLLED_BACK), json=1.0)
    rig.engine.shift(rig.now_s, rig.now_s + 2 * HOUR)
    rig.now_s += 2 * HOUR
    for _ in range(2):
        rig.second()
        assert rig.at(State.ROLLED_BACK)
        rig.restart()
    rig.engine.shift(rig.now_s, rig.now_s - 9 * HOUR)
    rig.now_s -= 9 * HOUR
    rig.second()
    rig.now_s += HOUR + 1
    rig.second()
    assert EventKind.REENTER in [one.event.kind for one in rig.stepped], "nor does a step back keep it out for longer"


@pytest.mark.parametrize("step_s", [-9 * HOUR, 9 * HOUR])
def test_a_pool_cools_down_for_as_long_though_the_clock_was_set_while_its_rollback_was_stored(step_s: float) -> None:
    """What is stored says the time of before."""
    rig = EngineRig(rollout_policy(extra="reentry: {after: 1h, most: 1}"))
    rig.until(lambda: rig.at(State.STEPPING))
    rig.store = False
    found = []
    while not found:
        found = [one for one in rig.second(json=1.0) if one.event.kind is EventKind.FAIL]
    rig.engine.shift(rig.now_s, rig.now_s + step_s)
    rig.now_s += step_s
    rig.store = True
    rig._accept(found)
    for _ in range(2):
        rig.now_s += HOUR / 2 - 10.0
        rig.second()
        assert rig.at(State.ROLLED_BACK)
        rig.restart()
    rig.now_s += 30.0
    rig.second()
    assert EventKind.REENTER in [one.event.kind for one in rig.stepped]


@pytest.mark.parametrize("step_s", [-HOUR, HOUR])
def test_a_stage_begins_now_though_the_clock_was_set_while_it_was_stored(step_s: float) -> None:
    """Or its evidence would begin when time has caught up."""
    rig = EngineRig(rollout_policy())
    rig.world.is_ready = False
    rig.second()
    rig.world.is_ready = True
    (proposal,) = rig.engine.turn(rig.now_s)
    rig.engine.shift(rig.now_s, rig.now_s + step_s)
    rig.now_s += step_s
    rig.engine.accept(proposal)
    assert rig.at(State.STEPPING)
    for _ in range(10):
        rig.second()
    series = rig.engine.judge.series(SeriesKey("json", BUCKET, "int4"))
    assert series.evidence.number > 10 and 9.0 <= rig.now_s - series.stage_s <= 11.0


def test_a_start_with_a_clock_that_is_ahead_makes_nothing_older_once_it_is_set_back() -> None:
    """Stages, meters and incidents of before the start were noted by a clock that was right."""
    rig = EngineRig(rollout_policy(stages="[{weight: 50%, at_least: {requests: 100000}}]"))
    rig.until(lambda: rig.at(State.STEPPING))
    for second in range(100):
        rig.second(rate=10 if second < 50 else 0)
    rig.restart()
    (run,) = rig.engine.runs.values()
    run.incident_s = rig.now_s - 5.0
    series = [rig.engine.judge.series(key) for key in rig.engine.judge.keys()]  # noqa: SIM118 - a method

    def noted() -> list[tuple[float, ...]]:
        meters = [(one.stage_s, one.stage_block, one.meter.block, one.meter.end_s) for one in series]
        return [run.since(rig.now_s), (run.incident_s,), *meters]

    before = noted()
    rig.now_s += 10 * HOUR
    for _ in range(5):
        rig.second(rate=0)
    rig.engine.shift(rig.now_s, rig.now_s - 10 * HOUR)
    rig.now_s -= 10 * HOUR
    assert noted() == before
    assert rig.until(lambda: rig.at(State.ROLLED_BACK), json=1.0) <= 10


@pytest.mark.parametrize("step_s", [-HOUR, HOUR])
def test_what_was_announced_before_a_step_is_awaited_after_it(step_s: float) -> None:
    """Announcements are told with the next outcomes: those of before belong to the blocks that moved."""
    rig = EngineRig(rollout_policy(stages="[{weight: 50%, at_least: {requests: 100000}}]"))
    rig.until(lambda: rig.at(State.STEPPING))
    for _ in range(20):
        rig.second()
    series, at_s = rig.engine.judge.series(SeriesKey("errors", BUCKET, "int4")), rig.now_s
    rig.engine.take_starts(Starts(0, [Start(int(at_s), BUCKET, "int4", 10)]))
    rig.engine.shift(at_s, at_s + step_s)
    rig.now_s += step_s
    for _ in range(15):
        rig.now_s += 1.0
        rig.turn()
    late = [request_of(BUCKET, "int4", at_s, f"late-{number}", error=True) for number in range(10)]
    rig.engine.take_outcomes(late, rig.now_s)
    for _ in range(20):
        rig.now_s += 1.0
        rig.turn()
    assert (series.bad, series.timeline.late) == (10, 0)


def test_what_comes_in_while_a_turn_waits_after_a_step_back_is_of_now() -> None:
    """However long the database does not answer: the turn is not what tells the time."""
    rig = EngineRig(rollout_policy(stages="[{weight: 50%, at_least: {requests: 100000}}]"))
    rig.until(lambda: rig.at(State.STEPPING))
    for _ in range(20):
        rig.second()
    rig.engine.shift(rig.now_s, rig.now_s - HOUR)
    rig.now_s -= HOUR
    series = rig.engine.judge.series(SeriesKey("json", BUCKET, "int4"))
    for second in range(10):
        at_s = rig.now_s + second
        rig.engine.take_starts(Starts(0, [Start(int(at_s), BUCKET, "int4", 1)]), at_s)
        batch = [request_of(BUCKET, "int4", at_s, f"w-{second}")]
        rig.engine.take_outcomes(batch, at_s)
        rig.engine.take_scored([Scored(one, inspection(json=False)) for one in batch], at_s)
    bad = series.bad
    rig.now_s += 30.0
    rig.engine.turn(rig.now_s)
    assert (series.bad - bad, series.timeline.late) == (10, 0)


def test_the_brake_and_the_twin_remember_for_as_long_as_they_should() -> None:
    """An hour after a step back of a day, trips of before it are an hour old."""
    brake = Brake()
    for number in range(3):
        brake.note(Tripped(1_000.0, "r", f"b{number}", baseline_troubled=True))
    assert brake.assess(1_000.0, 3).platform
    brake.shift(1_000.0, 100.0)
    assert not brake.assess(161.0, 3).engaged
    assert not brake.over(999.0) and brake.over(1_000.0)


# the service, which notices


class Served:
    """A service over a folder, with a clock that may be set."""

    def __init__(self, folder: Path) -> None:
        self.time = Time()
        database = open_engine(url_of(None, folder))
        upgrade(database)
        self.service = RolloutService(
            folder,
            database=lambda: database,
            broadcast=lambda _: None,
            surroundings=World(),
            webhooks=Webhooks(lambda: self.time.wall_s),
            wall=lambda: self.time.wall_s,
            monotonic=lambda: self.time.ticks_s,
        )
        self.service.apply(rollout_policy(), OVERSIGHT, {"int4": "r-a", "bf16": "r-b"})
        self.service.keeper.save({}, [])
        self.service.take_up()
        self.service.clock()
        self.count = 0

    async def second(self, *, good: bool = True) -> None:
        """Ten requests of the candidate, and a turn."""
        engine, at_s = self.service.engine, self.time.wall_s
        self.count += 10
        batch = [request_of(BUCKET, "int4", at_s, f"q{self.count + n}") for n in range(10)]
        now_s = self.service.clock()
        engine.take_starts(Starts(0, [Start(int(at_s), BUCKET, "int4", 10)]))
        engine.take_outcomes(batch, now_s)
        engine.take_scored([Scored(one, inspection(json=good)) for one in batch], now_s)
        self.time.wait(1.0)
        await self.service.turn()

    def state(self) -> State:
        """The bucket's."""
        return next(iter(self.service.engine.standings.values())).state


@pytest.mark.parametrize("step_s", [-HOUR, HOUR, -86_400.0 * 3_650, 86_400.0 * 3_650])
async def test_a_bad_pool_is_out_within_seconds_of_a_step(tmp_path: Path, step_s: float) -> None:
    """It was blind until time had caught up, and stored nothing either."""
    served = Served(tmp_path)
    for _ in range(20):
        await served.second()
    assert served.state() is State.STEPPING
    served.time.wall_s += step_s
    for _ in range(15):
        await served.second(good=False)
    assert served.state() is State.ROLLED_BACK
    _, stored = served.service.keeper.read()
    assert stored is not None and abs(stored.at_s - served.time.wall_s) < 10.0


@pytest.mark.parametrize("step_s", [-HOUR, HOUR])
async def test_a_step_in_the_middle_of_a_turn_closes_nothing_of_the_time_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step_s: float
) -> None:
    """While it waited for the database requests came in, and the clock was looked at."""
    served = Served(tmp_path)
    for _ in range(20):
        await served.second()
    poll = served.service._poll

    async def slow(now_s: float) -> None:
        await poll(now_s)
        served.time.wall_s += step_s
        served.service.clock()

    monkeypatch.setattr(served.service, "_poll", slow)
    served.service._polled_s = 0.0
    await served.second()
    monkeypatch.undo()
    series = served.service.engine.judge.series(SeriesKey("json", BUCKET, "int4"))
    assert not series.timeline.is_closed(served.time.wall_s)
    for _ in range(15):
        await served.second(good=False)
    assert served.state() is State.ROLLED_BACK
