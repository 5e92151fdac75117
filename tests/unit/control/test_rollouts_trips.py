"""What trips lead to: blame, incident, slices, the brake."""

import msgspec

from gateway.control.rollouts_trips import answer_trips
from gateway.core.evidence import SeriesKey, SeriesTrip, Trip
from gateway.core.rollout import Brake, EventKind, State
from tests.unit.control.rollout_rig import EngineRig, rollout_policy

BUCKET = "m/short/chat"
TRIP = Trip(1, 10.0, 11.0, 2.0, (2.0,), 30, 20.0)


def rig_with(*buckets: str) -> EngineRig:
    """All of them stepping."""
    rig = EngineRig(rollout_policy())
    for bucket in buckets:
        rig.until(lambda bucket=bucket: rig.at(State.STEPPING, bucket), bucket=bucket)
    return rig


def trip(rig: EngineRig, guard: str, bucket: str = BUCKET, pool: str = "int4") -> SeriesTrip:
    """Latch a trip in a series."""
    key = SeriesKey(guard, bucket, pool)
    rig.engine.judge.series(key).trip = TRIP
    return SeriesTrip(key, TRIP)


def answers(rig: EngineRig, *trips: SeriesTrip) -> dict[str, EventKind]:
    found = answer_trips(rig.engine.judge, Brake(), rig.engine.runs, trips, rig.now_s)
    return {bucket: event.kind for (_, bucket), event in found.items()}


def test_a_pool_whose_baseline_is_calm_is_to_blame() -> None:
    """And nothing happens without a trip."""
    rig = rig_with(BUCKET)
    assert answers(rig) == {}
    assert answers(rig, trip(rig, "json")) == {BUCKET: EventKind.FAIL}


def test_a_baselines_own_trip_only_informs_its_twin() -> None:
    """It is taken note of, and no bucket moves."""
    rig = rig_with(BUCKET)
    assert answers(rig, trip(rig, "json", pool="bf16")) == {}
    assert rig.engine.judge.series(SeriesKey("json", BUCKET, "bf16")).trip is None


def test_all_trips_of_an_incident_are_answered_at_once() -> None:
    """None is left to be asked again when the baseline's trip is old."""
    rig = rig_with(BUCKET)
    for name in ("errors", "errors.late"):
        rig.engine.judge.series(SeriesKey(name, BUCKET, "bf16")).meter.last_trip_s = rig.now_s - 5
    assert answers(rig, trip(rig, "errors"), trip(rig, "errors.late")) == {BUCKET: EventKind.INCIDENT}
    for name in ("errors", "errors.late"):
        assert rig.engine.judge.series(SeriesKey(name, BUCKET, "int4")).trip is None


def test_one_guard_to_blame_outweighs_another_that_holds() -> None:
    """Errors are everywhere, but the JSON is the candidate's own."""
    rig = rig_with(BUCKET)
    rig.engine.judge.series(SeriesKey("errors", BUCKET, "bf16")).meter.last_trip_s = rig.now_s - 5
    assert answers(rig, trip(rig, "errors"), trip(rig, "json")) == {BUCKET: EventKind.FAIL}


def test_a_trip_from_before_the_first_stage_is_forgotten() -> None:
    """It was earned by the pool before."""
    rig = rig_with(BUCKET)
    found = trip(rig, "json")
    run = next(iter(rig.engine.runs.values()))
    run.standing = msgspec.structs.replace(run.standing, state=State.PENDING, below=State.PENDING)
    assert answers(rig, found) == {}
    assert rig.engine.judge.series(found.key).trip is None


def win(rig: EngineRig, guard: str, bucket: str) -> None:
    """Outcomes spoke against the pool: the meter holds more than it was given."""
    meter = rig.engine.judge.series(SeriesKey(guard, bucket, "int4")).meter
    state = meter.state()
    meter.restore(msgspec.structs.replace(state, bets=tuple(1e-4 for _ in state.bets)))


def test_a_slice_takes_out_who_gained_and_holds_the_others() -> None:
    """If none stands out, all of it goes."""
    rig = rig_with(BUCKET, "m/medium/code")
    wide = SeriesKey("json", "*", "int4")
    rig.engine.judge.series(wide).trip = TRIP
    win(rig, "json", BUCKET)
    assert answers(rig, SeriesTrip(wide, TRIP)) == {BUCKET: EventKind.FAIL, "m/medium/code": EventKind.BESIDE}
    rig = rig_with(BUCKET, "m/medium/code")
    rig.engine.judge.series(wide).trip = TRIP
    assert set(answers(rig, SeriesTrip(wide, TRIP)).values()) == {EventKind.FAIL}


def test_lumps_of_several_stages_and_a_months_drip_are_no_gain() -> None:
    """A bucket that a guard knows nothing of is held beside a slice, however many stages it has passed."""
    idle = "m/medium/code"
    rig = rig_with(BUCKET, idle)
    wide = SeriesKey("json", "*", "int4")
    rig.engine.judge.series(wide).trip = TRIP
    win(rig, "json", BUCKET)
    rig.now_s += 30 * 86_400.0
    for _ in range(4):
        rig.engine.judge.series(SeriesKey("json", idle, "int4")).grant(rig.now_s - 100, 1e-5)
    assert answers(rig, SeriesTrip(wide, TRIP)) == {BUCKET: EventKind.FAIL, idle: EventKind.BESIDE}


def test_a_bucket_that_tripped_alone_explains_its_slice() -> None:
    """The others are not touched."""
    rig = rig_with(BUCKET, "m/medium/code")
    wide = SeriesKey("json", "*", "int4")
    rig.engine.judge.series(wide).trip = TRIP
    assert answers(rig, SeriesTrip(wide, TRIP), trip(rig, "json")) == {BUCKET: EventKind.FAIL}


def test_many_at_once_put_the_brake_on_the_rest() -> None:
    """Three of four; and with suffering baselines they are held instead."""
    buckets = [f"m/short/t{number}" for number in range(4)]
    rig = rig_with(*buckets)
    found = answers(rig, *[trip(rig, "json", bucket) for bucket in buckets[:3]])
    assert [found[bucket] for bucket in buckets] == [EventKind.FAIL] * 3 + [EventKind.BRAKE]
    rig = rig_with(*buckets)
    for bucket in buckets[:2]:
        rig.engine.judge.series(SeriesKey("json", bucket, "bf16")).meter.last_trip_s = rig.now_s - 5
    found = answers(rig, *[trip(rig, "json", bucket) for bucket in buckets[:3]])
    assert [found[bucket] for bucket in buckets[:3]] == [EventKind.INCIDENT] * 3
