"""Who hears that a candidate serves nothing, and when."""

import pytest

from gateway.control.rollouts_absence import TELL_AFTER, Absences
from gateway.control.webhooks import Message
from gateway.core.rollout import Event, EventKind, State
from tests.unit.control.rollout_rig import EngineRig, rollout_policy

AWAY = "int4/0 is unhealthy (refused)"


@pytest.fixture
def rig() -> EngineRig:
    """Two buckets get traffic."""
    made = EngineRig(rollout_policy())
    for bucket in ("m/short/chat", "m/medium/code"):
        made.until(lambda bucket=bucket: made.at(State.STEPPING, bucket), bucket=bucket)
    return made


def news(absences: Absences, looks: int) -> list[Message]:
    return [message for _ in range(looks) for message in absences.news(1.0)]


def test_people_hear_of_it_once_and_once_when_it_is_over(rig: EngineRig) -> None:
    """Not of a restart; one message for all buckets of the rollout, with what ails the pool."""
    absences = Absences(rig.engine)
    rig.world.away = AWAY
    assert news(absences, TELL_AFTER - 1) == []
    rig.world.away = ""
    assert news(absences, 1) == []
    rig.world.away = AWAY
    (told,) = news(absences, 3 * TELL_AFTER)
    assert (told.event, told.resolved, told.labels) == ("hold", False, {"rollout": "int4-all", "pool": "int4"})
    assert "2 bucket(s)" in told.summary
    assert AWAY in told.summary
    rig.world.away = ""
    (over,) = news(absences, TELL_AFTER)
    assert (over.event, over.resolved, over.labels) == ("hold", True, told.labels)


def test_who_is_to_serve_nothing_is_not_missed(rig: EngineRig) -> None:
    """Paused on purpose, or rolled back: nobody waits for such a pool."""
    absences = Absences(rig.engine)
    for at, kind in zip(list(rig.engine.standings), (EventKind.PAUSE, EventKind.ROLLBACK), strict=True):
        proposal = rig.engine.command(at, Event(kind, rig.now_s, "maintenance", "ann"))
        assert not isinstance(proposal, str)
        rig.engine.accept(proposal)
    rig.world.away = AWAY
    assert news(absences, 2 * TELL_AFTER) == []


def test_the_endpoints_are_looked_at_once_for_all_buckets(rig: EngineRig, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rollout has up to two thousand of them, and control looks every second."""
    asked: list[str] = []

    def absence(pool: str) -> str:
        asked.append(pool)
        return AWAY

    monkeypatch.setattr(rig.world, "absence", absence)
    assert len(list(rig.engine.awaited())) == 2
    assert asked == ["int4"]
