"""The fan-out of outcomes: gathered for a moment, each once, in order."""

import msgspec
import pytest

from gateway.control import recorder as module
from gateway.control.recorder import GATHER_MOST_BYTES, Recorder
from gateway.model.messages import Outcomes
from tests.unit.control.exchanges import arrived


class Ear:
    """A subscriber that remembers the request ids of each batch."""

    def __init__(self):
        self.heard = []

    def __call__(self, batch):
        self.heard.append(list(batch.request_id))


def message(outcome, *ids, dropped=0, captures_dropped=0):
    """As a worker sends it."""
    made = [outcome(request_id=name) for name in ids]
    return arrived(*made, dropped=dropped, captures_dropped=captures_dropped)


async def test_every_subscriber_gets_every_outcome_once_and_in_order(outcome):
    """One arrival, many readers; messages of a moment are one batch."""
    recorder, first, second = Recorder(), Ear(), Ear()
    recorder.subscribe("first", first)
    recorder.subscribe("second", second)
    recorder.record(message(outcome, "a", "b"))
    recorder.record(message(outcome))
    recorder.record(message(outcome, "c"))
    assert first.heard == []
    recorder.flush()
    recorder.record(message(outcome, "d"))
    recorder.flush()
    recorder.flush()
    assert first.heard == second.heard == [["a", "b", "c"], ["d"]]


async def test_nobody_waits_longer_than_a_moment(outcome, eventually, monkeypatch):
    """Without further outcomes the batch goes out by itself, and the next one too."""
    monkeypatch.setattr(module, "GATHER_S", 0.01)
    recorder, ear = Recorder(), Ear()
    recorder.subscribe("ear", ear)
    for name in ("a", "b"):
        recorder.record(message(outcome, name))
        await eventually(lambda name=name: ear.heard[-1:] == [[name]])


async def test_many_outcomes_do_not_wait_at_all(outcome):
    """Memory and the time the loop is held stay bounded."""
    recorder, ear = Recorder(), Ear()
    recorder.subscribe("ear", ear)
    half = message(outcome, "a" * (GATHER_MOST_BYTES // 2))
    recorder.record(half)
    assert ear.heard == []
    recorder.record(half)
    assert [len(heard) for heard in ear.heard] == [2]


@pytest.mark.parametrize(
    "nonsense", [msgspec.msgpack.encode(7), msgspec.msgpack.encode([[1]]), b"\x91\x92\x90\xa1\xff"]
)
async def test_a_message_that_is_not_understood_takes_nothing_from_the_others(outcome, nonsense):
    """It is counted; what other workers sent in the same moment is handed on."""
    recorder, ear = Recorder(), Ear()
    recorder.subscribe("ear", ear)
    recorder.record(message(outcome, "a"))
    recorder.record(Outcomes(1, 0, nonsense))
    recorder.record(message(outcome, "b"))
    recorder.flush()
    assert ear.heard == [["a", "b"]]
    assert recorder.failures.family().samples == {("read",): (1.0,)}


async def test_a_failing_subscriber_takes_nothing_from_the_others(outcome):
    """It is counted by name, and the next one still gets the batch."""
    recorder, ear = Recorder(), Ear()

    def broken(_):
        raise RuntimeError

    recorder.subscribe("broken", broken)
    recorder.subscribe("good", ear)
    recorder.record(message(outcome, "a"))
    recorder.flush()
    assert ear.heard == [["a"]]
    assert recorder.failures.family().samples == {("broken",): (1.0,)}


@pytest.mark.parametrize(("lost", "told"), [({}, 0), ({"dropped": 3}, 1), ({"captures_dropped": 2}, 1)])
async def test_losses_are_told_at_once(outcome, lost, told):
    """Also when no outcome came with them."""
    recorder, heard = Recorder(), []
    recorder.subscribe_losses(heard.append)
    recorder.record(message(outcome, **lost))
    recorder.flush()
    assert len(heard) == told
