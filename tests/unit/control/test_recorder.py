"""The fan-out of outcomes."""

from gateway.control.recorder import Recorder
from gateway.model.messages import Outcomes


def test_every_subscriber_gets_every_batch_in_order():
    """One arrival, many readers."""
    recorder, first, second = Recorder(), [], []
    recorder.subscribe("first", first.append)
    recorder.subscribe("second", second.append)
    batches = [Outcomes(0, number, []) for number in range(3)]
    for batch in batches:
        recorder.record(batch)
    assert first == second == batches


def test_a_failing_subscriber_takes_nothing_from_the_others():
    """It is counted by name, and the next one still gets the batch."""
    recorder, heard = Recorder(), []

    def broken(_):
        raise RuntimeError

    recorder.subscribe("broken", broken)
    recorder.subscribe("good", heard.append)
    recorder.record(Outcomes(0, 0, []))
    assert len(heard) == 1
    assert recorder.failures.family().samples == {("broken",): (1.0,)}
