"""Many buckets at once are told from many bad buckets, and a platform's incident from a bad pool."""

from gateway.core.rollout import Brake, Tripped


def tripped(at_s: float, bucket: str, *, troubled: bool = False) -> Tripped:
    return Tripped(at_s, "id", bucket, troubled)


def test_three_buckets_within_a_minute_engage_it_and_older_trips_do_not_count() -> None:
    """The window slides."""
    brake = Brake()
    for second, bucket in ((0, "a"), (50, "b"), (100, "c")):
        brake.note(tripped(second, bucket))
    assert not brake.assess(100, 5).engaged
    brake.note(tripped(105, "d"))
    found = brake.assess(105, 5)
    assert found.engaged
    assert not found.platform
    assert "3 of 5" in found.reason


def test_a_few_of_a_hundred_are_no_pattern_and_one_bucket_twice_is_one() -> None:
    """Neither three of a hundred nor repeated trips of one bucket."""
    brake = Brake()
    for bucket in ("a", "b", "c"):
        brake.note(tripped(0, bucket))
    assert not brake.assess(1, 100).engaged
    again = Brake()
    for _ in range(5):
        again.note(tripped(0, "a"))
    assert not again.assess(1, 3).engaged


def test_suffering_baselines_make_it_the_platforms_incident() -> None:
    """Half of the tripped buckets are enough."""
    brake = Brake()
    for bucket, troubled in (("a", True), ("b", True), ("c", False)):
        brake.note(tripped(0, bucket, troubled=troubled))
    assert brake.assess(0, 3).platform


def test_it_lets_go_after_a_quarter_of_an_hour_of_calm_once() -> None:
    """Asking releases it."""
    brake = Brake()
    assert not brake.over(1e9)
    for bucket in ("a", "b", "c"):
        brake.note(tripped(0, bucket))
    brake.assess(0, 3)
    assert not brake.over(899)
    assert brake.over(900)
    assert not brake.over(2_000)
