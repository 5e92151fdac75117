"""Envelopes and the joining of streams."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.simulator.frame import data_event, interleaved, named_event, with_tail


@given(st.lists(st.lists(st.binary(min_size=1, max_size=3), max_size=5), min_size=1, max_size=4))
def test_interleaving_loses_nothing(streams: list[list[bytes]]) -> None:
    """One item a step, as many steps as the longest stream, each stream in its order."""
    steps = list(interleaved(iter(stream) for stream in streams))
    assert len(steps) == max(map(len, streams))
    for position, step in enumerate(steps):
        assert step == b"".join(stream[position] for stream in streams if position < len(stream))


def test_tail_leaves_with_the_last_step() -> None:
    """The end of a stream is not a step of its own."""
    assert list(with_tail(iter([b"a", b"b"]), b"!")) == [b"a", b"b!"]
    assert list(with_tail(iter([]), b"!")) == [b"!"]


def test_events_end_with_a_blank_line() -> None:
    """Both kinds of event are complete by themselves."""
    assert data_event({"a": 1}) == b'data: {"a":1}\n\n'
    assert named_event("x", {}) == b"event: x\ndata: {}\n\n"
